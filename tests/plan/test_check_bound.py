from __future__ import annotations

import math

from poseidon.cost.problem import Problem
from poseidon.plan.check_bound import lower_bound
from poseidon.plan.check_graph import SpaceGraph, Steps
from poseidon.search.reference import exhaustive_search


def test_no_configuration_beats_the_bound(problem: Problem) -> None:
    steps = Steps(1_000_000)
    best = exhaustive_search(problem)
    bound = lower_bound(SpaceGraph(problem, steps), math.inf, steps)
    if best is None:
        assert bound == math.inf
    else:
        assert 0 < bound <= best.iteration_time_ms * (1 + 1e-12)


def test_the_bound_stops_where_it_is_good_enough(problem: Problem) -> None:
    steps = Steps(1_000_000)
    assert lower_bound(SpaceGraph(problem, steps), 1e-9, steps) in (1e-9, math.inf)


def test_without_effort_it_shows_nothing(problem: Problem) -> None:
    assert lower_bound(SpaceGraph(problem, Steps(0)), math.inf, Steps(0)) == 0.0
