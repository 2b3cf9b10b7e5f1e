import numpy as np
import pytest

from poseidon.schedule import order_from_operations
from poseidon.simulate import build_graph, reference
from poseidon.simulate._levels import find_levels
from poseidon.simulate.listing import _chained


def kernel_levels(previous, sender, chained):
    levels = np.full(len(previous), -1, dtype=np.int32)
    reached = find_levels(*(np.array(a, dtype=np.int32) for a in (previous, sender, chained)), levels)
    return levels.tolist() if reached == len(previous) else None


@pytest.fixture(params=[kernel_levels, reference.find_levels], ids=["kernel", "twin"])
def levels_of(request):
    return request.param


def test_a_level_is_one_above_what_it_waits_for(levels_of):
    # Two stages with one micro-batch: F0 B0 and F0 B0.
    assert levels_of([-1, 0, -1, 2], [-1, 3, 0, -1], [0, 0, 0, 0]) == [0, 3, 1, 2]


def test_a_chained_operation_shares_the_level_before_it(levels_of):
    assert levels_of([-1, 0, -1, 2], [-1, 3, 0, -1], [0, 0, 0, 1]) == [0, 2, 1, 1]


def test_a_circle_has_no_levels(levels_of):
    assert levels_of([-1, 0, -1, 2], [3, -1, 1, -1], [0, 0, 0, 0]) is None


def test_no_operations_have_no_levels(levels_of):
    assert levels_of([], [], []) == []


def test_kernel_and_twin_agree(rng, make_order):
    operations = build_graph(make_order(rng)).operations
    arrays = (operations.previous, operations.sender, _chained(operations).astype(np.int32))
    assert kernel_levels(*arrays) == reference.find_levels(*(array.tolist() for array in arrays))


@pytest.mark.parametrize(
    ("previous", "sender", "chained"),
    [
        ([0, 0], [-1, -1], [0, 0]),
        ([-1, -2], [-1, -1], [0, 0]),
        ([-1, 0], [-1, 2], [0, 0]),
        ([-1, 0], [-2, -1], [0, 0]),
        ([-1, -1, -1], [-1, 0, 0], [0, 0, 0]),
        ([-1, 0], [-1, -1], [1, 0]),
        ([-1, -1, 1], [-1, -1, 0], [0, 0, 1]),
    ],
    ids=[
        "own-previous",
        "odd-previous",
        "no-such-sender",
        "odd-sender",
        "two-receivers",
        "chained-first",
        "chained-receiver",
    ],
)
def test_arrays_that_are_no_operations_are_refused(previous, sender, chained):
    with pytest.raises(ValueError, match="do not describe operations numbered stage by stage"):
        kernel_levels(previous, sender, chained)


def test_arrays_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="one entry per operation"):
        kernel_levels([-1, 0], [-1], [0, 0])


def test_a_deadlock_is_found_by_the_levels():
    order = order_from_operations([["F0", "B0", "F1", "B1"], ["F1", "B1", "F0", "B0"]], 2)
    with pytest.raises(ValueError, match="wait for each other in a circle"):
        build_graph(order)
