"""The paper's policy: what it finds, what it claims and what it counts."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from poseidon.cost.problem_file import problem_from_json
from poseidon.search.count import count_configurations
from poseidon.search.options import POLICIES as POLICY_NAMES
from poseidon.search.options import SearchOptions
from poseidon.search.paper import paper_search
from poseidon.search.policies import POLICIES
from poseidon.search.reference import exhaustive_search
from poseidon.search.result import SolutionStatus, TerminationReason
from poseidon.search.solve import solve
from poseidon.search.watch import Watch
from tests.search.checking import run_of

SCHEDULES = ("1f1b", "eager_1f1b", "gpipe", "interleaved_1f1b")
OPTIONS = SearchOptions(policy="paper", warmup_samples=0)
DATA = Path(__file__).parent / "data" / "ridge-counterexamples.json"
COUNTEREXAMPLES = json.loads(DATA.read_text(encoding="utf-8"))


@pytest.fixture(params=COUNTEREXAMPLES, ids=lambda example: example["problem"]["name"])
def counterexample(request):
    problem = problem_from_json(request.param["problem"], DATA.name)
    return problem, request.param["optimum"], request.param["best_ridge"]


def test_ridges_miss_the_optimum_of_a_counterexample_and_the_answer_says_so(counterexample):
    problem, optimum, best_ridge = counterexample
    result = paper_search(run_of([problem], OPTIONS))
    assert result.best.iteration_time_ms == pytest.approx(best_ridge["iteration_time_ms"], rel=1e-12)
    assert result.status is SolutionStatus.FEASIBLE
    assert result.lower_bound_ms == pytest.approx(optimum["iteration_time_ms"], rel=1e-9)
    assert result.gap > 0
    assert "the schedule is 1f1b, the proof is for eager_1f1b" in result.warnings[0]
    assert problem.name in result.warnings[0]


def test_without_layer_pruning_it_finds_the_optimum_of_a_counterexample(counterexample):
    problem, optimum, _ = counterexample
    result = paper_search(run_of([problem], replace(OPTIONS, layer_pruning=False)))
    assert result.best.iteration_time_ms == pytest.approx(optimum["iteration_time_ms"], rel=1e-12)
    assert result.status is SolutionStatus.OPTIMAL
    assert result.warnings == ()


def test_the_exact_policy_finds_the_optimum_of_a_counterexample(counterexample):
    problem, optimum, _ = counterexample
    result = solve([problem])
    assert result.best.iteration_time_ms == pytest.approx(optimum["iteration_time_ms"], rel=1e-12)
    assert result.status is SolutionStatus.OPTIMAL


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_stage_pruning_alone_loses_nothing(random_problem, seed, schedule):
    problem = random_problem(seed, schedule)
    result = paper_search(run_of([problem], replace(OPTIONS, layer_pruning=False)))
    best = exhaustive_search(problem)
    if best is None:
        assert result.status is SolutionStatus.INFEASIBLE
        return
    assert result.status is SolutionStatus.OPTIMAL
    assert result.best.iteration_time_ms == pytest.approx(best.iteration_time_ms, rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_it_calls_optimal_is_and_its_bound_always_holds(random_problem, seed, schedule):
    problem = random_problem(seed, schedule)
    result = paper_search(run_of([problem], replace(OPTIONS, warmup_samples=5)))
    best = exhaustive_search(problem)
    if best is None:
        assert result.status is SolutionStatus.INFEASIBLE
        return
    assert result.lower_bound_ms <= best.iteration_time_ms * (1 + 1e-9)
    if result.status is SolutionStatus.OPTIMAL:
        assert result.best.iteration_time_ms == pytest.approx(best.iteration_time_ms, rel=1e-9)
        assert result.warnings == ()
    else:
        assert result.warnings


@pytest.mark.parametrize("stage_pruning", [True, False])
@pytest.mark.parametrize("layer_pruning", [True, False])
def test_every_configuration_is_simulated_or_counted_as_pruned(random_problem, stage_pruning, layer_pruning):
    problems = [random_problem(seed, schedule) for seed, schedule in enumerate(SCHEDULES * 3)]
    options = replace(OPTIONS, stage_pruning=stage_pruning, layer_pruning=layer_pruning, warmup_samples=20)
    counters = paper_search(run_of(problems, options)).counters
    by_stage, by_layer = counters.pruned.get("stage", 0), counters.pruned.get("layer", 0)
    assert counters.simulations - 20 + by_stage + by_layer == sum(map(count_configurations, problems))
    assert (by_stage > 0) is stage_pruning
    assert (by_layer > 0) is layer_pruning
    assert counters.pruned.get("layer branches", 0) <= by_layer


def test_a_plan_of_the_warm_up_counts(random_problem):
    problem = random_problem(1)
    best_ms = exhaustive_search(problem).iteration_time_ms
    result = paper_search(run_of([problem], replace(OPTIONS, warmup_samples=2000)))
    assert result.curve[-1][1] == pytest.approx(best_ms, rel=1e-12)
    assert result.counters.simulations >= 2000


def test_the_curve_falls_and_ends_at_the_plan(random_problem):
    problems = [random_problem(seed) for seed in range(6)]
    result = paper_search(run_of(problems, replace(OPTIONS, warmup_samples=3)))
    seconds, times = zip(*result.curve, strict=True)
    assert list(seconds) == sorted(seconds)
    assert list(times) == sorted(set(times), reverse=True)
    assert times[-1] == result.best.iteration_time_ms
    assert result.seconds >= seconds[-1]


def test_the_same_seed_gives_the_same_search(random_problem):
    problems = [random_problem(seed) for seed in range(4)]
    first, second = (paper_search(run_of(problems, replace(OPTIONS, warmup_samples=30, seed=5))) for _ in range(2))
    assert first.solutions == second.solutions
    assert first.counters == second.counters


def test_several_outer_choices_share_the_time_to_beat(random_problem):
    problems = [random_problem(seed) for seed in range(6)]
    together = paper_search(run_of(problems, OPTIONS))
    apart = [paper_search(run_of([problem], OPTIONS)) for problem in problems]
    assert together.best == min((result.best for result in apart), key=lambda solution: solution.order_key)
    assert together.counters.simulations < sum(result.counters.simulations for result in apart)


def test_out_of_time_it_says_what_is_known(random_problem):
    problem = random_problem(0)
    result = paper_search(run_of([problem], replace(OPTIONS, time_limit_s=1e-9), Watch(1e-9)))
    assert result.termination is TerminationReason.TIME_LIMIT
    assert result.status is SolutionStatus.UNKNOWN
    assert 0 < result.lower_bound_ms <= exhaustive_search(problem).iteration_time_ms


def test_interrupted_it_keeps_the_best_plan_so_far(random_problem):
    calls = []

    def interrupt(progress):
        calls.append(progress)
        raise KeyboardInterrupt

    problems = [random_problem(seed) for seed in range(3)]
    result = paper_search(run_of(problems, replace(OPTIONS, warmup_samples=10), Watch(report=interrupt)))
    assert len(calls) == 1
    assert calls[0].problems == 3
    assert 0 < calls[0].lower_bound_ms <= calls[0].best_ms
    assert result.termination is TerminationReason.INTERRUPTED
    assert result.best is not None
    assert result.lower_bound_ms <= min(exhaustive_search(problem).iteration_time_ms for problem in problems)


def test_a_search_node_limit_ends_it_early(random_problem):
    wide = replace(random_problem(0, num_stages=4), num_layers=60)
    problem = replace(wide, kinds=tuple(replace(kind, max_layers=((60,),) * 4) for kind in wide.kinds))
    options = replace(OPTIONS, node_limit=10, stage_pruning=False, warmup_samples=5)
    result = paper_search(run_of([problem], options))
    assert result.termination is TerminationReason.NODE_LIMIT
    assert result.best is not None
    assert result.lower_bound_ms <= solve([problem]).best.iteration_time_ms


def test_ridges_may_hide_every_plan_but_are_no_proof_that_there_is_none(random_problem):
    kind = replace(random_problem(0).kinds[0], stages=3, max_layers=((3,), (1,), (3,)))
    base = replace(random_problem(0), kinds=(kind,), num_stages=3, num_layers=7, assignment="stage")
    problem = replace(base, intra_node_ms=((0.1,),), inter_node_ms=((0.1,),))
    result = paper_search(run_of([problem], OPTIONS))
    assert result.status is SolutionStatus.UNKNOWN
    assert result.best is None
    assert result.warnings


def test_its_name_leads_to_it():
    assert POLICIES["paper"] is paper_search
    assert {"exact", *POLICIES} == set(POLICY_NAMES)
