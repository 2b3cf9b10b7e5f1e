"""The exact search against the exhaustive one: every schedule, every dimension of the space."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.cost.problem import Kind, LayerCost, Pool, Problem
from poseidon.search.options import SearchOptions
from poseidon.search.result import SolutionStatus, StageChoice
from poseidon.search.solve import solve
from tests.search.checking import assert_solved
from tests.search.example import EXAMPLE, FAST, SLOW, chain, kind
from tests.search.strategies import EVERYTHING, ONE_CHUNK, SCHEDULES, Space, examples, problems

WHOLE = st.integers(0, 3).map(float)
"""Times that make many configurations equally fast."""


@given(problem=problems(), samples=st.sampled_from((0, 1, 500)), num_thresholds=st.sampled_from((1, 2, 16)))
@examples(120)
def test_whatever_the_problem_the_best_plan_is_found_and_proven(
    problem: Problem, samples: int, num_thresholds: int
) -> None:
    assert_solved(problem, SearchOptions(warmup_samples=samples, num_thresholds=num_thresholds))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule_is_solved(schedule: str) -> None:
    space = Space(schedules=(schedule,), pools=False, idle=False, forbidden=False, layer_types=(1, 1))

    @given(problem=problems(space))
    @examples(25)
    def check(problem: Problem) -> None:
        assert_solved(problem)

    check()


PLAIN = Space(schedules=ONE_CHUNK, pools=False, idle=False, forbidden=False, layer_types=(1, 1), most_depth=2)
DIMENSIONS = {
    "kinds that cost the same": replace(PLAIN, kinds=(2, 3), equal_kinds=True, times=WHOLE),
    "whole numbers of milliseconds": replace(PLAIN, times=WHOLE),
    "four kinds": replace(PLAIN, kinds=(4, 4), stages=(4, 5)),
    "no layer to spare": replace(PLAIN, spare_layers=(0, 0)),
    "a single stage": replace(PLAIN, stages=(1, 1)),
    "many layers on few stages": replace(PLAIN, stages=(1, 3), spare_layers=(8, 14)),
    "many micro-batches": replace(PLAIN, stages=(1, 3), micro_batches=40),
    "mixed layers": replace(PLAIN, layer_types=(2, 3)),
    "pairs that cannot talk": replace(EVERYTHING, forbidden=True, kinds=(2, 3), pools=False, idle=False),
    "pools": replace(PLAIN, pools=True, kinds=(1, 3)),
    "idle devices": replace(PLAIN, idle=True),
    "idle devices of pools by node": replace(PLAIN, pools=True, idle=True, assignments=("node",)),
    "times of very different size": replace(PLAIN, times=st.sampled_from((0.0, 1e-6, 0.1, 1.0, 3.0, 1e6))),
    "nothing takes any time": replace(PLAIN, times=st.just(0.0), spare_layers=(0, 2)),
}


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_every_dimension_of_the_space_is_solved(dimension: str) -> None:
    @given(problem=problems(DIMENSIONS[dimension]), samples=st.sampled_from((0, 500)))
    @examples(20)
    def check(problem: Problem, samples: int) -> None:
        assert_solved(problem, SearchOptions(warmup_samples=samples))

    check()


def test_one_stage_holds_all_layers_and_runs_one_micro_batch_after_the_other() -> None:
    result = assert_solved(chain(1, 5))
    assert result.best is not None
    assert result.best.iteration_time_ms == 4 * 5 * 3.0


def test_one_layer_on_one_stage_with_one_micro_batch() -> None:
    result = assert_solved(chain(1, 1, num_micro_batches=1))
    assert result.best is not None
    assert result.best.iteration_time_ms == 3.0


def test_a_single_stage_does_not_mind_that_its_kind_cannot_talk_to_itself() -> None:
    silent = ((math.inf,),)
    assert_solved(chain(1, 5, inter_node_ms=silent, intra_node_ms=silent))


def test_a_node_works_alone_when_nodes_cannot_talk() -> None:
    problem = chain(2, 5, inter_node_ms=((math.inf,),))
    together = replace(problem, kinds=(replace(problem.kinds[0], stages_per_node=2),))
    assert assert_solved(problem).status is SolutionStatus.INFEASIBLE
    assert assert_solved(together).status is SolutionStatus.OPTIMAL


def test_chunks_need_the_last_stage_to_talk_to_the_first() -> None:
    one_way = ((0.0, 1.0), (math.inf, 0.0))
    problem = replace(EXAMPLE, schedule="interleaved_1f1b", num_chunks=2, num_layers=4, inter_node_ms=one_way)
    assert assert_solved(problem).status is SolutionStatus.INFEASIBLE
    within = chain(2, 4, schedule="interleaved_1f1b", num_chunks=2, inter_node_ms=((math.inf,),))
    assert assert_solved(replace(within, kinds=(replace(within.kinds[0], stages_per_node=2),))).best is None


def test_more_stages_than_layers_is_infeasible() -> None:
    assert assert_solved(chain(4, 3)).status is SolutionStatus.INFEASIBLE


def test_too_little_memory_is_infeasible() -> None:
    fast, slow = (replace(one, max_layers=((1,), (1,))) for one in EXAMPLE.kinds)
    assert assert_solved(replace(EXAMPLE, kinds=(fast, slow))).status is SolutionStatus.INFEASIBLE


def test_memory_for_all_layers_but_in_no_order_of_the_kinds_is_infeasible() -> None:
    # Two layers fit on either kind, but only as the last stage; as the first stage one fits on `fast`, none on `slow`.
    fast = replace(EXAMPLE.kinds[FAST], max_layers=((1,), (2,)))
    slow = replace(EXAMPLE.kinds[SLOW], max_layers=((0,), (1,)))
    assert assert_solved(replace(EXAMPLE, kinds=(fast, slow))).status is SolutionStatus.INFEASIBLE


def test_a_kind_that_is_a_hundred_times_slower_gets_one_layer() -> None:
    snail = kind("snail", LayerCost(100.0, 200.0), max_layers=((9,),) * 3)
    quick = kind("quick", LayerCost(1.0, 2.0), stages=2, max_layers=((9,),) * 3)
    problem = replace(EXAMPLE, kinds=(snail, quick), num_stages=3, num_layers=11, num_micro_batches=6)
    result = assert_solved(problem)
    assert result.best is not None
    assert {stage.num_layers for stage in result.best.stages if stage.kind == 0} == {1}


def test_a_huge_head_leaves_the_last_stage_one_layer() -> None:
    headed = kind("headed", LayerCost(1.0, 2.0), LayerCost(50.0, 100.0), stages=3, max_layers=((9,),) * 3)
    result = assert_solved(replace(chain(3, 9), kinds=(headed,)))
    assert result.best is not None
    assert result.best.stages[-1] == StageChoice(0, (1,))


def test_the_all_reduce_counts_where_it_ends_last() -> None:
    costly = kind("costly", LayerCost(1.0, 2.0, 40.0), stages=2, max_layers=((5,),) * 2)
    result = assert_solved(replace(chain(2, 6), kinds=(costly,)))
    assert result.best is not None
    assert [stage.num_layers for stage in result.best.stages] == [3, 3]


def test_an_idle_kind_is_left_out_where_that_is_faster() -> None:
    snail = kind("snail", LayerCost(100.0, 200.0))
    one = replace(EXAMPLE, kinds=(EXAMPLE.kinds[FAST], snail), num_layers=2, num_stages=1, allow_idle=True)
    result = assert_solved(one)
    assert result.best is not None
    assert result.best.stages == (StageChoice(0, (2,)),)


def test_two_degrees_of_one_pool_share_its_devices() -> None:
    # Four devices in one node: a stage of kind `four` takes all of them, two stages of kind `two` take half each.
    def member(name: str, devices: int, speed: float) -> Kind:
        cost = LayerCost(1.0 / speed, 2.0 / speed)
        return kind(name, cost, pool="pool", devices=devices, stages=4 // devices, max_layers=((8,),) * 2)

    shared = (member("two", 2, 1.0), member("four", 4, 1.7))
    problem = replace(EXAMPLE, kinds=shared, pools=(Pool("pool", 4, 4),), num_layers=8, num_micro_batches=4)
    both = assert_solved(problem).best
    alone = assert_solved(replace(problem, num_stages=1)).best
    assert both is not None
    assert alone is not None
    assert [stage.kind for stage in both.stages] == [0, 0]
    assert [stage.kind for stage in alone.stages] == [1]


def test_layers_are_costed_at_their_own_places() -> None:
    # The heavy layer is the last: the last stage holds it alone, whatever the number of light ones before it.
    light, heavy = LayerCost(1.0, 2.0), LayerCost(9.0, 18.0)
    mixed = replace(chain(2, 9).kinds[0], layers=(light, heavy))
    problem = chain(2, 9, layer_types=(0,) * 8 + (1,), layer_type_names=("light", "heavy"))
    result = assert_solved(replace(problem, kinds=(mixed,)))
    assert result.best is not None
    assert [stage.num_layers for stage in result.best.stages] == [8, 1]


@pytest.mark.parametrize("num_micro_batches", [1, 2, 3, 4])
@pytest.mark.parametrize("schedule", ONE_CHUNK)
def test_mixed_layers_with_few_micro_batches_are_solved_without_samples(schedule: str, num_micro_batches: int) -> None:
    costs = (LayerCost(0.0, 1.0), LayerCost(0.0, 0.0))
    mixed = replace(chain(4, 7).kinds[0], layers=costs, max_layers=((1,), (4,), (1,), (4,)))
    problem = chain(4, 7, schedule=schedule, num_micro_batches=num_micro_batches, layer_types=(0,) * 6 + (1,))
    problem = replace(problem, kinds=(mixed,), layer_type_names=("dense", "moe"))
    assert_solved(problem, SearchOptions(warmup_samples=0))


def test_depths_of_a_single_stage_are_no_choice() -> None:
    assert_solved(chain(1, 3, schedule="adaptive_1f1b", most_depth=2))


def test_deeper_links_hide_a_slow_transfer() -> None:
    slow_link = ((4.0,),)
    shallow = chain(3, 6, schedule="1f1b", num_micro_batches=9, inter_node_ms=slow_link)
    places = 1 + 2 + 3
    only = replace(shallow.kinds[0], max_layers=((6,),) * places)
    deep = replace(shallow, schedule="adaptive_1f1b", most_depth=2, kinds=(only,))
    shallow_ms, deep_ms = (assert_solved(problem).best for problem in (shallow, deep))
    assert shallow_ms is not None
    assert deep_ms is not None
    assert deep_ms.iteration_time_ms < shallow_ms.iteration_time_ms
    assert max(deep_ms.depths) == 2


@pytest.mark.parametrize("schedule", ["1f1b", "eager_1f1b", "gpipe"])
def test_depths_belong_to_the_adaptive_schedule_alone(schedule: str) -> None:
    problem = chain(2, 4, schedule=schedule, most_depth=2)
    with pytest.raises(ValueError, match="most_depth must be 1, not 2"):
        solve([replace(problem, kinds=(replace(problem.kinds[0], max_layers=((4,),) * 3),))])


def test_a_shape_that_the_schedule_refuses_is_an_error() -> None:
    with pytest.raises(ValueError, match="num_micro_batches must be"):
        solve([chain(3, 6, schedule="interleaved_1f1b", num_chunks=2, num_micro_batches=2)])
