"""Metis' device groups: numbers counted by hand from the published rules."""

from __future__ import annotations

from math import prod

import pytest

from poseidon.search.rivals.device_groups import compositions, device_groups, distinct_orders, group_sizes, pieces


@pytest.mark.parametrize(
    ("devices", "stages", "variance", "expected"),
    [
        (8, 2, 1.0, (4, 8)),
        (8, 3, 1.0, (2, 4, 8)),  # an even share is 2 2/3: its whole devices count
        (8, 4, 0.5, (1, 2, 4, 8)),
        (16, 5, 1.0, (4, 8, 16)),
        (96, 12, 1.0, (8, 16, 32, 64)),
        (4, 8, 1.0, (2, 4)),  # more stages than devices: no groups that would do
    ],
)
def test_groups_are_powers_of_two_not_much_below_an_even_share(devices, stages, variance, expected):
    assert group_sizes(devices, stages, variance) == expected


@pytest.mark.parametrize(
    ("devices", "stages", "variance", "expected"),
    [
        (4, 1, 1.0, {(4,)}),
        (4, 2, 1.0, {(2, 2)}),
        (8, 3, 1.0, {(2, 2, 4), (2, 4, 2), (4, 2, 2)}),
        (16, 5, 1.0, set()),  # five groups of at least 4 are 20
        (6, 1, 1.0, set()),  # 6 is no power of two: Metis has no plan of one stage
        (6, 2, 0.5, {(2, 4), (4, 2)}),
    ],
)
def test_sequences_of_groups(devices, stages, variance, expected):
    found = list(device_groups(devices, stages, variance, 6))
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_a_smaller_variance_lets_more_groups_in():
    # 1 + 1 + 2 + 4 in 4! / 2! = 12 orders, and 2 + 2 + 2 + 2
    assert len(list(device_groups(8, 4, 0.5, 6))) == 13
    assert len(list(device_groups(8, 4, 1.0, 6))) == 1


def test_only_so_many_pieces_are_permuted():
    # Six groups of 1 and one of 2. Seven pieces: the 2 at any of seven places. At most six: the ones stay in pairs,
    # which leaves four pieces (this is the example in Metis' published code).
    assert pieces((1, 1, 1, 1, 1, 1, 2), 6) == ((1, 1), (1, 1), (1, 1), (2,))
    assert len(list(device_groups(8, 7, 1.0, 7))) == 7
    assert len(list(device_groups(8, 7, 1.0, 6))) == 4


def test_pairs_of_pairs():
    assert pieces((1,) * 8, 2) == ((1,) * 4, (1,) * 4)
    assert pieces((1,) * 5, 2) == ((1,), (1, 1), (1, 1))  # the odd one has no partner: no further


def test_every_composition_uses_all_devices_and_never_goes_down():
    for stages in range(1, 13):
        for groups in compositions(48, stages, group_sizes(48, stages, 0.5)):
            assert sum(groups) == 48
            assert list(groups) == sorted(groups)
            assert all(size & (size - 1) == 0 for size in groups)


def test_orders_are_distinct_and_complete():
    parts = ((1,), (1,), (2,), (4,))
    orders = list(distinct_orders(parts))
    assert len(orders) == len(set(orders)) == prod((4, 3))
