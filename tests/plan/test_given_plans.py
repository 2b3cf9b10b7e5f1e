"""Plans whose stages were given one by one: the checks find what was tampered with."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from poseidon.errors import InputError
from poseidon.inputs.experiment import experiment_from_resolved, load_experiment
from poseidon.output.plan_file import read_plan, write_plan
from poseidon.plan import Plan, Verdict, check_plan
from poseidon.planner import find_plan

Write = Callable[..., Path]


@pytest.fixture
def plan(write_experiment: Write) -> Plan:
    """Metis' plan with 0.6 GB a device: (1, 4) on the first stage, (2, 2) on the others."""
    cluster = {
        "accelerators": {
            "fast": {"peak_tflops": 200.0, "memory_gb": 0.6},
            "slow": {"peak_tflops": 100.0, "memory_gb": 0.6},
        },
        "nodes": [
            {"accelerator": "fast", "count": 2, "devices": 4},
            {"accelerator": "slow", "count": 2, "devices": 4},
        ],
    }
    found = find_plan(load_experiment(write_experiment(cluster=cluster, search={"policy": "metis"})))
    assert isinstance(found, Plan)
    assert found.pipeline.dp_differs
    return found


def wrong(plan: Plan) -> set[str]:
    return {finding.check for finding in check_plan(plan) if finding.verdict is Verdict.WRONG}


def test_untouched_it_is_right(plan: Plan) -> None:
    assert {finding.verdict for finding in check_plan(plan)} == {Verdict.RIGHT}


def test_another_tp_is_found(plan: Plan, change_stage: Callable[..., Plan]) -> None:
    changed = change_stage(plan, 1, tp=4)
    assert wrong(changed) or Verdict.NOT_CHECKED in {finding.verdict for finding in check_plan(changed)}


def test_a_wrong_time_is_found(plan: Plan, change_stage: Callable[..., Plan]) -> None:
    stage = plan.pipeline.stages[0]
    assert "stage times" in wrong(change_stage(plan, 0, forward_ms=(stage.forward_ms[0] * 0.9,)))
    assert "stage times" in wrong(change_stage(plan, 0, send_forward_ms=stage.send_forward_ms * 0.9))
    assert "stage times" in wrong(change_stage(plan, 1, all_reduce_ms=0.0))


def test_too_little_memory_is_found(plan: Plan, change_stage: Callable[..., Plan]) -> None:
    memory = replace(plan.pipeline.stages[0].memory, optimizer_bytes=0.0)
    assert "memory" in wrong(change_stage(plan, 0, memory=memory))


def test_the_batch_must_divide(plan: Plan) -> None:
    pipeline = replace(plan.pipeline, num_micro_batches=3 * plan.pipeline.num_micro_batches)
    assert "settings" in wrong(replace(plan, pipeline=pipeline))


def test_a_bound_that_was_made_up_is_found(plan: Plan) -> None:
    """A plan of the rivals may not pass for optimal."""
    from poseidon.search.result import SolutionStatus

    time_ms = plan.pipeline.iteration_time_ms
    claimed = replace(plan, status=SolutionStatus.OPTIMAL, lower_bound_ms=time_ms, gap=0.0)
    assert "lower bound" in wrong(claimed)


def test_the_file_says_dp_and_micro_batch_of_every_stage(plan: Plan, tmp_path: Path) -> None:
    path = write_plan(plan, tmp_path)
    data = json.loads(path.read_text())
    sequences = data["dp"] * data["micro_batch_size"]
    assert {stage["dp"] * stage["micro_batch_size"] for stage in data["stages"]} == {sequences}
    assert len({stage["dp"] for stage in data["stages"]}) > 1
    assert read_plan(path).pipeline.stages == tuple(
        replace(stage, memory=again.memory)
        for stage, again in zip(plan.pipeline.stages, read_plan(path).pipeline.stages, strict=True)
    )


@pytest.mark.parametrize("field", ["dp", "micro_batch_size"])
def test_a_file_that_contradicts_itself_is_refused(plan: Plan, tmp_path: Path, field: str) -> None:
    path = write_plan(plan, tmp_path)
    data = json.loads(path.read_text())
    data["stages"][0][field] *= 2
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=rf"stages\[0\]\.{field}"):
        read_plan(path)


def test_plans_with_one_dp_are_written_as_ever(write_experiment: Write, tmp_path: Path) -> None:
    ordinary = find_plan(load_experiment(write_experiment()))
    assert isinstance(ordinary, Plan)
    data = json.loads(write_plan(ordinary, tmp_path).read_text())
    assert all("dp" not in stage and "micro_batch_size" not in stage for stage in data["stages"])


def test_with_hardly_enough_memory_it_beats_every_plan_with_one_dp(plan: Plan) -> None:
    """Why docs/rivals.md claims nothing about plans whose stages differ in DP: here one is the fastest."""
    data = plan.experiment.model_dump(mode="json")
    data["search"] |= {"policy": "exact", "tp": "per-stage", "assignment": "stage"}
    exact = find_plan(experiment_from_resolved(data))
    assert isinstance(exact, Plan)
    assert str(exact.status) == "optimal"
    assert plan.pipeline.iteration_time_ms < exact.pipeline.iteration_time_ms
