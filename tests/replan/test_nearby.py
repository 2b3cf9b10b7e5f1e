"""Layers split anew so that fewer bytes move, against trying every split."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from poseidon.cost.problem import Problem
from poseidon.replan.nearby import can_be_split_anew, kept_most
from poseidon.search.reference import all_configurations, all_depths, reference_time
from poseidon.search.result import Solution
from tests.search.strategies import Space, examples, problems


def total(solution: Solution, kept: np.ndarray) -> float:
    counts = [stage.num_layers for stage in solution.stages]
    ends = np.cumsum(counts).tolist()
    ranges = zip(range(len(counts)), ends, counts, strict=True)
    return float(sum(kept[index, end - count : end].sum() for index, end, count in ranges))


@given(data=st.data(), problem=problems(Space(schedules=("1f1b", "gpipe"), pools=False, idle=False)))
@examples(80)
def test_it_keeps_most_of_all_splits_where_any_time_will_do(data: st.DataObject, problem: Problem) -> None:
    assert can_be_split_anew(problem)
    [depths] = all_depths(problem)
    plans = [Solution(problem, one, reference_time(problem, one), depths) for one in all_configurations(problem)]
    if not plans:
        return
    start = data.draw(st.sampled_from(plans))
    shape = (problem.num_stages, problem.num_layers)
    kept = data.draw(arrays(float, shape, elements=st.integers(0, 5).map(float)))
    same_order = [
        one for one in plans if [stage.kind for stage in one.stages] == [stage.kind for stage in start.stages]
    ]
    limits = [1e-9 + start.iteration_time_ms * (1 + slack) for slack in (0.0, 0.1, 1e6)]
    found = [kept_most(start, kept, limit_ms) for limit_ms in limits]
    for limit_ms, solution in zip(limits, found, strict=True):
        assert solution.stages in [one.stages for one in same_order]
        assert solution.iteration_time_ms <= limit_ms
        assert math.isclose(solution.iteration_time_ms, reference_time(problem, solution.stages), abs_tol=1e-9)
        assert total(solution, kept) >= total(start, kept)
    if start.iteration_time_ms > 0.1:
        assert total(found[-1], kept) == max(total(one, kept) for one in same_order)


def test_chunks_and_depths_are_left_alone() -> None:
    from dataclasses import replace

    from tests.search.example import EXAMPLE

    assert can_be_split_anew(EXAMPLE)
    assert not can_be_split_anew(replace(EXAMPLE, num_chunks=2))
    assert not can_be_split_anew(replace(EXAMPLE, most_depth=2))
