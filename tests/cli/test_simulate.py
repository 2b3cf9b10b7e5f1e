from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STAGES: dict[str, Any] = {
    "schema": "poseidon.stages/1",
    "schedule": "1f1b",
    "num_micro_batches": 2,
    "num_chunks": 1,
    "stages": [
        {"forward_ms": 1, "backward_ms": 2, "send_forward_ms": 0.5, "send_backward_ms": 0, "all_reduce_ms": 4},
        {"forward_ms": 1, "backward_ms": 2, "send_forward_ms": 0, "send_backward_ms": 0.5, "all_reduce_ms": 0},
    ],
}
"""Stage 0: F0 0-1, F1 1-2, B0 5-7, B1 8-10, all-reduce 10-14; stage 1: F0 1.5-2.5, B0 -4.5, F1 -5.5, B1 -7.5."""


@pytest.fixture
def stages_file(tmp_path: Path) -> Path:
    path = tmp_path / "stages.json"
    path.write_text(json.dumps(STAGES))
    return path


def test_a_stages_file_by_hand(cli: Any, stages_file: Path) -> None:
    data = cli("simulate", stages_file, "--json", "-q").data
    assert data["iteration_time_ms"] == 14.0
    assert [stage["busy_ms"] for stage in data["stages"]] == [10.0, 6.0]
    assert [stage["bubble_ms"] for stage in data["stages"]] == [4.0, 8.0]
    assert data["critical_path"][0] == {"stage": 0, "operation": "F0", "start_ms": 0.0, "end_ms": 1.0}
    assert data["critical_path"][-1] == {"stage": 0, "all_reduce": True, "start_ms": 10.0, "end_ms": 14.0}
    assert "operations" not in data["stages"][0]


def test_the_timeline_has_every_operation(cli: Any, stages_file: Path) -> None:
    data = cli("simulate", stages_file, "--json", "-q", "--timeline").data
    assert data["stages"][0]["operations"] == [
        {"operation": "F0", "start_ms": 0.0, "end_ms": 1.0},
        {"operation": "F1", "start_ms": 1.0, "end_ms": 2.0},
        {"operation": "B0", "start_ms": 5.0, "end_ms": 7.0},
        {"operation": "B1", "start_ms": 8.0, "end_ms": 10.0},
    ]


def test_people_see_time_stages_and_critical_path(cli: Any, stages_file: Path) -> None:
    ran = cli("simulate", stages_file, "--timeline")
    assert ran.status == 0
    assert ran.out.startswith("14.00 ms an iteration, bubble 42.9 %")
    assert "Critical path: stage 0: F0 > stage 1: F0 B0 F1 B1 > stage 0: B1 all-reduce" in ran.out
    assert "Operation" in ran.out


@pytest.mark.parametrize("options", [[], ["--schedule", "interleaved_1f1b"], ["--schedule", "gpipe"]], ids=str)
def test_a_plan_takes_the_time_that_it_says(
    cli: Any, write_experiment: Callable[..., Path], tmp_path: Path, options: list[str]
) -> None:
    plan = cli("search", write_experiment(), "--out", tmp_path, "--json", "-q", *options).data
    simulated = cli("simulate", tmp_path / "plan.json", "--json", "-q").data
    assert simulated["iteration_time_ms"] == plan["iteration_time_ms"]
    assert [stage["bubble_ms"] for stage in simulated["stages"]] == [stage["bubble_ms"] for stage in plan["stages"]]


def test_a_file_of_another_kind_is_one_line(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"schema": "poseidon.profile/1"}')
    ran = cli("simulate", path)
    assert ran.status == 2
    assert "poseidon.profile/1" in ran.err
    assert "Traceback" not in ran.err


def test_blocking_transfers_and_peaks_by_hand(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "stages.json"
    sizes = {"activation_bytes": 3e9, "weight_input_bytes": 1e9}
    stages = [{**stage, **sizes} for stage in STAGES["stages"]]
    path.write_text(json.dumps({**STAGES, "schedule": "ZB-H1", "transfers": "blocking", "stages": stages}))
    data = cli("simulate", path, "--json", "-q").data
    # Stage 0: F0 0-1, sends it -1.5, F1 -2.5; stage 1: F0 1.5-2.5, I0 -3.5; they exchange -4; I0 and F1 -5, I1 -6, ...
    assert data["transfers"] == "blocking"
    assert data["stages"][0]["in_flight"] == 2
    assert [stage["peak_activation_bytes"] for stage in data["stages"]] == [6e9, 4e9]
    text = cli("simulate", path).out
    assert "transfers block" in text.splitlines()[0]
    assert "Peak GB" in text
    overlapped = {**STAGES, "schedule": "zb_h1", "stages": stages}
    path.write_text(json.dumps(overlapped))
    assert cli("simulate", path, "--json", "-q").data["iteration_time_ms"] < data["iteration_time_ms"]


def test_stages_that_cannot_meet_are_one_line(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "stages.json"
    operations = [["F0", "F1", "B1", "B0"], ["F0", "B0", "F1", "B1"]]
    path.write_text(json.dumps({**STAGES, "transfers": "blocking", "operations": operations}))
    ran = cli("simulate", path)
    assert ran.status == 2
    assert ran.err.count("\n") == 1
    assert "transfers: with blocking transfers the stages wait for each other: stage 1 has B0 to send" in ran.err
    assert "stage 0 is there to receive B1, but stage 1 has not made it" in ran.err


def test_the_search_refuses_a_schedule_that_is_only_simulated(cli: Any, write_experiment: Callable[..., Path]) -> None:
    ran = cli("search", write_experiment(), "--schedule", "zbv")
    assert ran.status == 2
    assert "zbv splits its backwards, which the search cannot do" in ran.err
