from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.cost.memory import StageMemory
from poseidon.errors import InputError
from poseidon.explain.against_view import comparison_text
from poseidon.explain.difference import STEP_MS, Comparison, compared
from poseidon.plan import CriticalPathShares, NodeDevices, Pipeline, Plan, PlannedStage, pipeline_timeline
from poseidon.plan.time_breakdown import pipeline_breakdown

MEMORY = StageMemory(0, 0, 0, 0, 0, 0, 1, 1)


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """A pipeline with any times."""
    num_stages, chunks = draw(st.integers(1, 4)), 1
    schedule = draw(st.sampled_from(("1f1b", "gpipe", "eager_1f1b")))
    times = st.floats(0.01, 50)
    stages = tuple(
        PlannedStage(
            kind="a/tp1",
            accelerator="a",
            tp=1,
            layer_ranges=((index, index + 1),),
            devices=(NodeDevices(index, (0,)),),
            ranks=(index,),
            forward_ms=(draw(times),),
            backward_ms=(draw(times),),
            send_forward_ms=draw(times) if index < num_stages - 1 else 0.0,
            send_backward_ms=draw(times) if index else 0.0,
            all_reduce_ms=draw(times),
            bubble_ms=0.0,
            memory=MEMORY,
        )
        for index in range(num_stages)
    )
    micro_batches = draw(st.integers(1, 6))
    shares = CriticalPathShares((0.0,) * num_stages, 0.0, 0.0)
    pipeline = Pipeline("", schedule, 1, 1, micro_batches, chunks, (), "none", 0, 0, 0, 0, shares, stages, ())
    return replace(pipeline, iteration_time_ms=pipeline_timeline(pipeline).iteration_time_ms)


@given(pipelines(), pipelines())
def test_the_parts_add_up_to_the_difference_exactly(this: Pipeline, other: Pipeline) -> None:
    comparison = Comparison(this, other, pipeline_breakdown(this), pipeline_breakdown(other), (), ())
    assert sum(comparison.parts_ms) == comparison.difference_ms
    difference_ms = other.iteration_time_ms - this.iteration_time_ms
    assert math.isclose(comparison.difference_ms, difference_ms, rel_tol=0, abs_tol=STEP_MS)
    for part, ours, theirs in zip(
        comparison.parts_ms, comparison.this_time.parts, comparison.other_time.parts, strict=True
    ):
        assert math.isclose(part, theirs - ours, abs_tol=4 * STEP_MS)


def test_a_plan_against_itself_differs_in_nothing(make_plan: Callable[..., Plan]) -> None:
    plan = make_plan()
    comparison = compared(plan, plan, "a.json", "b.json")
    assert (comparison.inputs, comparison.settings, set(comparison.parts_ms)) == ((), (), {0.0})
    assert "Both take the same time." in comparison_text(comparison, ("a", "b"), io.StringIO())


def test_settings_and_inputs_that_differ_are_named(make_plan: Callable[..., Plan]) -> None:
    this, other = (
        make_plan(),
        make_plan(search={"fixed_dp": 1, "fixed_tp": 1}, training={"recompute": "full"}),
    )
    comparison = compared(this, other, "a.json", "b.json")
    inputs = {item.name: (item.this, item.other) for item in comparison.inputs}
    assert inputs["training.recompute"] == ("none", "full")
    assert inputs["search.fixed_dp"] == ("none", "1")
    settings = {item.name: (item.this, item.other) for item in comparison.settings}
    assert settings["recompute"] == ("none", "full")
    assert settings["PP"] == (str(this.pipeline.pp), "4")
    text = comparison_text(comparison, ("a.json", "b.json"), io.StringIO())
    assert f"mostly by {comparison.main_part}" in text


def test_another_cluster_is_said_and_not_refused(make_plan: Callable[..., Plan]) -> None:
    nodes = [{"accelerator": "fast", "count": 3, "devices": 2}]
    comparison = compared(make_plan(), make_plan(cluster={"nodes": nodes}), "a.json", "b.json")
    [cluster] = [item for item in comparison.inputs if item.name == "cluster"]
    assert (cluster.this, cluster.other) == ("two-types, 4 devices", "two-types, 6 devices")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": {"num_layers": 9}}, "inputs.model.num_layers: is 9, but 8 in a.json: only iterations of the same"),
        ({"training": {"global_batch_size": 32}}, "inputs.training.global_batch_size: is 32, but 16 in a.json"),
        ({"training": {"seq_length": 512}}, "inputs.training.seq_length: is 512, but 1024 in a.json"),
    ],
)
def test_another_job_is_refused(make_plan: Callable[..., Plan], changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError) as caught:
        compared(make_plan(), make_plan(**changes), "a.json", "b.json")
    assert str(caught.value).startswith("b.json: ")
    assert reason in str(caught.value)
