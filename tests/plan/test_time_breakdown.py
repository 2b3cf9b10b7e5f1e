from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.plan.time_breakdown import time_breakdown
from poseidon.schedule import get_schedule
from poseidon.simulate import AllReduceStep, OperationStep, Timeline, TransferStep, simulate, stage_times


def test_the_parts_by_hand() -> None:
    """One micro-batch, 25 ms: stage 0 has 1 + 6 of work, stage 1 has 3 + 4, all of it on the path; the first counts.

    While stage 0 waits the path is in a message for 2 ms, in stage 1 for 7, in a message for 5; its all-reduce takes 4.
    """
    times = stage_times(
        [1.0, 3.0], [6.0, 4.0], send_forward_ms=[2.0, 0.0], send_backward_ms=[0.0, 5.0], all_reduce_ms=[4.0, 0.0]
    )
    breakdown = time_breakdown(simulate(get_schedule("1f1b").order(2, 1), times))
    assert breakdown.busiest == 0
    assert breakdown.parts == (7.0, 7.0, 7.0, 4.0)


def test_a_message_that_the_busiest_stage_computes_through_is_hidden() -> None:
    """Stage 0 runs its two forwards (1 ms each) while the first message (1.5 ms) travels: half of it is hidden."""
    times = stage_times(
        [1.0, 0.5], [1.0, 0.5], send_forward_ms=[1.5, 0.0], send_backward_ms=[0.0, 0.0], all_reduce_ms=[0.0, 0.0]
    )
    timeline = simulate(get_schedule("gpipe").order(2, 2), times)
    transfers = [step for step in timeline.critical_path if isinstance(step, TransferStep)]
    on_path = sum(step.end_ms - step.start_ms for step in transfers)
    assert on_path == 1.5
    assert time_breakdown(timeline).transfers_ms == by_sampling(timeline, 0)[1]


def by_sampling(timeline: Timeline, busiest: int) -> tuple[float, float, float, float]:
    """The breakdown the slow way: cut the iteration at every start and end, and look at each piece."""
    work = [stage.compute_ms for stage in timeline.stages]
    assert work[busiest] == pytest.approx(max(work), rel=1e-8)
    mine = [item for item in timeline.operations() if item.stage == busiest]
    cuts = {0.0, timeline.iteration_time_ms}
    for item in (*mine, *timeline.critical_path):
        cuts |= {item.start_ms, item.end_ms}
    ordered = sorted(cuts)
    parts = [0.0, 0.0, 0.0, 0.0]
    for start, end in pairwise(ordered):
        middle = (start + end) / 2
        if any(item.start_ms <= middle <= item.end_ms for item in mine):
            parts[0] += end - start
            continue
        [step] = [step for step in timeline.critical_path if step.start_ms < middle < step.end_ms]
        kind = 1 if isinstance(step, TransferStep) else 3 if isinstance(step, AllReduceStep) else 2
        assert kind != 2 or isinstance(step, OperationStep)
        parts[kind] += end - start
    return (parts[0], parts[1], parts[2], parts[3])


TIMES = st.floats(0.125, 8.0, width=16)


@given(data=st.data(), num_stages=st.integers(1, 4), num_micro_batches=st.integers(1, 6))
def test_it_is_what_looking_at_every_piece_gives(data: st.DataObject, num_stages: int, num_micro_batches: int) -> None:
    def drawn() -> list[float]:
        return data.draw(st.lists(TIMES, min_size=num_stages, max_size=num_stages))

    schedule = data.draw(st.sampled_from(("1f1b", "gpipe", "eager_1f1b")))
    times = stage_times(drawn(), drawn(), send_forward_ms=drawn(), send_backward_ms=drawn(), all_reduce_ms=drawn())
    timeline = simulate(get_schedule(schedule).order(num_stages, num_micro_batches), times)
    breakdown = time_breakdown(timeline)
    assert math.fsum(breakdown.parts) == timeline.iteration_time_ms
    assert min(breakdown.parts) >= 0
    for part, expected in zip(breakdown.parts, by_sampling(timeline, breakdown.busiest), strict=True):
        assert math.isclose(part, expected, abs_tol=1e-9)


def test_of_stages_with_as_much_work_the_one_on_the_path_counts() -> None:
    """Two stages of 2 ms; the path follows stage 1, which the other waits for at the end."""
    times = stage_times(
        [1.0, 1.0], [1.0, 1.0], send_forward_ms=[0.0, 0.0], send_backward_ms=[0.0, 0.0], all_reduce_ms=[0.0, 5.0]
    )
    timeline = simulate(get_schedule("1f1b").order(2, 4), times)
    assert time_breakdown(timeline).busiest == 1
