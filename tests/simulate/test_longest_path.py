"""The kernel and its plain-Python twin: the same tests on both, and the kernel's doors."""

import random
import threading
import time

import numpy as np
import pytest

from poseidon.schedule import get_schedule
from poseidon.simulate import NUM_LANES, LongestPath, build_graph, reference


def kernel_ends(graph, weights):
    ends = np.empty(len(graph.listing.entries))
    return graph.kernel.ends(*weights, ends), ends.tolist()


def twin_ends(graph, weights):
    return reference.longest_path(graph.listing, *(array.tolist() for array in weights))


@pytest.fixture(params=[kernel_ends, twin_ends], ids=["kernel", "twin"])
def find_ends(request):
    return request.param


@pytest.fixture
def graph():
    return build_graph(get_schedule("1f1b").order(3, 5))


@pytest.fixture
def weights(graph, make_times):
    return graph.weights(make_times(random.Random(7), 3))


def test_one_stage_adds_up(find_ends, make_times):
    graph = build_graph(get_schedule("1f1b").order(1, 2))
    weights = graph.weights(make_times(random.Random(3), 1))
    forward, backward = weights.durations.tolist()
    total, ends = find_ends(graph, weights)
    assert ends == [forward, forward + backward, forward + backward + forward, forward + backward + forward + backward]
    assert total == ends[-1] + weights.all_reduce[0]


def test_the_slowest_all_reduce_decides(find_ends, graph, weights):
    late = weights._replace(all_reduce=np.array([0.0, 1000.0, 0.0]))
    total, ends = find_ends(graph, late)
    assert total == ends[graph.listing.last[1] - 2] + 1000


def test_without_durations_and_transfers_nothing_takes_time(find_ends, graph, weights):
    nothing = weights._make(np.zeros_like(array) for array in weights)
    assert find_ends(graph, nothing) == (0, [0] * len(graph.listing.entries))


def test_kernel_and_twin_agree_to_the_last_bit(rng, make_order, make_times):
    order = make_order(rng)
    graph = build_graph(order)
    weights = graph.weights(make_times(rng, order.num_stages, order.num_chunks))
    assert kernel_ends(graph, weights) == twin_ends(graph, weights)


def test_the_lanes_agree_with_the_kernel_to_the_last_bit(rng, make_order, make_times):
    order = make_order(rng)
    graph = build_graph(order)
    candidates = [graph.weights(make_times(rng, order.num_stages, order.num_chunks)) for _ in range(NUM_LANES)]
    times = np.empty(NUM_LANES)
    graph.kernel.times(*(np.stack(arrays, axis=1) for arrays in zip(*candidates, strict=True)), times)
    assert times.tolist() == [graph.kernel.time(*weights) for weights in candidates]


def test_time_and_ends_give_the_same_iteration_time(graph, weights):
    assert graph.kernel.time(*weights) == kernel_ends(graph, weights)[0]


def test_read_only_weights_are_accepted(graph, weights):
    for array in weights:
        array.setflags(write=False)
    lanes = [np.repeat(array[:, None], NUM_LANES, axis=1) for array in weights]
    for array in lanes:
        array.setflags(write=False)
    times = np.empty(NUM_LANES)
    graph.kernel.times(*lanes, times)
    assert set(times.tolist()) == {graph.kernel.time(*weights)}


@pytest.mark.parametrize("index", range(3))
@pytest.mark.parametrize("number", [-1.0, float("nan"), float("inf")])
def test_weights_that_are_no_durations_are_refused(graph, weights, index, number):
    name = ("durations", "transfers", "all_reduce")[index]
    arrays = [array.copy() for array in weights]
    arrays[index][-1] = number
    lanes = [np.repeat(array[:, None], NUM_LANES, axis=1) for array in arrays]
    for call in (
        lambda: graph.kernel.time(*arrays),
        lambda: graph.kernel.ends(*arrays, np.empty(30)),
        lambda: graph.kernel.times(*lanes, np.empty(NUM_LANES)),
    ):
        with pytest.raises(ValueError, match=f"{name} must be finite and at least 0"):
            call()


@pytest.mark.parametrize("index", range(3))
def test_weights_of_another_length_are_refused(graph, weights, index):
    name = ("durations", "transfers", "all_reduce")[index]
    arrays = [*weights[:index], weights[index][:-1], *weights[index + 1 :]]
    with pytest.raises(ValueError, match=f"{name} needs {len(weights[index])} entries, not {len(weights[index]) - 1}"):
        graph.kernel.time(*arrays)
    with pytest.raises(ValueError, match=f"{name} needs"):
        graph.kernel.times(*(np.repeat(a[:, None], NUM_LANES, axis=1) for a in arrays), np.empty(NUM_LANES))


def test_weights_of_another_type_or_layout_are_refused(graph, weights):
    with pytest.raises(ValueError, match="dtype mismatch"):
        graph.kernel.time(weights.durations.astype(np.float32), *weights[1:])
    with pytest.raises(ValueError, match="not C-contiguous"):
        graph.kernel.time(np.repeat(weights.durations, 2)[::2], *weights[1:])


def test_results_need_room(graph, weights):
    with pytest.raises(ValueError, match="ends needs 30 entries, not 29"):
        graph.kernel.ends(*weights, np.empty(29))
    lanes = [np.repeat(array[:, None], NUM_LANES, axis=1) for array in weights]
    with pytest.raises(ValueError, match=f"need {NUM_LANES} columns"):
        graph.kernel.times(*lanes, np.empty(NUM_LANES - 1))


def int32(*numbers):
    return np.array(numbers, dtype=np.int32)


GOOD = {
    "previous": int32(1, 2),
    "sender": int32(1, 0),
    "slot": int32(0, 1),
    "link": int32(-1, -1),
    "last": int32(3),
    "num_links": 2,
}


def test_the_smallest_graph_is_accepted():
    path = LongestPath(**GOOD)
    assert path.time(np.array([1.0, 2.0]), np.zeros(2), np.array([4.0])) == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"previous": int32(1, 3)}, "operation 1 must come after what it waits for"),
        ({"previous": int32(0, 2)}, "operation 0 must come after what it waits for"),
        ({"sender": int32(2, 0)}, "operation 0 must come after what it waits for"),
        ({"sender": int32(-1, 0)}, "operation 0 must come after what it waits for"),
        ({"previous": int32(1, 1)}, "operation 1 is chained to an operation that is not right before it"),
        ({"slot": int32(0, 2)}, "operation 1 has no slot"),
        ({"slot": int32(-1, 1)}, "operation 0 has no slot"),
        ({"link": int32(-1, 2)}, "slot 1 has link 2 of 2"),
        ({"link": int32(-2, -1)}, "slot 0 has link -2 of 2"),
        ({"link": int32(-1, 1)}, "operation 1 must receive exactly if its slot has a link"),
        ({"last": int32(4)}, "stage 0 has no last operation"),
        ({"last": int32(1)}, "stage 0 has no last operation"),
        ({"sender": int32(1)}, "one entry per operation"),
        ({"last": int32()}, "a graph needs a stage"),
        ({"num_links": 0}, "a graph needs a stage, a link"),
        ({"num_links": 2**30}, "too large"),
    ],
)
def test_arrays_that_are_no_graph_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        LongestPath(**{**GOOD, **change})


def test_the_graph_keeps_its_own_copy_of_the_arrays():
    arrays = {name: array.copy() if name != "num_links" else array for name, array in GOOD.items()}
    path = LongestPath(**arrays)
    arrays["previous"][:] = 10**6
    assert path.time(np.array([1.0, 2.0]), np.zeros(2), np.array([0.0])) == 3


@pytest.mark.parametrize("door", ["time", "times"])
def test_the_kernel_releases_the_gil(door):
    graph = build_graph(get_schedule("1f1b").order(8, 256))
    weights = [np.ones(len(array)) for array in (np.empty(16), np.empty(16), np.empty(8))]
    if door == "times":
        weights = [*(np.repeat(array[:, None], NUM_LANES, axis=1) for array in weights), np.empty(NUM_LANES)]
    beats, stopped = 0, threading.Event()

    def beat():
        nonlocal beats
        while not stopped.is_set():
            beats += 1
            time.sleep(0.001)

    heart = threading.Thread(target=beat)
    heart.start()
    try:
        # A call that held the GIL would let the heart beat at most once, however long it takes.
        most, repeats = 0, 10_000
        while most < 5 and repeats < 10**6:
            before = beats
            getattr(graph.kernel, door)(*weights, repeats=repeats)
            most = max(most, beats - before)
            repeats *= 4
    finally:
        stopped.set()
        heart.join()
    assert most >= 5
