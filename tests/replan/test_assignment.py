from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment

from poseidon.replan.assignment import least_cost_assignment


def total(costs: np.ndarray, columns: list[int]) -> float:
    return float(sum(costs[row, column] for row, column in enumerate(columns)))


@given(st.integers(1, 5).flatmap(lambda size: arrays(float, (size, size), elements=st.integers(-9, 9).map(float))))
def test_no_permutation_costs_less(costs: np.ndarray) -> None:
    columns = least_cost_assignment(costs)
    assert sorted(columns) == list(range(len(costs)))
    assert total(costs, columns) == min(total(costs, list(order)) for order in permutations(range(len(costs))))


@pytest.mark.parametrize("seed", range(5))
def test_large_ones_cost_what_scipy_finds(seed: int) -> None:
    costs = np.random.default_rng(seed).uniform(0, 1e9, (60, 60)).round()
    rows, columns = linear_sum_assignment(costs)
    assert total(costs, least_cost_assignment(costs)) == pytest.approx(costs[rows, columns].sum(), rel=1e-12)


def test_nothing_to_assign() -> None:
    assert least_cost_assignment(np.zeros((0, 0))) == []
