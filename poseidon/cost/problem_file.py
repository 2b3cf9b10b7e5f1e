"""Problems as JSON, one a line (``poseidon.problem/1`` of the contract, docs/problem-format.md for the optional fields)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from poseidon.cost.problem import Kind, LayerCost, Matrix, Pool, Problem, places
from poseidon.errors import InputError, Mistake
from poseidon.inputs.validation import validate

Milliseconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Limit = Annotated[int, Field(ge=0, le=1_000_000)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Cost(_Strict):
    forward_ms: Milliseconds = 0.0
    backward_ms: Milliseconds = 0.0
    all_reduce_ms: Milliseconds = 0.0

    def cost(self) -> LayerCost:
        return LayerCost(self.forward_ms, self.backward_ms, self.all_reduce_ms)


class _Kind(_Strict):
    name: str
    stages: Annotated[int, Field(ge=0, le=100_000)]
    stages_per_node: Count = 1
    forward_ms: Milliseconds | None = None
    backward_ms: Milliseconds | None = None
    all_reduce_ms: Milliseconds = 0.0
    layers: dict[str, _Cost] | None = None
    first: _Cost = _Cost()
    last: _Cost = _Cost()
    max_layers: list[Limit | list[Limit]]
    pool: str = ""
    devices: Count = 1

    @model_validator(mode="after")
    def _one_cost_form(self) -> _Kind:
        if self.layers is None and (self.forward_ms is None or self.backward_ms is None):
            raise ValueError("forward_ms and backward_ms are required (or layers, with a cost for each layer type)")
        return self

    def kind(self, type_names: tuple[str, ...]) -> Kind:
        if self.layers is None:
            costs = (LayerCost(self.forward_ms or 0.0, self.backward_ms or 0.0, self.all_reduce_ms),) * len(type_names)
        else:
            costs = tuple(self.layers[name].cost() for name in type_names)
        limits = tuple(tuple(row) if isinstance(row, list) else (row,) for row in self.max_layers)
        return Kind(
            self.name,
            self.stages,
            self.stages_per_node,
            costs,
            self.first.cost(),
            self.last.cost(),
            limits,
            self.pool,
            self.devices,
        )


class _Transfer(_Strict):
    intra_node: list[list[Milliseconds | None]]
    inter_node: list[list[Milliseconds | None]]


class _Pool(_Strict):
    devices: Count
    devices_per_node: Count


class _Problem(_Strict):
    format: Literal["poseidon.problem/1"] = Field(alias="schema")
    name: str
    schedule: str
    num_chunks: Annotated[int, Field(ge=1, le=1000)] = 1
    num_micro_batches: Count
    num_layers: Annotated[int, Field(ge=1, le=10_000)]
    num_stages: Count | None = None
    assignment: Literal["node", "stage"] = "node"
    kinds: Annotated[list[_Kind], Field(min_length=1, max_length=64)]
    transfer_ms: _Transfer
    layer_types: list[str] = []
    pools: dict[str, _Pool] = {}
    allow_idle: bool = False
    most_depth: Annotated[int, Field(ge=1, le=16)] = 1


def problem_from_json(data: object, source: str) -> Problem:
    """Reads one problem.

    `source` names the file and line in errors. Raises InputError with every mistake found.
    """
    parsed = validate(_Problem, data, source)
    type_names = tuple(dict.fromkeys(parsed.layer_types)) or ("layer",)
    mistakes = list(_mistakes(parsed, type_names, source))
    if mistakes:
        raise InputError(mistakes)
    num_stages = parsed.num_stages if parsed.num_stages is not None else sum(kind.stages for kind in parsed.kinds)
    return Problem(
        name=parsed.name,
        schedule=parsed.schedule,
        num_chunks=parsed.num_chunks,
        num_micro_batches=parsed.num_micro_batches,
        num_layers=parsed.num_layers,
        num_stages=num_stages,
        assignment=parsed.assignment,
        kinds=tuple(kind.kind(type_names) for kind in parsed.kinds),
        intra_node_ms=_matrix(parsed.transfer_ms.intra_node),
        inter_node_ms=_matrix(parsed.transfer_ms.inter_node),
        layer_types=tuple(type_names.index(name) for name in parsed.layer_types),
        layer_type_names=type_names,
        pools=tuple(Pool(name, pool.devices, pool.devices_per_node) for name, pool in parsed.pools.items()),
        allow_idle=parsed.allow_idle,
        most_depth=parsed.most_depth,
    )


def _matrix(rows: list[list[float | None]]) -> Matrix:
    return tuple(tuple(float("inf") if value is None else value for value in row) for row in rows)


def _mistakes(problem: _Problem, type_names: tuple[str, ...], source: str) -> Iterator[Mistake]:
    """What the types alone cannot see: sizes that must agree, names that must exist."""
    names = [kind.name for kind in problem.kinds]
    if len(set(names)) < len(names):
        yield Mistake(source, "kinds", "two kinds have the same name; names must differ")
    num_stages = problem.num_stages if problem.num_stages is not None else sum(kind.stages for kind in problem.kinds)
    if num_stages < 1:
        yield Mistake(source, "kinds", "no kind fills a stage; at least one stage is needed")
    shared = problem.allow_idle or problem.pools
    if problem.num_stages is not None and not shared and problem.num_stages != sum(kind.stages for kind in problem.kinds):
        yield Mistake(source, "num_stages", f"is {problem.num_stages}, but the kinds' stages add up to {sum(k.stages for k in problem.kinds)}")
    if problem.layer_types and len(problem.layer_types) != problem.num_layers:
        yield Mistake(source, "layer_types", f"has {len(problem.layer_types)} entries; one for each of the {problem.num_layers} layers is needed")
    for index, kind in enumerate(problem.kinds):
        yield from _kind_mistakes(problem, kind, f"kinds[{index}]", num_stages, type_names, source)
    for name, rows in (("intra_node", problem.transfer_ms.intra_node), ("inter_node", problem.transfer_ms.inter_node)):
        if len(rows) != len(names) or any(len(row) != len(names) for row in rows):
            yield Mistake(source, f"transfer_ms.{name}", f"must be {len(names)} rows of {len(names)} numbers, one for each pair of kinds")
    if problem.num_chunks > 1 and len(type_names) > 1:
        yield Mistake(source, "num_chunks", "more than one chunk needs layers of one type")


def _kind_mistakes(
    problem: _Problem, kind: _Kind, field: str, num_stages: int, type_names: tuple[str, ...], source: str
) -> Iterator[Mistake]:
    num_places = len(places(num_stages, problem.most_depth))
    if len(kind.max_layers) < num_places:
        yield Mistake(source, f"{field}.max_layers", f"has {len(kind.max_layers)} entries; one for each of the {num_places} places in the pipeline is needed")
    for stage, row in enumerate(kind.max_layers):
        if isinstance(row, list) and len(row) not in (1, problem.num_layers):
            yield Mistake(source, f"{field}.max_layers[{stage}]", f"has {len(row)} entries; one for each of the {problem.num_layers} first layers is needed")
    if kind.layers is not None and (missing := [name for name in type_names if name not in kind.layers]):
        yield Mistake(source, f"{field}.layers", f"has no cost for layer type {', '.join(missing)}")
    if kind.pool and kind.pool not in problem.pools:
        yield Mistake(source, f"{field}.pool", f"{kind.pool!r} is not declared in pools")


def problem_to_json(problem: Problem) -> dict[str, Any]:
    """The problem as the contract writes it: optional fields only where they are used."""
    data: dict[str, Any] = {
        "schema": "poseidon.problem/1",
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
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            source = f"{path}:{number}"
            try:
                data = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(Mistake(source, "", f"is not JSON: {error}")) from None
            yield problem_from_json(data, source)
