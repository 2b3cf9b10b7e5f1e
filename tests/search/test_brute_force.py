"""Everything simulated."""

import math
from dataclasses import replace

import pytest

from poseidon.cost.problem import Pool
from poseidon.search.brute_force import brute_force_search
from poseidon.search.count import count_configurations
from poseidon.search.options import SearchOptions
from poseidon.search.paper import paper_search
from poseidon.search.reference import exhaustive_search
from poseidon.search.result import SolutionStatus, TerminationReason
from poseidon.search.watch import Watch
from tests.search.checking import run_of

OPTIONS = SearchOptions(policy="brute-force")
SCHEDULES = ("1f1b", "eager_1f1b", "gpipe", "interleaved_1f1b", "adaptive_1f1b")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_it_simulates_every_configuration_and_finds_the_optimum(random_problem, seed, schedule):
    problem = random_problem(seed, schedule, most_depth=2 if schedule == "adaptive_1f1b" else 1)
    result = brute_force_search(run_of([problem], OPTIONS))
    best = exhaustive_search(problem)
    assert result.counters.simulations == count_configurations(problem)
    if best is None:
        assert result.status is SolutionStatus.INFEASIBLE
        return
    assert result.status is SolutionStatus.OPTIMAL
    assert result.lower_bound_ms == result.best.iteration_time_ms == pytest.approx(best.iteration_time_ms, rel=1e-12)
    assert result.curve[-1][1] == result.best.iteration_time_ms
    if schedule != "adaptive_1f1b":  # depths beyond need make ties
        assert result.best.stages == best.stages


def test_the_best_of_each_outer_choice_is_kept(random_problem):
    problems = [random_problem(seed) for seed in range(4)]
    result = brute_force_search(run_of(problems, SearchOptions(policy="brute-force", top=3)))
    expected = sorted(exhaustive_search(problem).iteration_time_ms for problem in problems)[:3]
    assert [solution.iteration_time_ms for solution in result.solutions] == pytest.approx(expected, rel=1e-12)
    assert result.num_problems == 4


def test_out_of_time_it_gives_a_bound_that_holds(random_problem):
    problem = random_problem(0)
    watch = Watch(time_limit_s=1e-9)
    result = brute_force_search(run_of([problem], OPTIONS, watch))
    assert result.status is SolutionStatus.UNKNOWN
    assert result.termination is TerminationReason.TIME_LIMIT
    assert 0 < result.lower_bound_ms <= exhaustive_search(problem).iteration_time_ms
    assert math.isinf(result.gap)


def test_no_problems_are_no_plan():
    result = brute_force_search(run_of([], OPTIONS))
    assert result.status is SolutionStatus.INFEASIBLE
    assert result.termination is TerminationReason.COMPLETE


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("allow_idle", [True, False])
def test_kinds_may_share_devices_and_devices_may_stay_idle(random_problem, seed, allow_idle):
    base = random_problem(seed, num_stages=3)
    wide = replace(base.kinds[0], pool="A", devices=2, stages=2, stages_per_node=1)
    narrow = replace(wide, name="narrow", devices=1, stages=4, layers=(replace(wide.layers[0], forward_ms=3.5),))
    times = ((0.25, 0.5), (0.75, 1.0))
    problem = replace(
        base,
        kinds=(wide, narrow),
        pools=(Pool("A", 4, 2),),
        intra_node_ms=times,
        inter_node_ms=times,
        allow_idle=allow_idle,
    )
    for policy in (brute_force_search, paper_search):
        result = policy(run_of([problem], replace(OPTIONS, layer_pruning=False)))
        assert result.best.iteration_time_ms == exhaustive_search(problem).iteration_time_ms
        assert result.status is SolutionStatus.OPTIMAL
    assert brute_force_search(run_of([problem], OPTIONS)).counters.simulations == count_configurations(problem)
