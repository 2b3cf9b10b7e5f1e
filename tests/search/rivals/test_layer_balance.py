"""Layers by capacity, and what happens where memory does not suffice."""

from __future__ import annotations

import random
from itertools import accumulate

import pytest

from poseidon.search.rivals.layer_balance import balanced_layers, by_capacity


def plenty(stage, first):
    return 1000


def even(count):
    return tuple(accumulate([1.0] * count, initial=0.0))


@pytest.mark.parametrize(
    ("layers", "capacity", "expected"),
    [
        (12, [2.0, 1.0], (8, 4)),
        (12, [1.0, 1.0, 1.0], (4, 4, 4)),
        (10, [1.0, 3.0, 1.0], (2, 6, 2)),
        (3, [100.0, 1.0, 1.0], (1, 1, 1)),  # everyone gets a layer
    ],
)
def test_layers_follow_capacity(layers, capacity, expected):
    assert by_capacity(even(layers), capacity) == expected


def test_heavy_layers_count_for_what_they_are():
    assert by_capacity(tuple(accumulate([1, 1, 1, 3], initial=0)), [1.0, 1.0]) == (3, 1)


@pytest.mark.parametrize("seed", range(200))
def test_every_layer_is_placed_and_no_stage_is_empty(seed):
    draw = random.Random(seed)
    stages = draw.randint(1, 6)
    layers = stages + draw.randint(0, 20)
    demand = [draw.uniform(0.1, 3) for _ in range(layers)]
    capacity = [draw.uniform(0.1, 3) for _ in range(stages)]
    limits = [draw.randint(1, layers) for _ in range(stages)]
    balance = balanced_layers(demand, capacity, lambda stage, first: limits[stage])
    assert sum(by_capacity(tuple(accumulate(demand, initial=0.0)), capacity)) == layers
    if balance is not None:
        assert sum(balance.layers) == layers
        assert min(balance.layers) >= 1
        assert all(count <= limit for count, limit in zip(balance.layers, limits, strict=True))
        assert 1 <= balance.attempts <= 3


def test_a_stage_out_of_memory_hands_layers_on():
    limits = (4, 20)
    balance = balanced_layers([1.0] * 12, [1.0, 1.0], lambda stage, first: limits[stage])
    assert balance is not None
    assert balance.attempts == 2
    assert balance.layers == (4, 8)  # 0.9 x 4 / 12 of the capacity is 3.6 layers


def test_without_enough_room_there_is_no_plan():
    assert balanced_layers([1.0] * 12, [1.0, 1.0], lambda stage, first: 5) is None


def test_the_first_attempt_that_fits_is_taken():
    balance = balanced_layers([1.0] * 12, [1.0, 1.0], plenty)
    assert balance is not None
    assert (balance.layers, balance.attempts) == ((6, 6), 1)
