"""Problems as JSON, one a line (``poseidon.problem/1``, docs/problem-format.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from poseidon.cost.problem import Kind, LayerCost, Matrix, Problem
from poseidon.cost.problem_model import ProblemModel, matrix
from poseidon.errors import InputError, Mistake
from poseidon.inputs.file_model import shown
from poseidon.inputs.json_document import parse_json
from poseidon.inputs.limits import MAX_BYTES
from poseidon.inputs.validation import validate

PROBLEM_SCHEMA = "poseidon.problem/1"


def problem_from_json(data: object, source: str) -> Problem:
    """Reads one problem.

    `source` names the file and line in errors. Raises InputError with every mistake found.
    """
    if not isinstance(data, Mapping):
        raise InputError(
            Mistake(source, "", f"is not a problem: expected a mapping of keys to values, got {shown(data)}")
        )
    schema = data.get("schema")
    mistakes = []
    if schema != PROBLEM_SCHEMA:
        found = "is missing" if schema is None else f"{shown(schema)} is not known"
        mistakes.append(Mistake(source, "schema", f"{found}; {PROBLEM_SCHEMA!r} is expected"))
    try:
        model = validate(ProblemModel, {key: value for key, value in data.items() if key != "schema"}, source)
    except InputError as error:
        raise InputError([*mistakes, *error.mistakes]) from None
    if mistakes:
        raise InputError(mistakes)
    return _problem(model)


def _problem(model: ProblemModel) -> Problem:
    type_names = model.type_names
    return Problem(
        name=model.name,
        schedule=model.schedule,
        num_chunks=model.num_chunks,
        num_micro_batches=model.num_micro_batches,
        num_layers=model.num_layers,
        num_stages=model.pipeline_stages,
        assignment=model.assignment,
        kinds=tuple(kind.kind(type_names) for kind in model.kinds),
        intra_node_ms=matrix(model.transfer_ms.intra_node),
        inter_node_ms=matrix(model.transfer_ms.inter_node),
        layer_types=tuple(type_names.index(name) for name in model.layer_types),
        layer_type_names=type_names,
        pools=tuple(pool.pool(name) for name, pool in model.pools.items()),
        allow_idle=model.allow_idle,
        most_depth=model.most_depth,
    )


def problem_to_json(problem: Problem) -> dict[str, Any]:
    """The problem as the contract writes it: optional fields only where they are used."""
    data: dict[str, Any] = {
        "schema": PROBLEM_SCHEMA,
        "name": problem.name,
        "schedule": problem.schedule,
        "num_chunks": problem.num_chunks,
        "num_micro_batches": problem.num_micro_batches,
        "num_layers": problem.num_layers,
        "assignment": problem.assignment,
        "kinds": [_kind_to_json(problem, kind) for kind in problem.kinds],
        "transfer_ms": {
            "intra_node": _matrix_to_json(problem.intra_node_ms),
            "inter_node": _matrix_to_json(problem.inter_node_ms),
        },
    }
    if problem.layer_types:
        data["layer_types"] = [problem.layer_type_names[index] for index in problem.layer_types]
    if problem.pools:
        data["pools"] = {p.name: {"devices": p.devices, "devices_per_node": p.devices_per_node} for p in problem.pools}
    if problem.allow_idle:
        data["allow_idle"] = True
    if problem.most_depth > 1:
        data["most_depth"] = problem.most_depth
    if problem.pools or problem.allow_idle:
        data["num_stages"] = problem.num_stages
    return data


def _matrix_to_json(matrix: Matrix) -> list[list[float | None]]:
    return [[None if value == float("inf") else value for value in row] for row in matrix]


def _cost_to_json(cost: LayerCost) -> dict[str, float]:
    return {"forward_ms": cost.forward_ms, "backward_ms": cost.backward_ms, "all_reduce_ms": cost.all_reduce_ms}


def _kind_to_json(problem: Problem, kind: Kind) -> dict[str, Any]:
    data: dict[str, Any] = {"name": kind.name, "stages": kind.stages, "stages_per_node": kind.stages_per_node}
    if problem.layer_types:
        data["layers"] = {n: _cost_to_json(c) for n, c in zip(problem.layer_type_names, kind.layers, strict=True)}
    else:
        data |= _cost_to_json(kind.layers[0])
    data |= {"first": _cost_to_json(kind.first), "last": _cost_to_json(kind.last)}
    data["max_layers"] = [row[0] if len(row) == 1 else list(row) for row in kind.max_layers]
    if kind.pool:
        data |= {"pool": kind.pool, "devices": kind.devices}
    return data


def read_problems(path: Path) -> Iterator[Problem]:
    """Yields the problems of a JSON-lines file, in order.

    Raises InputError (file and line number) at the first line that is not a valid problem.
    """
    if not path.is_file():
        raise InputError(Mistake(str(path), "", "no such file" if not path.exists() else "is not a file"))
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(iter(lambda: lines.readline(MAX_BYTES + 1), ""), start=1):
                if line.strip():
                    yield _problem_of_line(line, f"{path}:{number}")
    except OSError as error:
        raise InputError(Mistake(str(path), "", f"cannot be read: {error.strerror}")) from None


def _problem_of_line(line: str, source: str) -> Problem:
    if len(line) > MAX_BYTES:
        raise InputError(Mistake(source, "", f"is too long: at most {MAX_BYTES:,} characters are accepted"))
    data, mistakes = parse_json(line, source)
    if mistakes:
        raise InputError(mistakes)
    return problem_from_json(data, source)
