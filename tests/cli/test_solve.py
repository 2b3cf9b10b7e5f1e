from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTHING = {"forward_ms": 0.0, "backward_ms": 0.0, "all_reduce_ms": 0.0}
PROBLEM: dict[str, Any] = {
    "schema": "poseidon.problem/1",
    "name": "by hand",
    "schedule": "1f1b",
    "num_chunks": 1,
    "num_micro_batches": 2,
    "num_layers": 3,
    "assignment": "node",
    "kinds": [
        {
            "name": "fast",
            "stages": 1,
            "stages_per_node": 1,
            "forward_ms": 1.0,
            "backward_ms": 1.0,
            "all_reduce_ms": 0.0,
            "first": NOTHING,
            "last": NOTHING,
            "max_layers": [3, 3],
        },
        {
            "name": "slow",
            "stages": 1,
            "stages_per_node": 1,
            "forward_ms": 2.0,
            "backward_ms": 2.0,
            "all_reduce_ms": 0.0,
            "first": NOTHING,
            "last": NOTHING,
            "max_layers": [3, 3],
        },
    ],
    "transfer_ms": {"intra_node": [[0, 0], [0, 0]], "inter_node": [[0, 0], [0, 0]]},
}
"""Two layers on the fast stage, one on the slow one: each takes 2 + 2 ms a micro-batch, three such steps in all."""


def written(path: Path, *problems: object) -> Path:
    path.write_text(
        "".join((problem if isinstance(problem, str) else json.dumps(problem)) + "\n" for problem in problems)
    )
    return path


def changed(**fields: Any) -> dict[str, Any]:
    return {**PROBLEM, **fields}


def infeasible() -> dict[str, Any]:
    kinds = [{**kind, "max_layers": [1, 1]} for kind in PROBLEM["kinds"]]
    return changed(name="too small", kinds=kinds)


def test_results_are_in_order_and_as_the_contract_says(cli: Any, tmp_path: Path) -> None:
    problems = written(tmp_path / "in.jsonl", PROBLEM, "", infeasible(), changed(name="again"))
    ran = cli("solve", problems, "--out", tmp_path / "out.jsonl")
    assert ran.status == 0
    assert ran.out == ""
    results = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [result["name"] for result in results] == ["by hand", "too small", "again"]
    first, second, _ = results
    assert first["status"] == "optimal"
    assert first["iteration_time_ms"] == 12.0
    assert first["lower_bound_ms"] == pytest.approx(12.0, rel=1e-9)
    assert first["gap"] == 0
    assert {stage["kind"]: stage["layers"] for stage in first["stages"]} == {"fast": 2, "slow": 1}
    assert {"seconds", "nodes", "simulations", "pruned"} <= first.keys()
    assert second["status"] == "infeasible"
    assert (second["iteration_time_ms"], second["lower_bound_ms"], second["gap"]) == (None, None, None)
    assert second["stages"] == []


def test_chunks_are_lists(cli: Any, tmp_path: Path) -> None:
    problem = changed(schedule="interleaved_1f1b", num_chunks=2, num_layers=5)
    kinds = [{**kind, "max_layers": [5, 5]} for kind in PROBLEM["kinds"]]
    [result] = cli("solve", written(tmp_path / "in.jsonl", {**problem, "kinds": kinds})).lines
    assert result["status"] == "optimal"
    assert all(len(stage["layers"]) == 2 for stage in result["stages"])
    assert sum(sum(stage["layers"]) for stage in result["stages"]) == 5


def test_without_out_the_results_go_to_standard_output(cli: Any, tmp_path: Path) -> None:
    ran = cli("solve", written(tmp_path / "in.jsonl", PROBLEM))
    assert ran.lines[0]["status"] == "optimal"
    assert "1 optimal" in ran.err


def test_quiet_and_json(cli: Any, tmp_path: Path) -> None:
    problems = written(tmp_path / "in.jsonl", PROBLEM)
    ran = cli("solve", problems, "--json", "-q", "--out", tmp_path / "out.jsonl")
    assert ran.err == ""
    assert ran.out == (tmp_path / "out.jsonl").read_text()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "is not valid JSON"),
        ("[]", "mapping"),
        (changed(num_layers=0), "num_layers"),
        (changed(layer="x"), "layer"),
        (changed(schedule="1f2b"), "did you mean"),
        (changed(schedule="1f1b", num_chunks=2), "num_chunks must be 1"),
        (changed(schedule="interleaved_1f1b", num_chunks=2, num_micro_batches=1), "micro-batches"),
        (changed(transfer_ms={"intra_node": [[0]], "inter_node": [[0]]}), "transfer_ms.intra_node"),
    ],
    ids=str,
)
def test_a_bad_problem_names_file_and_line(cli: Any, tmp_path: Path, line: object, message: str) -> None:
    problems = written(tmp_path / "in.jsonl", PROBLEM, "", line)
    ran = cli("solve", problems, "--out", tmp_path / "out.jsonl")
    assert ran.status == 2
    assert all(mistake.startswith(f"{problems}:3: ") for mistake in ran.mistakes)
    assert message in ran.err
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 1


def test_an_empty_file_has_no_results(cli: Any, tmp_path: Path) -> None:
    ran = cli("solve", written(tmp_path / "in.jsonl"))
    assert (ran.status, ran.out) == (0, "")
    assert "no problems" in ran.err
