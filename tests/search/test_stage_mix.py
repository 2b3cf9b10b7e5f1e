from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from poseidon.search._stage_mix import StageMix
from poseidon.search.arrays import Floats


@dataclass(frozen=True)
class Case:
    pool_of_kind: tuple[int, ...]
    units: tuple[int, ...]
    pool_units: tuple[int, ...]
    per_layer: tuple[float, ...]
    most: tuple[int, ...]
    num_stages: int
    num_layers: int
    least: int
    allow_idle: bool

    @property
    def least_cost(self) -> float:
        mix = StageMix(
            np.array(self.pool_of_kind, dtype=np.int32),
            np.array(self.units, dtype=np.int32),
            np.array(self.pool_units, dtype=np.int32),
            np.array(self.per_layer),
            self.num_stages,
            self.num_layers,
            self.least,
            self.allow_idle,
        )
        return mix.least_cost(np.array(self.most, dtype=np.float64))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    num_pools = draw(st.integers(1, 3))
    num_kinds = draw(st.integers(num_pools, 8))
    pools = (*range(num_pools), *(draw(st.integers(0, num_pools - 1)) for _ in range(num_kinds - num_pools)))

    def of_each(values: st.SearchStrategy[int]) -> tuple[int, ...]:
        return tuple(draw(values) for _ in range(num_kinds))

    return Case(
        pool_of_kind=pools,
        units=of_each(st.sampled_from((1, 2, 3, 4, 8))),
        pool_units=tuple(draw(st.integers(1, 24)) for _ in range(num_pools)),
        per_layer=tuple(value / 4 for value in of_each(st.integers(0, 40))),
        most=of_each(st.integers(0, 12)),
        num_stages=draw(st.integers(1, 24)),
        num_layers=draw(st.integers(1, 100)),
        least=draw(st.integers(1, 3)),
        allow_idle=draw(st.booleans()),
    )


def solved(case: Case) -> float:
    """By a solver of linear programs: stages n and layers l of each kind."""
    kinds = range(len(case.units))
    none, eye = np.zeros(len(kinds)), np.eye(len(kinds))
    taken = [np.where(np.array(case.pool_of_kind) == pool, case.units, 0) for pool in range(len(case.pool_units))]
    pools = np.array([[*units, *none] for units in taken])
    totals = np.array([[*(none + 1), *none], [*none, *(none + 1)]])
    layers = np.block([[-eye * np.array(case.most), eye], [eye * case.least, -eye]])
    equal, at_most = [(totals, (case.num_stages, case.num_layers))], [(layers, np.zeros(2 * len(kinds)))]
    (at_most if case.allow_idle else equal).append((pools, case.pool_units))
    result = linprog(
        [*none, *case.per_layer],
        A_ub=np.vstack([rows for rows, _ in at_most]),
        b_ub=np.concatenate([limits for _, limits in at_most]),
        A_eq=np.vstack([rows for rows, _ in equal]),
        b_eq=np.concatenate([values for _, values in equal]),
        bounds=[(0, None if case.most[kind] >= case.least else 0) for kind in kinds] + [(0, None)] * len(kinds),
    )
    return float(result.fun) if result.status == 0 else math.inf


@settings(max_examples=300, deadline=None)
@given(case=cases())
def test_the_least_cost_is_that_of_the_linear_program_and_never_above_it(case: Case) -> None:
    expected = solved(case)

    found = case.least_cost

    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert found <= expected + 1e-9 * max(1.0, abs(expected)) if math.isfinite(expected) else math.isinf(found)


def test_stages_share_the_devices_of_their_pool() -> None:
    """Four units: large stages compute a layer in 1 ms, but only one of them leaves room for the two small ones."""
    case = Case((0, 0), (2, 1), (4,), (1.0, 3.0), (9, 9), num_stages=3, num_layers=12, least=1, allow_idle=False)

    assert case.least_cost == pytest.approx(9 * 1.0 + 2 * 3.0 + 1 * 3.0)


def test_limits_must_be_those_of_the_kinds() -> None:
    mix = StageMix(np.zeros(1, np.int32), np.ones(1, np.int32), np.ones(1, np.int32), np.ones(1), 1, 1, 1, False)
    limits: Floats = np.ones(2)

    with pytest.raises(ValueError, match="limits of 2 kinds; there are 1"):
        mix.least_cost(limits)
