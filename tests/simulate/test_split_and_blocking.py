"""Split backwards, chunks in a V and blocking transfers: kernel, plain-Python twin and an independent judge agree."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poseidon.schedule import Action, find_schedule, order_from_operations, order_to_operations
from poseidon.simulate import OperationStep, TransferStep, build_blocking_graph, build_graph, simulate, stage_times
from poseidon.simulate.reference import longest_path

# The fixtures are plain functions, the same for every example.
SHARED = [HealthCheck.function_scoped_fixture]


@st.composite
def orders(draw):
    """Orders of every schedule; whole backwards are split here and there, weight parts put off by a while."""
    name = draw(
        st.sampled_from(["1f1b", "eager_1f1b", "gpipe", "interleaved_1f1b", "zb_h1", "zb_h2", "zbv", "dualpipev"])
    )
    num_stages = draw(st.integers(1, 4))
    num_chunks = {"interleaved_1f1b": draw(st.integers(1, 3)), "zbv": 2, "dualpipev": 2}.get(name, 1)
    if name == "zb_h1" and draw(st.booleans()):
        num_chunks = 2
    least = {"interleaved_1f1b": num_stages, "dualpipev": 2 * num_stages, "zb_h1": 1}.get(name, 1)
    num_micro_batches = draw(st.integers(least, least + 6))
    if num_chunks > 1:
        num_micro_batches = max(1, num_micro_batches // num_stages) * num_stages
    order = find_schedule(name).order(num_stages, num_micro_batches, num_chunks)
    if not draw(st.booleans()):
        return order
    return replace(order, stages=tuple(tuple(_split(draw, actions)) for actions in order.stages))


def _split(draw, actions):
    waiting = []
    for action in actions:
        if waiting and draw(st.booleans()):
            yield waiting.pop(0)
        if action.kind == "B" and draw(st.booleans()):
            yield Action("I", action.microbatch, action.chunk)
            waiting.append(Action("W", action.microbatch, action.chunk))
        else:
            yield action
    yield from waiting


@st.composite
def timed_orders(draw):
    order = draw(orders())
    number = st.integers(0, 8).map(lambda quarters: quarters / 4)

    def chunks():
        return [[draw(number) for _ in range(order.num_chunks)] for _ in range(order.num_stages)]

    def stages():
        return [draw(number) for _ in range(order.num_stages)]

    forward, backward, inputs, weights = chunks(), chunks(), chunks(), chunks()
    times = stage_times(
        forward,
        backward,
        input_ms=inputs,
        weight_ms=weights,
        send_forward_ms=stages(),
        send_backward_ms=stages(),
        all_reduce_ms=stages(),
    )
    return order, times


def assert_twins_agree(graph, times):
    weights = graph.weights(times)
    ends = np.empty(len(graph.listing.entries))
    time = graph.kernel.ends(*weights, ends)
    assert (time, ends.tolist()) == longest_path(graph.listing, *(array.tolist() for array in weights))
    assert graph.kernel.time(*weights) == time


@settings(max_examples=150, deadline=None, suppress_health_check=SHARED)
@given(timed_orders())
def test_overlapped_transfers_kernel_twin_and_judge(judge, timed):
    order, times = timed
    graph = build_graph(order)
    assert_twins_agree(graph, times)
    expected = judge(order_to_operations(order), times, order.num_chunks, order.placement)
    assert simulate(graph, times).iteration_time_ms == expected


@settings(max_examples=150, deadline=None, suppress_health_check=SHARED)
@given(timed_orders())
def test_blocking_transfers_kernel_twin_and_judge(blocking_judge, timed):
    order, times = timed
    try:
        expected = blocking_judge(order, times)
    except RecursionError:
        with pytest.raises(ValueError, match="the stages wait for each other"):
            build_blocking_graph(order)
        return
    graph = build_blocking_graph(order)
    assert_twins_agree(graph, times)
    assert simulate(graph, times).iteration_time_ms == pytest.approx(expected)


@settings(max_examples=60, deadline=None)
@given(timed_orders())
def test_a_blocking_path_runs_without_a_gap(timed):
    order, times = timed
    try:
        timeline = simulate(order, times, transfers="blocking")
    except ValueError:
        return
    path = timeline.critical_path
    assert path[0].start_ms == 0
    assert path[-1].end_ms == timeline.iteration_time_ms
    assert all(step.end_ms == following.start_ms for step, following in pairwise(path))


@settings(max_examples=60, deadline=None)
@given(timed_orders())
def test_blocking_never_makes_an_iteration_shorter(timed):
    order, times = timed
    overlapped = simulate(order, times)
    try:
        blocking = simulate(order, times, transfers="blocking")
    except ValueError:
        return
    assert blocking.iteration_time_ms >= overlapped.iteration_time_ms
    for one, other in zip(blocking.stages, overlapped.stages, strict=True):
        assert one.compute_ms == pytest.approx(other.compute_ms)


def times(num_stages, transfer_ms):
    hop = [transfer_ms] * num_stages
    return stage_times([2] * num_stages, [4] * num_stages, send_forward_ms=hop, send_backward_ms=hop)


def test_blocking_transfers_by_hand():
    # Stage 0: F0 until 2, sends it until 3, F1 until 5; stage 1: F0 from 3 to 5, B0 until 9. Then they meet: B0 goes
    # back and F1 over until 10; both go on, B0 until 14, F1 and B1 until 16; B1 goes back until 17 and ends at 21.
    timeline = simulate(find_schedule("1f1b").order(2, 2), times(2, 1), transfers="blocking")
    assert timeline.iteration_time_ms == 21
    assert timeline.transfers == "blocking"
    assert order_to_operations(timeline.order) == [["F0", "F1", "B0", "B1"], ["F0", "B0", "F1", "B1"]]
    assert timeline.start_ms.tolist() == [0, 3, 10, 17, 3, 5, 10, 12]


def test_a_stage_cannot_run_ahead_of_a_neighbour_that_must_be_there():
    gpipe = simulate(find_schedule("gpipe").order(2, 4), times(2, 1), transfers="blocking")
    assert gpipe.iteration_time_ms > simulate(find_schedule("gpipe").order(2, 4), times(2, 1)).iteration_time_ms
    starts = dict(zip(order_to_operations(gpipe.order)[0], gpipe.start_ms.tolist(), strict=False))
    # Forward, 1 ms to hand it over, forward, ...
    assert [starts[f"F{microbatch}"] for microbatch in range(4)] == [0, 3, 6, 9]


def test_without_transfer_times_blocking_1f1b_is_1f1b():
    for name, num_chunks in (("1f1b", 1), ("interleaved_1f1b", 2)):
        order = find_schedule(name).order(4, 8, num_chunks)
        shape = [[1.0] * num_chunks] * 4
        equal = stage_times(shape, shape)
        assert (
            simulate(order, equal, transfers="blocking").iteration_time_ms == simulate(order, equal).iteration_time_ms
        )


def test_an_order_whose_stages_cannot_meet_is_refused_and_says_who_waits():
    order = order_from_operations([["F0", "F1", "B1", "B0"], ["F0", "B0", "F1", "B1"]], 2)
    simulate(order, times(2, 1))
    with pytest.raises(
        ValueError, match=r"with blocking transfers .* stage 1 has B0 to send, but stage 0 is not there"
    ):
        simulate(order, times(2, 1), transfers="blocking")


def test_a_v_hands_over_within_a_stage_at_once():
    order = find_schedule("zbv").order(2, 1, 2)
    shape = [[1.0, 1.0]] * 2
    slow = stage_times(shape, shape, send_forward_ms=[10, 100], send_backward_ms=[100, 20])
    # F over 10, the turn is free, F back over 20; the gradient the other way: 10 and 20 again.
    path = simulate(order, slow).critical_path
    transfers = [step.end_ms - step.start_ms for step in path if isinstance(step, TransferStep)]
    assert transfers == [10, 20, 10, 20]
    names = [(step.stage, step.action.operation(2)) for step in path if isinstance(step, OperationStep)]
    assert names[:4] == [(0, "F0.0"), (1, "F0.0"), (1, "F0.1"), (0, "F0.1")]


def test_a_v_that_wants_its_second_chunk_first_deadlocks():
    operations = [["F0.0", "F0.1", "B0.1", "B0.0"], ["F0.1", "F0.0", "B0.0", "B0.1"]]
    order = order_from_operations(operations, 1, 2, "v")
    with pytest.raises(ValueError, match="cannot be run: the stages wait for each other in a circle"):
        simulate(order, stage_times([[1, 1]] * 2, [[1, 1]] * 2))


def test_zero_bubble_in_a_v_has_no_bubble_where_all_parts_are_equal():
    order = find_schedule("zbv").order(4, 12, 2)
    shape = [[1.0, 1.0]] * 4
    timeline = simulate(order, stage_times(shape, [[2.0, 2.0]] * 4))
    # Every stage works without a pause from its first forward on.
    firsts = [timeline.start_ms[place] for place in np.cumsum([0, *map(len, order.stages[:-1])])]
    for stage, use in enumerate(timeline.stages):
        assert use.compute_ms == 12 * 6
        assert use.bubble_ms >= firsts[stage]
    assert timeline.stages[0].bubble_ms <= 3
