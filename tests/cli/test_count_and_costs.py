from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.cost.problem_file import read_problems
from poseidon.search.reference import all_configurations


@pytest.mark.parametrize("assignment", ["node", "stage"])
def test_the_count_is_that_of_an_enumeration(
    cli: Any, write_experiment: Callable[..., Path], tmp_path: Path, assignment: str
) -> None:
    options = (write_experiment(), "--assignment", assignment)
    cli("costs", *options, "--out", tmp_path / "costs.jsonl", "-q")
    problems = list(read_problems(tmp_path / "costs.jsonl"))
    enumerated = {problem.name: sum(1 for _ in all_configurations(problem)) for problem in problems}
    data = cli("count", *options, "--json", "-q").data
    assert {choice["name"]: choice["configurations"] for choice in data["outer_choices"]} == enumerated
    assert data["configurations"] == sum(enumerated.values()) > 0


def test_the_first_line_is_the_number_alone(cli: Any, write_experiment: Callable[..., Path]) -> None:
    ran = cli("count", write_experiment())
    assert ran.out.splitlines()[0] == str(cli("count", write_experiment(), "--json").data["configurations"])
    assert cli("count", write_experiment(), "-q").out == ran.out.splitlines()[0] + "\n"


def test_costs_are_what_solve_solves(cli: Any, write_experiment: Callable[..., Path], tmp_path: Path) -> None:
    ran = cli("costs", write_experiment(), "--out", tmp_path / "costs.jsonl")
    assert ran.status == 0
    assert ran.out == ""
    assert "outer choices of example" in ran.err
    solved = cli("solve", tmp_path / "costs.jsonl", "-q").lines
    best = min(result["iteration_time_ms"] for result in solved if result["status"] == "optimal")
    assert best == cli("search", write_experiment(), "--json", "-q").data["iteration_time_ms"]


def test_costs_go_to_standard_output_without_out(cli: Any, write_experiment: Callable[..., Path]) -> None:
    ran = cli("costs", write_experiment(), "-q")
    assert all(line["schema"] == "poseidon.problem/1" for line in ran.lines)


def test_costs_as_json_besides_the_file(cli: Any, write_experiment: Callable[..., Path], tmp_path: Path) -> None:
    ran = cli("costs", write_experiment(), "--json", "-q", "--out", tmp_path / "costs.jsonl")
    assert ran.lines == [json.loads(line) for line in (tmp_path / "costs.jsonl").read_text().splitlines()]
