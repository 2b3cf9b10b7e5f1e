"""Orders made for times and a memory limit: they run, keep to the limit and are shorter the more they may hold."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poseidon.schedule import SplitCost, automatic_order, check_order, in_flight, peak_in_flight


def equal_stages(num_stages, limit, times=(1.0, 1.0, 1.0), kept=1.0):
    return [SplitCost(*times, activation=1.0, kept=kept, limit=limit)] * num_stages


def span(order, cost, transfer_ms):
    """Longest time of a stage from its first forward to its end, by a recursion of our own."""
    duration = {"F": cost.forward_ms, "I": cost.input_ms, "W": cost.weight_ms}
    ends, clock, first, position = {}, [0.0] * order.num_stages, {}, [0] * order.num_stages
    while sum(position) < order.num_operations:
        for stage, actions in enumerate(order.stages):
            while position[stage] < len(actions):
                action = actions[position[stage]]
                sender = {"F": stage - 1, "I": stage + 1}.get(action.kind, -1)
                start = clock[stage]
                if 0 <= sender < order.num_stages:
                    if (action.kind, sender, action.microbatch) not in ends:
                        break
                    start = max(start, ends[action.kind, sender, action.microbatch] + transfer_ms)
                first.setdefault(stage, start)
                clock[stage] = start + duration[action.kind]
                ends[action.kind, stage, action.microbatch] = clock[stage]
                position[stage] += 1
    return max(end - first[stage] for stage, end in enumerate(clock))


def test_with_equal_parts_and_room_for_two_pipelines_there_is_no_bubble():
    costs = equal_stages(4, limit=8)
    assert span(automatic_order(costs, 12, 0.0), costs[0], 0.0) == 36


def test_with_room_for_one_pipeline_the_bubble_is_that_of_zb_h1():
    costs = equal_stages(4, limit=4)
    # (p - 1) (F + I - W) of arXiv 2401.10241, table 2.
    assert span(automatic_order(costs, 12, 0.0), costs[0], 0.0) == 36 + 3


def test_more_room_is_never_worse():
    times = [
        span(automatic_order(costs, 16, 0.1), costs[0], 0.1)
        for costs in (equal_stages(4, limit, (1.0, 1.1, 0.6), 0.4) for limit in (1, 2, 4, 6, 8))
    ]
    assert times == sorted(times, reverse=True)
    assert times[0] > 1.5 * times[-1]


number = st.integers(1, 12).map(lambda quarters: quarters / 4)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 5), st.integers(1, 12), st.integers(1, 12), number, number, number, st.integers(0, 4), number)
def test_every_order_runs_and_keeps_to_its_limit(stages, micro_batches, limit, forward, inputs, weights, kept, wire_ms):
    costs = [SplitCost(forward, inputs, weights, activation=1.0, kept=kept / 4, limit=limit)] * stages
    order = automatic_order(costs, micro_batches, wire_ms)
    assert check_order(order) == ()
    assert order.num_operations == 3 * stages * micro_batches
    assert max(peak_in_flight(order, [[1.0]] * stages, [[kept / 4]] * stages)) <= limit + 1e-9


def test_a_stage_that_holds_one_activation_takes_one_at_a_time():
    order = automatic_order(equal_stages(2, limit=1), 3, 0.0)
    assert in_flight(order) == (1, 1)


def test_a_stage_that_cannot_hold_a_single_activation_is_refused():
    with pytest.raises(ValueError, match="every stage must be able to hold the activation of one micro-batch"):
        automatic_order(equal_stages(2, limit=0.5), 4, 0.0)
