"""The exact search under Eq. 1 against trying every configuration."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from poseidon.cost.problem import Problem
from poseidon.search.evaluate import configuration_time, configuration_times
from poseidon.search.options import SearchOptions
from poseidon.search.policies import policy_of
from poseidon.search.reference import all_configurations, exhaustive_search
from poseidon.search.result import SolutionStatus
from poseidon.search.solve import solve
from poseidon.search.space import space_of
from poseidon.search.static_optimum import StaticSearch
from poseidon.search.static_policy import static_search
from poseidon.simulate.static_formula import static_time_ms
from tests.search.strategies import Space, examples, problems

SPACE = Space(schedules=("1f1b", "eager_1f1b", "gpipe"))
OPTIONS = SearchOptions(cost_model="eq1")


def least_static_ms(problem: Problem) -> float:
    """The least Eq. 1 time of all configurations; infinite where there is none."""
    times = (configuration_times(problem, configuration) for configuration in all_configurations(problem))
    return min((static_time_ms(time, problem.num_micro_batches) for time in times), default=math.inf)


@given(problems(SPACE))
@examples(400)
def test_the_optimum_is_that_of_trying_everything(problem: Problem) -> None:
    expected = least_static_ms(problem)
    found = StaticSearch(space_of(problem)).run()
    if found is None:
        assert math.isinf(expected)
        return
    assert found.is_proven
    assert found.static_ms == pytest.approx(expected, rel=1e-9)
    times = configuration_times(problem, found.stages)
    assert static_time_ms(times, problem.num_micro_batches) == pytest.approx(found.static_ms, rel=1e-9)
    assert found.stages in set(all_configurations(problem))


@given(problems(SPACE))
@examples(60)
def test_nothing_is_found_below_the_optimum_and_everything_above_it(problem: Problem) -> None:
    expected = least_static_ms(problem)
    if math.isinf(expected) or not expected:
        return
    assert StaticSearch(space_of(problem), expected * (1 - 1e-9)).run() is None
    assert StaticSearch(space_of(problem), expected * (1 + 1e-6)).run() is not None


@given(problems(SPACE))
@examples(60)
def test_the_plan_is_timed_with_the_dag_and_never_beats_the_exact_one(problem: Problem) -> None:
    result = solve([problem], OPTIONS)
    best = exhaustive_search(problem)
    if result.best is None:
        assert best is None
        assert result.status is SolutionStatus.INFEASIBLE
        return
    assert best is not None
    assert result.best.iteration_time_ms == configuration_time(problem, result.best.stages)
    assert result.best.iteration_time_ms >= best.iteration_time_ms * (1 - 1e-12)
    assert result.lower_bound_ms <= best.iteration_time_ms * (1 + 1e-9)


@given(problems(SPACE), problems(SPACE))
@examples(60)
def test_of_several_problems_the_best_is_chosen(one: Problem, other: Problem) -> None:
    from dataclasses import replace

    other = replace(other, name="other")
    expected = min(least_static_ms(one), least_static_ms(other))
    result = solve([one, other], OPTIONS)
    if result.best is None:
        assert math.isinf(expected)
        return
    times = configuration_times(result.best.problem, result.best.stages)
    assert static_time_ms(times, result.best.problem.num_micro_batches) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("schedule", ["interleaved_1f1b", "adaptive_1f1b"])
def test_schedules_that_it_cannot_tell_apart_are_refused(schedule: str) -> None:
    from dataclasses import replace

    kind_problem = _simple_problem()
    chunks = 2 if schedule == "interleaved_1f1b" else 1
    with pytest.raises(ValueError, match=f"cost model eq1 knows no chunks and no depths of links: {schedule}"):
        solve([replace(kind_problem, schedule=schedule, num_chunks=chunks)], OPTIONS)


def _simple_problem() -> Problem:
    from poseidon.cost.problem import Kind, LayerCost

    kind = Kind("a", 2, 1, (LayerCost(1.0, 2.0, 0.1),), LayerCost(), LayerCost(), ((4,), (4,)))
    return Problem("p", "1f1b", 1, 4, 5, 2, "stage", (kind,), ((0.1,),), ((0.5,),))


def test_a_time_limit_leaves_no_plan_or_the_best_so_far() -> None:
    result = solve([_simple_problem()], SearchOptions(cost_model="eq1", time_limit_s=1e-9))
    assert result.best is None
    assert result.status is SolutionStatus.UNKNOWN


def test_the_options_lead_to_it() -> None:
    assert policy_of(OPTIONS) is static_search
    with pytest.raises(ValueError, match="for the policy exact, not for paper"):
        SearchOptions(policy="paper", cost_model="eq1")
