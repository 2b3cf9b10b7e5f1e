from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def plan_file(cli: Any, write_experiment: Callable[..., Path], tmp_path: Path) -> Path:
    assert cli("search", write_experiment(), "--out", tmp_path, "-q", "--fixed-tp", "1").status == 0
    return tmp_path / "plan.json"


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    return path


def test_a_right_plan(cli: Any, plan_file: Path) -> None:
    ran = cli("verify", plan_file)
    assert ran.status == 0
    assert ran.out.splitlines()[-1] == f"{plan_file}: all right"
    assert "no faster plan among all" in ran.out


def test_the_verdicts_as_json(cli: Any, plan_file: Path) -> None:
    data = cli("verify", plan_file, "--json", "-q").data
    assert data["right"] is True
    assert {check["verdict"] for check in data["checks"]} == {"ok"}


@pytest.mark.parametrize(
    ("field", "factor", "check"),
    [("iteration_time_ms", 1.01, "iteration time"), ("lower_bound_ms", 0.9, "status"), ("mfu", 1.1, "throughput")],
)
def test_a_wrong_number_is_found(cli: Any, plan_file: Path, field: str, factor: float, check: str) -> None:
    rewritten(plan_file, lambda data: data.update({field: data[field] * factor}))
    ran = cli("verify", plan_file)
    assert ran.status == 1
    assert any(line.startswith(check) and "WRONG" in line for line in ran.out.splitlines())
    assert "checks failed" in ran.out.splitlines()[-1]


def test_wrong_inputs_are_found(cli: Any, plan_file: Path) -> None:
    """The plan of a faster cluster does not fit the inputs any more."""
    rewritten(plan_file, lambda data: data["inputs"]["cluster"]["accelerators"]["fast"].update(peak_tflops=400.0))
    ran = cli("verify", plan_file, "--json", "-q")
    assert ran.status == 1
    assert {check["check"] for check in ran.data["checks"] if check["verdict"] == "wrong"} >= {"stage times"}


def _remove_stages(data: dict[str, Any]) -> None:
    del data["stages"]


def _text_for_number(data: dict[str, Any]) -> None:
    data["iteration_time_ms"] = "fast"


def _layers_and_range(data: dict[str, Any]) -> None:
    data["stages"][0]["layers"] += 1


def _pp(data: dict[str, Any]) -> None:
    data["pp"] += 1


def _memory(data: dict[str, Any]) -> None:
    data["stages"][0]["memory_bytes"] -= 10


def _inputs(data: dict[str, Any]) -> None:
    data["inputs"]["model"]["num_layers"] = -1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (_remove_stages, "stages: is missing"),
        (_text_for_number, "iteration_time_ms"),
        (_layers_and_range, "stages[0].layers"),
        (_pp, "pp"),
        (_memory, "stages[0].memory_bytes"),
        (_inputs, "inputs.model.num_layers"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("command", ["verify", "simulate"])
def test_a_corrupt_plan_is_one_line(
    cli: Any, plan_file: Path, change: Callable[[dict[str, Any]], None], field: str, command: str
) -> None:
    ran = cli(command, rewritten(plan_file, change))
    assert ran.status == 2
    assert ran.out == ""
    [line] = ran.mistakes
    assert line.startswith(f"{plan_file}: ")
    assert field in line


def test_another_schema_is_one_line(cli: Any, plan_file: Path) -> None:
    ran = cli("verify", rewritten(plan_file, lambda data: data.update(schema="poseidon.plan/2")))
    assert ran.status == 2
    assert ran.mistakes == [
        f"{plan_file}: schema: 'poseidon.plan/2' is not known; 'poseidon.plan/1' is expected in a plan"
    ]


def test_half_a_plan_file_is_one_line(cli: Any, plan_file: Path) -> None:
    plan_file.write_text(plan_file.read_text()[:500])
    ran = cli("verify", plan_file)
    assert ran.status == 2
    assert len(ran.mistakes) == 1
