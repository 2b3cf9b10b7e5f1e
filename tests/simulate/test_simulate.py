"""The iteration time and the timeline, by hand on tiny pipelines and against the judge on random ones."""

import random

import pytest

from poseidon.schedule import get_schedule, order_from_operations, order_to_operations
from poseidon.simulate import build_graph, iteration_time, iteration_times, simulate, stage_times


def test_two_stages_by_hand():
    # Half a millisecond each way; the first stage's all-reduce of 5 follows its last backward.
    order = get_schedule("1f1b").order(2, 2)
    times = stage_times([1, 1], [2, 5], send_forward_ms=[0.5, 0], send_backward_ms=[0, 0.5], all_reduce_ms=[5, 0])
    timeline = simulate(order, times)
    spans = [(o.stage, o.action.operation(), o.start_ms, o.end_ms) for o in timeline.operations()]
    assert spans == [
        (0, "F0", 0, 1),
        (0, "F1", 1, 2),
        (0, "B0", 8, 10),
        (0, "B1", 14, 16),
        (1, "F0", 1.5, 2.5),
        (1, "B0", 2.5, 7.5),
        (1, "F1", 7.5, 8.5),
        (1, "B1", 8.5, 13.5),
    ]
    assert timeline.iteration_time_ms == 21


def test_one_stage_runs_without_waiting():
    timeline = simulate(get_schedule("gpipe").order(1, 3), stage_times([2], [3], all_reduce_ms=[4]))
    assert timeline.iteration_time_ms == 19
    assert timeline.stages[0].bubble_ms == 0


def test_balanced_1f1b_has_the_textbook_bubble():
    num_stages, num_micro_batches = 4, 8
    timeline = simulate(get_schedule("1f1b").order(num_stages, num_micro_batches), stage_times([1] * 4, [2] * 4))
    assert timeline.iteration_time_ms == 3 * (num_micro_batches + num_stages - 1)
    assert timeline.bubble_fraction == pytest.approx((num_stages - 1) / (num_micro_batches + num_stages - 1))


def test_interleaving_divides_the_textbook_bubble_by_the_chunks():
    order = get_schedule("interleaved_1f1b").order(4, 8, 2)
    timeline = simulate(order, stage_times([[1, 1]] * 4, [[2, 2]] * 4))
    assert timeline.iteration_time_ms == 3 * (2 * 8 + 3)


def test_eager_1f1b_hides_transfers_that_1f1b_waits_for():
    order, eager = get_schedule("1f1b").order(4, 32), get_schedule("eager_1f1b").order(4, 32)
    times = stage_times([20] * 4, [40] * 4, send_forward_ms=[30] * 4, send_backward_ms=[30] * 4)
    # The first micro-batch's way down and up, and then 31 on the last stage without a gap.
    assert simulate(eager, times).iteration_time_ms == 4 * 60 + 6 * 30 + 31 * 60
    assert simulate(order, times).iteration_time_ms > 1.4 * simulate(eager, times).iteration_time_ms


def test_depths_hide_links_as_deep_as_they_are_long():
    adaptive = get_schedule("adaptive_1f1b")

    def time(depth, transfer_ms):
        hop = [transfer_ms] * 4
        times = stage_times([20] * 4, [40] * 4, send_forward_ms=hop, send_backward_ms=hop)
        return simulate(adaptive.order(4, 32, depths=(depth,) * 3), times).iteration_time_ms

    for transfer_ms, depth in ((30, 2), (60, 3), (90, 4)):
        assert time(depth, transfer_ms) < time(depth - 1, transfer_ms)
        assert time(depth, transfer_ms) == time(depth + 1, transfer_ms)


def test_the_hop_between_chunks_takes_the_last_stages_transfers():
    order = get_schedule("interleaved_1f1b").order(2, 2, 2)
    times = stage_times([[1, 1]] * 2, [[1, 1]] * 2)
    slow = stage_times([[1, 1]] * 2, [[1, 1]] * 2, send_forward_ms=[0, 10], send_backward_ms=[10, 0])
    assert simulate(order, slow).iteration_time_ms > simulate(order, times).iteration_time_ms + 15


def test_the_judge_agrees(rng, judge, make_order, make_times):
    order = make_order(rng)
    times = make_times(rng, order.num_stages, order.num_chunks)
    timeline = simulate(order, times)
    assert timeline.iteration_time_ms == judge(order_to_operations(order), times, order.num_chunks)


def test_the_judge_agrees_where_backwards_are_split(rng, judge, make_order, make_times):
    order = make_order(rng)
    operations = split_some_backwards(rng, order_to_operations(order))
    times = make_times(rng, order.num_stages, order.num_chunks)
    split = order_from_operations(operations, order.num_micro_batches, order.num_chunks)
    assert simulate(split, times).iteration_time_ms == judge(operations, times, order.num_chunks)


def split_some_backwards(rng, operations):
    """Replaces backwards by their two parts, the weight part some operations later."""
    result = []
    for names in operations:
        out, waiting = [], []
        for name in names:
            if waiting and rng.random() < 0.5:
                out.append(waiting.pop(0))
            if name[0] == "B" and rng.random() < 0.7:
                out.append("I" + name[1:])
                waiting.append("W" + name[1:])
            else:
                out.append(name)
        result.append(out + waiting)
    return result


def test_a_zero_bubble_order_beats_1f1b():
    # ZB-H1 in small: weight parts fill the bubbles that 1F1B leaves (arXiv 2401.10241).
    operations = [
        ["F0", "F1", "I0", "F2", "W0", "I1", "W1", "I2", "W2"],
        ["F0", "I0", "F1", "W0", "I1", "F2", "W1", "I2", "W2"],
    ]
    times = stage_times([2, 2], [4, 4])
    split = simulate(order_from_operations(operations, 3), times)
    assert split.iteration_time_ms < simulate(get_schedule("1f1b").order(2, 3), times).iteration_time_ms


def test_a_graph_is_reused_with_new_weights(make_times):
    rng = random.Random(1)
    graph = build_graph(get_schedule("1f1b").order(4, 8))
    for _ in range(5):
        times = make_times(rng, 4)
        assert iteration_time(graph, times) == simulate(graph.order, times).iteration_time_ms
        assert simulate(graph, times).iteration_time_ms == iteration_time(graph, times)


@pytest.mark.parametrize("num_candidates", [0, 1, 7, 8, 9, 20])
def test_candidates_together_give_the_times_of_each_alone(make_times, num_candidates):
    rng = random.Random(num_candidates)
    graph = build_graph(get_schedule("interleaved_1f1b").order(3, 6, 2))
    candidates = [make_times(rng, 3, 2) for _ in range(num_candidates)]
    assert iteration_times(graph, candidates) == [iteration_time(graph, times) for times in candidates]


def test_operations_start_when_the_stage_is_free_and_the_message_is_there(rng, make_order, make_times):
    order = make_order(rng)
    times = make_times(rng, order.num_stages, order.num_chunks)
    timeline = simulate(order, times)
    for operation in timeline.operations():
        kind = {"F": times.forward_ms, "B": times.backward_ms}[operation.action.kind]
        assert operation.end_ms == operation.start_ms + kind[operation.stage, operation.action.chunk]
        assert 0 <= operation.start_ms <= operation.end_ms <= timeline.iteration_time_ms


def test_busy_is_compute_and_all_reduce_and_the_rest_is_bubble(rng, make_order, make_times):
    order = make_order(rng)
    timeline = simulate(order, make_times(rng, order.num_stages, order.num_chunks))
    computed = [0.0] * order.num_stages
    for operation in timeline.operations():
        computed[operation.stage] += operation.end_ms - operation.start_ms
    for use, compute_ms in zip(timeline.stages, computed, strict=True):
        assert use.compute_ms == pytest.approx(compute_ms)
        assert use.busy_ms == use.compute_ms + use.all_reduce_ms
        assert use.busy_ms + use.bubble_ms == pytest.approx(timeline.iteration_time_ms)
    assert 0 <= timeline.bubble_fraction < 1


def test_a_pipeline_that_takes_no_time_has_no_bubble():
    timeline = simulate(get_schedule("1f1b").order(2, 2), stage_times([0, 0], [0, 0]))
    assert (timeline.iteration_time_ms, timeline.bubble_fraction) == (0, 0)


def test_times_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"times of \(stages, chunks\) = \(2, 1\) do not fit a graph of \(3, 1\)"):
        simulate(get_schedule("1f1b").order(3, 3), stage_times([1, 1], [1, 1]))


def test_an_order_that_cannot_be_run_is_refused_with_its_mistake():
    with pytest.raises(ValueError, match=r"cannot be run: stage 0 never runs B1 \(or I1 and W1\)"):
        simulate(order_from_operations([["F0", "F1", "B0"]], 2), stage_times([1], [1]))
