"""Clusters with too many device states: the counts of the kinds are relaxed, and what is proven is still true."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import poseidon.search.exact
from poseidon.cost.problem import Problem
from poseidon.search._stage_graph import StageGraph
from poseidon.search.arrays import SearchArrays, search_arrays
from poseidon.search.options import SearchOptions
from poseidon.search.reference import exhaustive_search
from poseidon.search.relaxation import CountRelaxation
from poseidon.search.result import SolutionStatus
from poseidon.search.solve import solve
from tests.search.checking import assert_feasible, assert_solved, same
from tests.search.example import EXAMPLE, HARD, chain
from tests.search.strategies import Space, examples, problems

SPACE = Space(schedules=("1f1b", "eager_1f1b", "gpipe"), pools=False, idle=False, layer_types=(1, 1))


def by_single_stages(problem: Problem) -> Problem:
    """The problem with every stage on a node of its own."""
    return replace(problem, kinds=tuple(replace(kind, stages_per_node=1) for kind in problem.kinds))


@pytest.fixture
def no_room_for_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cluster has too many device states."""

    def too_small(arrays: SearchArrays, **_: Any) -> StageGraph:
        return StageGraph(arrays, most_keys=1)

    monkeypatch.setattr(poseidon.search.exact, "StageGraph", too_small)


@pytest.mark.usefixtures("no_room_for_states")
def test_the_best_plan_is_still_found_and_proven() -> None:
    @given(problem=problems(SPACE).map(by_single_stages))
    @examples(50)
    def check(problem: Problem) -> None:
        assert_solved(problem)

    check()


@pytest.mark.usefixtures("no_room_for_states")
def test_with_a_gap_the_bound_still_holds() -> None:
    @given(problem=problems(SPACE).map(by_single_stages), gap=st.sampled_from((0.01, 0.2)))
    @examples(25)
    def check(problem: Problem, gap: float) -> None:
        best = exhaustive_search(problem)
        result = solve([problem], SearchOptions(gap=gap, num_thresholds=3))
        assert result.counters.bound_alarms == 0
        assert (result.best is None) == (best is None)
        if best is not None and result.best is not None:
            assert result.lower_bound_ms <= best.iteration_time_ms * (1 + 1e-12)
            assert result.gap <= gap * (1 + 1e-12)
            assert_feasible(result.best)

    check()


@pytest.mark.usefixtures("no_room_for_states")
def test_the_example_is_solved_as_before() -> None:
    assert_solved(EXAMPLE)


@pytest.mark.usefixtures("no_room_for_states")
def test_a_problem_that_cannot_be_relaxed_keeps_its_closed_form_bound() -> None:
    together = chain(2, 5)
    together = replace(together, kinds=(replace(together.kinds[0], stages_per_node=2),))
    assert not CountRelaxation.accepts(search_arrays(together))
    result = solve([together])
    best = exhaustive_search(together)
    assert best is not None
    assert (result.status, result.solutions) == (SolutionStatus.UNKNOWN, ())
    assert 0 < result.lower_bound_ms <= best.iteration_time_ms
    assert result.warnings


@pytest.mark.usefixtures("no_room_for_states")
def test_what_cannot_be_searched_does_not_hide_the_rest() -> None:
    together = chain(2, 5)
    together = replace(together, kinds=(replace(together.kinds[0], stages_per_node=2),))
    result = solve([together, EXAMPLE])
    assert result.best is not None
    assert result.best.problem is EXAMPLE
    assert result.lower_bound_ms <= result.best.iteration_time_ms


def test_both_searches_agree_on_a_problem_too_large_for_the_exhaustive_one(monkeypatch: pytest.MonkeyPatch) -> None:
    gap = 0.05
    plain = solve([HARD], SearchOptions(gap=gap))
    monkeypatch.setattr(poseidon.search.exact, "StageGraph", lambda arrays: StageGraph(arrays, most_keys=1))
    relaxed = solve([HARD], SearchOptions(gap=gap))
    assert plain.best is not None
    assert relaxed.best is not None
    assert relaxed.counters.bound_alarms == 0
    assert max(plain.lower_bound_ms, relaxed.lower_bound_ms) <= min(
        plain.best.iteration_time_ms, relaxed.best.iteration_time_ms
    )
    assert relaxed.best.iteration_time_ms == same(relaxed.solutions[0].iteration_time_ms)
    assert [sum(stage.kind == kind for stage in relaxed.best.stages) for kind in range(4)] == [6, 6, 6, 6]
