"""An earlier plan as a start: only plans of the problem come of it, and the answer stays the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.cost.problem import Problem
from poseidon.search.options import SearchOptions
from poseidon.search.reference import all_configurations, all_depths, reference_time
from poseidon.search.result import Solution, SolutionStatus
from poseidon.search.solve import solve
from poseidon.search.warm_start import EarlierPlan, EarlierStage, starting_solutions
from tests.search.checking import assert_feasible, same
from tests.search.example import BEST, BEST_MS, EXAMPLE, HARD, chain
from tests.search.strategies import Space, examples, problems


def earlier_of(problem: Problem, solution: Solution) -> EarlierPlan:
    stages = (EarlierStage(problem.kinds[stage.kind].name, stage.layers) for stage in solution.stages)
    return EarlierPlan(problem.name, tuple(stages), solution.depths)


def plan(problem: str, *stages: tuple[str, int]) -> EarlierPlan:
    return EarlierPlan(problem, tuple(EarlierStage(kind, (layers,)) for kind, layers in stages))


def assert_all_feasible(found: Sequence[Solution]) -> None:
    for solution in found:
        assert_feasible(solution)


@given(data=st.data(), problem=problems())
@examples(50)
def test_a_plan_of_the_problem_is_taken_as_it_is(data: st.DataObject, problem: Problem) -> None:
    plans = [(one, depths) for depths in all_depths(problem) for one in all_configurations(problem, depths)]
    if not plans:
        return
    configuration, depths = data.draw(st.sampled_from(plans))
    earlier = earlier_of(problem, Solution(problem, configuration, 0.0, depths))
    found = starting_solutions([problem], earlier)
    assert_all_feasible(found)
    if not (problem.pools or problem.allow_idle):
        assert [(one.stages, one.depths) for one in found] == [(configuration, depths)]


@given(data=st.data(), problem=problems(Space(pools=False, idle=False)))
@examples(60)
def test_any_earlier_plan_leads_to_plans_of_the_problem(data: st.DataObject, problem: Problem) -> None:
    stage = st.builds(
        EarlierStage,
        st.sampled_from(("kind 0", "kind 1", "kind 2", "elsewhere/tp2")),
        st.lists(st.integers(1, 4), min_size=problem.num_chunks, max_size=problem.num_chunks).map(tuple),
    )
    stages = data.draw(st.lists(stage, min_size=1, max_size=6))
    name = data.draw(st.sampled_from((problem.name, "another")))
    depths = data.draw(st.sampled_from(((), (1,) * (len(stages) - 1))))
    earlier = EarlierPlan(name, tuple(stages), depths)
    assert_all_feasible(starting_solutions([problem], earlier))
    cold, warm = solve([problem]), solve([problem], start=earlier)
    assert warm.status is cold.status
    assert [one.iteration_time_ms for one in warm.solutions] == [same(one.iteration_time_ms) for one in cold.solutions]


@given(problem=problems(Space(pools=False, idle=False, stages=(1, 3), micro_batches=30, most_configurations=100)))
@examples(40)
def test_a_start_that_is_nearly_the_best_does_not_hide_the_best(problem: Problem) -> None:
    plans = [
        Solution(problem, one, reference_time(problem, one, depths), depths)
        for depths in all_depths(problem)
        for one in all_configurations(problem, depths)
    ]
    plans.sort(key=lambda solution: solution.iteration_time_ms)
    for start in plans[:6]:
        result = solve([problem], SearchOptions(warmup_samples=0), start=earlier_of(problem, start))
        assert result.best is not None
        assert result.best.iteration_time_ms == same(plans[0].iteration_time_ms)
        assert result.status is SolutionStatus.OPTIMAL
        assert result.counters.bound_alarms == 0


def test_the_best_plan_as_a_start_leaves_nothing_to_find() -> None:
    result = solve([EXAMPLE], start=plan("example", ("slow", 1), ("fast", 2)))
    assert result.best is not None
    assert (result.best.stages, result.best.iteration_time_ms, result.gap) == (BEST, BEST_MS, 0.0)
    assert [time_ms for _, time_ms in result.curve] == [BEST_MS]


def test_a_good_start_is_kept_when_the_search_is_cut_short() -> None:
    good = solve([HARD], SearchOptions(gap=0.02)).best
    assert good is not None
    result = solve([HARD], SearchOptions(node_limit=1, warmup_samples=0), start=earlier_of(HARD, good))
    assert result.best is not None
    assert result.best.iteration_time_ms <= good.iteration_time_ms


def test_a_plan_that_no_longer_fits_is_mended() -> None:
    tight = replace(EXAMPLE, kinds=tuple(replace(kind, max_layers=((2,), (1,))) for kind in EXAMPLE.kinds))
    (mended,) = starting_solutions([tight], plan("example", ("slow", 1), ("fast", 2)))
    assert [(stage.kind, stage.num_layers) for stage in mended.stages] == [(1, 2), (0, 1)]


def test_a_lost_stage_shares_its_layers_out() -> None:
    (shorter,) = starting_solutions([chain(3, 8)], plan("a longer one", *[("only", 2)] * 4))
    assert sorted(stage.num_layers for stage in shorter.stages) == [2, 3, 3]


def test_a_plan_across_a_boundary_that_is_no_more_is_no_start() -> None:
    one_way = replace(EXAMPLE, inter_node_ms=((1.0, math.inf), (1.0, 1.0)))
    for name in ("example", "another"):
        assert starting_solutions([one_way], plan(name, ("slow", 1), ("fast", 2))) == []


def test_chunks_need_the_last_stage_to_talk_to_the_first() -> None:
    one_way = ((1.0, 1.0), (math.inf, 1.0))
    chunked = replace(EXAMPLE, schedule="interleaved_1f1b", num_chunks=2, num_layers=4)
    chunked = replace(chunked, kinds=tuple(replace(kind, stages_per_node=1) for kind in EXAMPLE.kinds))
    stages = tuple(EarlierStage(kind, (1, 1)) for kind in ("slow", "fast"))
    earlier = EarlierPlan("example", stages)
    assert len(starting_solutions([chunked], earlier)) == 1
    assert starting_solutions([replace(chunked, inter_node_ms=one_way)], earlier) == []
    # Inside one node the two stages can talk, but the hop back from the last to the first crosses nodes.
    silent = chain(2, 4, schedule="interleaved_1f1b", num_chunks=2, inter_node_ms=((math.inf,),))
    silent = replace(silent, kinds=(replace(silent.kinds[0], stages_per_node=2),))
    assert starting_solutions([silent], EarlierPlan("chain", (EarlierStage("only", (1, 1)),) * 2)) == []


def test_links_of_depth_1_are_a_start_for_the_adaptive_schedule() -> None:
    adaptive = replace(EXAMPLE, schedule="adaptive_1f1b")
    assert_all_feasible(starting_solutions([adaptive], plan("another", ("slow", 1), ("fast", 2))))


@pytest.mark.parametrize("num_kinds", [2, 3])
def test_whole_nodes_stay_together(num_kinds: int) -> None:
    # Three stages of two in a node: the last node is begun and can only come last.
    first = replace(EXAMPLE.kinds[0], stages=3, stages_per_node=2)
    kinds = (first, EXAMPLE.kinds[1], replace(EXAMPLE.kinds[1], name="third"))[:num_kinds]
    num_stages = 2 + num_kinds
    kinds = tuple(replace(kind, max_layers=((4,),) * num_stages) for kind in kinds)
    times = ((1.0,) * num_kinds,) * num_kinds
    problem = replace(EXAMPLE, kinds=kinds, num_stages=num_stages, num_layers=8)
    problem = replace(problem, intra_node_ms=times, inter_node_ms=times)
    assert_all_feasible(starting_solutions([problem], plan("another", *[("fast", 1)] * 3, ("slow", 1))))


def test_limits_by_first_layer_are_those_of_the_layers_before() -> None:
    only = replace(chain(2, 6).kinds[0], max_layers=((3,) * 6, (6, 6, 6, 1, 1, 1)))
    problem = replace(chain(2, 6), kinds=(only,))
    assert_all_feasible(starting_solutions([problem], plan("another", ("only", 3), ("only", 3))))
