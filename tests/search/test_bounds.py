"""No bound is above the time of any plan: each is derived again here, in plain Python, for whole configurations."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.cost.problem import Kind, LayerCost, Place, Problem
from poseidon.search._stage_graph import StageGraph
from poseidon.search._sweep import time_prefix
from poseidon.search._tables import CompletionTables, most_layers_after, most_layers_before
from poseidon.search.arrays import SearchArrays, search_arrays
from poseidon.search.evaluate import boundaries_within_nodes, configuration_times
from poseidon.search.quick_bound import quick_bound
from poseidon.search.reference import Depths, all_configurations, all_depths, reference_time
from poseidon.search.result import StageChoice
from poseidon.search.thresholds import Thresholds, achievable, least_bottleneck, limits_under, spread
from tests.search.example import BEST, BEST_MS, EXAMPLE, chain
from tests.search.strategies import ONE_CHUNK, Space, examples, problems

ONE_CHUNK_ONLY = Space(schedules=ONE_CHUNK)
MOST_PLANS = 40
"""Plans that are looked at of one problem."""


@dataclass(frozen=True)
class Plan:
    """A whole configuration, read from the arrays of the search stage by stage."""

    arrays: SearchArrays
    stages: tuple[StageChoice, ...]
    depths: Depths
    time_ms: float

    @property
    def cells(self) -> list[tuple[int, int, int, int]]:
        """Kind, place, row and layers of each stage: where the arrays keep its times."""
        found, placed = [], 0
        num_stages, places = self.arrays.num_stages, self.arrays.problem.places
        for index, stage in enumerate(self.stages):
            warmup = 1 + sum(self.depths[index:]) if self.depths else num_stages - index
            row = int(self.arrays.row_of_layer[placed])
            found.append((stage.kind, places.index(Place(index, warmup)), row, stage.num_layers))
            placed += stage.num_layers
        return found

    @property
    def crossings(self) -> list[tuple[float, float]]:
        """Forward and gradient transfer over each boundary."""
        kinds = [stage.kind for stage in self.stages]
        times = []
        for index, within in enumerate(boundaries_within_nodes(self.arrays.problem, kinds)):
            matrix = self.arrays.intra_node if within else self.arrays.inter_node
            here, there = kinds[index], kinds[index + 1]
            times.append((float(matrix[here, there]), float(matrix[there, here])))
        return times

    @property
    def round_trip_ms(self) -> float:
        """What one micro-batch takes down the pipeline and back, with the first stage's all-reduce."""
        return self.after(-1)

    def after(self, stage: int) -> float:
        """The part of the round trip that lies behind a stage."""
        cost = sum(float(self.arrays.cost[cell]) for cell in self.cells[stage + 1 :])
        transfers = sum(map(sum, self.crossings[max(stage, 0) :]))
        return cost + self.arrays.round_trips * transfers

    @property
    def bottleneck_ms(self) -> float:
        """The most that some stage adds to the round trip: family 1 (beta) or family 2 (gamma and what follows)."""
        betas = [float(self.arrays.beta[cell]) for cell in self.cells]
        gammas = [float(self.arrays.gamma[cell]) + self.after(stage) for stage, cell in enumerate(self.cells)]
        return max(*betas, *gammas)

    def least_time_of(self, bound_ms: float) -> float:
        """The plan's time, with room for the last digits of sums of the bound's size."""
        return self.time_ms + 1e-12 * max(abs(bound_ms), 1.0) * self.arrays.num_micro_batches


def plans_of(problem: Problem) -> list[Plan]:
    """Some of a problem's plans."""
    arrays = search_arrays(problem)
    found = [
        Plan(arrays, configuration, depths, reference_time(problem, configuration, depths))
        for depths in all_depths(problem)
        for configuration in all_configurations(problem, depths)
    ]
    return random.Random(len(found)).sample(found, min(MOST_PLANS, len(found)))


def thresholds_of(arrays: SearchArrays, graph: StageGraph, count: int, ceiling_ms: float) -> Thresholds | None:
    """The thresholds of a first round of tables; None where no plan stays below the ceiling."""
    values = achievable(arrays, 0.0, ceiling_ms)
    index = least_bottleneck(arrays, graph, values, math.inf)
    if index == len(values):
        return None
    return spread(float(values[index]), values[index:], ceiling_ms, count)


def tables_of(arrays: SearchArrays, graph: StageGraph, thresholds: Thresholds) -> CompletionTables:
    first = thresholds.first_allowed(arrays, math.inf)
    limits = limits_under(arrays, float(thresholds.high[-1]))
    return CompletionTables(graph, arrays, thresholds.low, thresholds.high, first, limits, 10_000_000)


def test_the_example_by_hand() -> None:
    (best,) = (plan for plan in plans_of(EXAMPLE) if plan.stages == BEST)
    # Down and back: 2 + 4 and 3 + 6, two transfers, and one all-reduce; then the last stage has (2 - 1)(3 + 6) left.
    assert best.round_trip_ms == 6 + 9 + 2 + 1
    assert best.bottleneck_ms == 9
    assert best.round_trip_ms + best.bottleneck_ms == BEST_MS


@given(problem=problems())
@examples(70)
def test_families_1_and_2_are_never_above_the_time(problem: Problem) -> None:
    for plan in plans_of(problem):
        bound_ms = plan.round_trip_ms + plan.bottleneck_ms
        assert bound_ms <= plan.least_time_of(bound_ms)
        for cell in plan.cells:
            assert float(plan.arrays.alone[cell]) <= plan.least_time_of(plan.time_ms)


@given(problem=problems(Space(schedules=("gpipe",))))
@examples(40)
def test_in_gpipe_the_slowest_forward_and_backward_may_be_of_different_stages(problem: Problem) -> None:
    for plan in plans_of(problem):
        slowest = max(plan.arrays.forward[cell] for cell in plan.cells)
        slowest += max(plan.arrays.backward[cell] for cell in plan.cells)
        bound_ms = plan.round_trip_ms + (problem.num_micro_batches - 1) * float(slowest)
        assert bound_ms <= plan.least_time_of(bound_ms)


@given(problem=problems())
@examples(70)
def test_the_arrays_hold_the_times_of_each_stage(problem: Problem) -> None:
    for plan in plans_of(problem):
        times = configuration_times(problem, plan.stages)
        for stage, cell in enumerate(plan.cells):
            assert plan.arrays.forward[cell] == pytest.approx(times.forward_ms[stage].sum(), rel=1e-12)
            assert plan.arrays.backward[cell] == pytest.approx(times.backward_ms[stage].sum(), rel=1e-12)
            assert plan.arrays.all_reduce[cell] == pytest.approx(times.all_reduce_ms[stage], rel=1e-12)


@given(problem=problems())
@examples(70)
def test_the_closed_form_is_never_above_the_time(problem: Problem) -> None:
    bound_ms = quick_bound(search_arrays(problem))
    assert not math.isnan(bound_ms)
    for plan in plans_of(problem):
        assert bound_ms <= plan.least_time_of(bound_ms)


def test_the_closed_form_is_exact_where_nothing_is_left_to_choose() -> None:
    assert quick_bound(search_arrays(chain(1, 5))) == about(4 * 5 * 3.0)
    # Places are ignored: two layers have least left to do on the first stage, where two of four forwards are warm-up.
    assert quick_bound(search_arrays(chain(2, 4))) == about(2 * 6.0 + 2 * 0.5 + (4 - 2) * 2.0 + (4 - 1) * 4.0)
    headed = replace(chain(1, 5).kinds[0], first=LayerCost(1.0, 1.0, 3.0), last=LayerCost(2.0, 2.0))
    assert quick_bound(search_arrays(replace(chain(1, 5), kinds=(headed,)))) == about(4 * (5 * 3.0 + 6.0) + 3.0)


def about(value: float) -> object:
    """What rounding may have been taken off."""
    return pytest.approx(value, rel=1e-11)


@given(problem=problems(Space(schedules=ONE_CHUNK, layer_types=(2, 3), micro_batches=1, kinds=(2, 3), forbidden=False)))
@examples(70)
def test_the_closed_form_is_never_above_the_time_of_mixed_layers_with_few_micro_batches(problem: Problem) -> None:
    bound_ms = quick_bound(search_arrays(problem))
    for plan in plans_of(problem):
        assert bound_ms <= plan.least_time_of(bound_ms)


def test_a_stage_past_the_last_layer_does_not_spoil_the_closed_form() -> None:
    # Both micro-batches are warm-up on most stages: no forward is left there, 0 x infinity past the end of a row.
    free, costly = LayerCost(), LayerCost(0.0, 1.0)
    rooms = ((0, 0, 0, 1), (0, 4, 0, 0), (1, 0, 0, 4), (0, 0, 1, 0))
    kinds = tuple(
        Kind(f"kind {index}", 1, 1, (costly if index == 2 else free, free), free, free, tuple((most,) for most in room))
        for index, room in enumerate(rooms)
    )
    none = ((0.0,) * 4,) * 4
    mixed = replace(EXAMPLE, kinds=kinds, assignment="stage", num_stages=4, num_layers=7, layer_types=(0,) * 6 + (1,))
    mixed = replace(mixed, layer_type_names=("dense", "moe"), intra_node_ms=none, inter_node_ms=none)
    (plan,) = plans_of(mixed)
    assert quick_bound(search_arrays(mixed)) <= plan.time_ms == 2.0


@given(problem=problems(), count=st.integers(1, 20), share=st.sampled_from((0.3, 0.7, 1.0, math.inf)))
@examples(70)
def test_the_tables_bound_every_plan_whose_bottleneck_they_cover(problem: Problem, count: int, share: float) -> None:
    plans = plans_of(problem)
    if not plans:
        return
    ceiling_ms = share * max(plan.bottleneck_ms for plan in plans) if share < math.inf else math.inf
    arrays, graph = plans[0].arrays, StageGraph(plans[0].arrays)
    thresholds = thresholds_of(arrays, graph, count, ceiling_ms)
    if thresholds is None:
        assert all(plan.bottleneck_ms > ceiling_ms for plan in plans)
        return
    assert len(thresholds.low) == len(thresholds.high) <= count
    assert np.isfinite(thresholds.low).all()
    roots = tables_of(arrays, graph, thresholds).root_bounds
    for plan in plans:
        if plan.bottleneck_ms > ceiling_ms * (1 - 1e-9):
            continue
        assert plan.bottleneck_ms >= thresholds.low[0] * (1 - 1e-12)
        # A bottleneck within rounding of a threshold may count to the interval before or after.
        nearby = np.searchsorted(thresholds.high, plan.bottleneck_ms * np.array([1 - 1e-12, 1 + 1e-12]))
        bound_ms = min(float(roots[index]) for index in range(nearby[0], min(nearby[1] + 1, len(roots))))
        assert bound_ms <= plan.least_time_of(bound_ms)


@given(problem=problems(ONE_CHUNK_ONLY))
@examples(40)
def test_a_bound_of_the_loosest_table_is_the_least_round_trip_and_bottleneck(problem: Problem) -> None:
    plans = plans_of(problem)
    if not plans or sum(1 for depths in all_depths(problem) for _ in all_configurations(problem, depths)) > MOST_PLANS:
        return
    arrays, graph = plans[0].arrays, StageGraph(plans[0].arrays)
    thresholds = thresholds_of(arrays, graph, 1, math.inf)
    assert thresholds is not None
    (root,) = tables_of(arrays, graph, thresholds).root_bounds
    least = min(plan.round_trip_ms for plan in plans)
    assert root == pytest.approx(float(thresholds.low[0]) + least, rel=1e-12, abs=1e-12)


@given(problem=problems(ONE_CHUNK_ONLY))
@examples(70)
def test_the_dag_of_the_first_stages_is_never_above_the_time(problem: Problem) -> None:
    for plan in plans_of(problem):
        cells = plan.cells
        forward, backward, reduce = (
            np.array([float(array[cell]) for cell in cells])
            for array in (plan.arrays.forward, plan.arrays.backward, plan.arrays.all_reduce)
        )
        transfers = np.array(plan.crossings).reshape(-1, 2)
        warmup = np.array([plan.arrays.warmup[place] for _, place, _, _ in cells], dtype=np.int32)
        before = 0.0
        for x in range(1, len(cells) + 1):
            bound_ms = time_prefix(
                warmup,
                problem.num_micro_batches,
                forward[:x].copy(),
                backward[:x].copy(),
                reduce[:x].copy(),
                transfers[:, 0].copy(),
                transfers[:, 1].copy(),
                plan.after(x - 1),
            )
            assert bound_ms <= plan.least_time_of(bound_ms)
            assert bound_ms >= before * (1 - 1e-12), "a longer prefix must not bound less"
            before = bound_ms
        assert before == pytest.approx(plan.time_ms, rel=1e-12, abs=1e-12)


@given(problem=problems())
@examples(40)
def test_the_graph_knows_how_many_layers_fit_before_and_after(problem: Problem) -> None:
    arrays = search_arrays(problem)
    graph = StageGraph(arrays)
    limits = np.ascontiguousarray(arrays.max_layers.max(axis=2))
    after, before = (most(graph, limits, arrays.least_layers) for most in (most_layers_after, most_layers_before))
    first = np.searchsorted(graph.edges[:, 0], np.arange(graph.num_groups + 1))

    def most_after(group: int) -> int:
        if graph.finals[group]:
            return 0
        best = -1
        for _, kind, place, target, _ in graph.edges[first[group] : first[group + 1]].tolist():
            rest = most_after(target)
            if rest >= 0 and limits[kind, place] >= arrays.least_layers:
                best = max(best, rest + int(limits[kind, place]))
        return best

    assert after.tolist() == [most_after(group) for group in range(graph.num_groups)]
    assert before[0] == 0
    for group, kind, place, target, _ in graph.edges.tolist():
        if before[group] >= 0 and limits[kind, place] >= arrays.least_layers:
            assert before[target] >= before[group] + limits[kind, place]
