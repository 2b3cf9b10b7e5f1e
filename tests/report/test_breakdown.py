"""Where the time goes: by hand, against a judge that reads the timeline operation by operation, and against plans."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from poseidon.plan.plan import Plan
from poseidon.report import Simulated, break_down, simulated_plan, simulated_stages
from poseidon.report.breakdown import stage_of
from poseidon.schedule import get_schedule
from poseidon.simulate import StagesFile, Timeline, stage_times


def two_stages(transfers: str = "overlapped") -> Simulated:
    """Two micro-batches: forward 2, backward 4, messages 1, all-reduce 3 on the first stage."""
    times = stage_times(
        [2.0, 2.0], [4.0, 4.0], send_forward_ms=[1.0, 0.0], send_backward_ms=[0.0, 1.0], all_reduce_ms=[3.0, 0.0]
    )
    return simulated_stages(StagesFile("1f1b", get_schedule("1f1b").order(2, 2), times, transfers), "f", "two")


def test_overlapped_transfers_by_hand() -> None:
    """Stage 0: F0 0-2, F1 2-4, B0 10-14, B1 16-20, all-reduce -23. Stage 1: F0 3-5, B0 5-9, F1 9-11, B1 11-15."""
    simulated = two_stages()
    first, last = break_down(simulated).stages
    assert simulated.iteration_time_ms == 23.0
    assert (first.compute_ms, first.exposed_transfer_ms, first.bubble_ms, first.all_reduce_ms) == (12, 2, 6, 3)
    assert (last.compute_ms, last.exposed_transfer_ms, last.bubble_ms, last.all_reduce_ms) == (12, 1, 10, 0)


def test_blocking_transfers_by_hand() -> None:
    """Of docs/schedules.md: F0 0-2, sent 2-3, F1 3-5; stage 1 sends B0 and gets F1 from 9 to 10; B1 is sent 16-17."""
    simulated = two_stages("blocking")
    first, last = break_down(simulated).stages
    assert simulated.iteration_time_ms == 24.0
    assert (first.compute_ms, first.exposed_transfer_ms, first.bubble_ms, first.all_reduce_ms) == (12, 3, 6, 3)
    assert (last.compute_ms, last.exposed_transfer_ms, last.bubble_ms, last.all_reduce_ms) == (12, 3, 9, 0)


def judged(timeline: Timeline) -> list[float]:
    """Exposed transfers of each stage, from the names of the operations alone."""
    order = timeline.order
    last = order.num_stages * order.num_chunks - 1
    ends = {
        (item.action.kind, order.virtual_stage(item.stage, item.action.chunk), item.action.microbatch): item.end_ms
        for item in timeline.operations()
    }
    exposed = [0.0] * order.num_stages
    free = [0.0] * order.num_stages
    for item in timeline.operations():
        virtual = order.virtual_stage(item.stage, item.action.chunk)
        kind, microbatch = item.action.kind, item.action.microbatch
        sent = None
        if kind == "F" and virtual > 0:
            sent = ends["F", virtual - 1, microbatch]
        elif kind in "BI" and virtual < last:
            sent = ends.get(("B", virtual + 1, microbatch), ends.get(("I", virtual + 1, microbatch)))
        if sent is not None and item.start_ms > free[item.stage]:
            exposed[item.stage] += item.start_ms - max(free[item.stage], sent)
        free[item.stage] = item.end_ms
    return exposed


def test_the_parts_of_every_stage_add_up_to_the_iteration_time(random_iteration: Simulated) -> None:
    breakdown, timeline = break_down(random_iteration), random_iteration.timeline
    for parts, use in zip((*breakdown.stages, breakdown.devices), (*timeline.stages, None), strict=True):
        assert parts.total_ms == pytest.approx(timeline.iteration_time_ms, rel=1e-12)
        assert min(parts.compute_ms, parts.exposed_transfer_ms, parts.bubble_ms, parts.all_reduce_ms) >= 0
        if use is not None:
            assert parts.compute_ms == use.compute_ms
            assert parts.exposed_transfer_ms + parts.bubble_ms == pytest.approx(use.bubble_ms, abs=1e-9)
    path = breakdown.path
    assert sum(path.stages) + path.transfers + path.all_reduce == pytest.approx(1.0, rel=1e-12)


def test_exposed_transfers_are_those_of_the_judge(overlapped_iteration: Simulated) -> None:
    found = [parts.exposed_transfer_ms for parts in break_down(overlapped_iteration).stages]
    assert found == pytest.approx(judged(overlapped_iteration.timeline), abs=1e-9)


def test_a_blocking_message_travels_while_both_its_stages_stand_still(blocking_iteration: Simulated) -> None:
    timeline, messages = blocking_iteration.timeline, blocking_iteration.messages
    stages = stage_of(timeline)
    for ends in (messages.sender, messages.receiver):
        for sent, arrived, stage in zip(messages.sent_ms, messages.arrived_ms, stages[ends], strict=True):
            mine = stages == stage
            overlap = np.minimum(timeline.end_ms[mine], arrived) - np.maximum(timeline.start_ms[mine], sent)
            assert overlap.max() <= 1e-9


def test_messages_leave_after_their_operation_and_arrive_before_the_next(random_iteration: Simulated) -> None:
    timeline, messages = random_iteration.timeline, random_iteration.messages
    assert (messages.sent_ms >= timeline.end_ms[messages.sender] - 1e-9).all()
    assert (messages.arrived_ms <= timeline.start_ms[messages.receiver] + 1e-9).all()
    assert (messages.arrived_ms >= messages.sent_ms).all()


def test_without_transfers_nothing_is_exposed() -> None:
    times = stage_times([1.0, 3.0, 2.0], [2.0, 1.0, 5.0])
    simulated = simulated_stages(StagesFile("1f1b", get_schedule("1f1b").order(3, 4), times), "f", "three")
    assert [parts.exposed_transfer_ms for parts in break_down(simulated).stages] == [0, 0, 0]


@pytest.mark.parametrize("schedule", ["1f1b", "eager_1f1b", "gpipe", "interleaved_1f1b", "adaptive_1f1b"])
def test_the_numbers_are_those_of_the_plan(make_plan: Callable[..., Plan], schedule: str) -> None:
    plan = make_plan(training={"schedules": [schedule]}, cluster={"links": SLOW_LINKS})
    breakdown = break_down(simulated_plan(plan, "plan.json"))
    pipeline = plan.pipeline
    assert breakdown.path == pipeline.critical_path
    for parts, stage in zip(breakdown.stages, pipeline.stages, strict=True):
        assert parts.exposed_transfer_ms + parts.bubble_ms == pytest.approx(stage.bubble_ms, rel=1e-12)
        assert parts.all_reduce_ms == stage.all_reduce_ms
        per_micro_batch = sum(stage.forward_ms) + sum(stage.backward_ms)
        assert parts.compute_ms == pytest.approx(pipeline.num_micro_batches * per_micro_batch)
    devices = breakdown.devices
    waiting = (devices.exposed_transfer_ms + devices.bubble_ms) / pipeline.iteration_time_ms
    assert waiting == pytest.approx(pipeline.bubble_fraction)
    assert any(parts.exposed_transfer_ms > 0 for parts in breakdown.stages)


SLOW_LINKS = {"intra_node": {"bandwidth_gbps": 800.0}, "inter_node": {"bandwidth_gbps": 5.0}}


def test_a_stage_is_never_two_things_at_once(random_iteration: Simulated) -> None:
    """What is drawn of a stage does not overlap: operations, then its all-reduce."""
    timeline, messages = random_iteration.timeline, random_iteration.messages
    by_stage: dict[int, list[tuple[float, float]]] = {}
    for item in timeline.operations():
        by_stage.setdefault(item.stage, []).append((item.start_ms, item.end_ms))
    for stage, spans in by_stage.items():
        start = float(messages.all_reduce_ms[stage])
        spans.append((start, start + timeline.stages[stage].all_reduce_ms))
        assert all(after[0] >= before[1] - 1e-9 for before, after in pairwise(spans))
        assert spans[-1][1] <= timeline.iteration_time_ms + 1e-9
