"""The stage graph holds every order of kinds (and every choice of depths) once, and no other."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given

from poseidon.cost.problem import LayerCost, Pool, Problem
from poseidon.search._stage_graph import StageGraph
from poseidon.search.arrays import search_arrays
from poseidon.search.evaluate import boundaries_within_nodes
from poseidon.search.reference import all_depths, all_orders
from tests.search.example import EXAMPLE, chain, kind
from tests.search.strategies import Space, examples, problems

SILENT = Space(forbidden=False)


def walks(problem: Problem) -> list[tuple[tuple[int, int, bool], ...]]:
    """Every walk from the empty to a whole pipeline: (kind, place, begins inside a node of its pool) a stage."""
    graph = StageGraph(search_arrays(problem))
    found = []

    def walk(group: int, steps: tuple[tuple[int, int, bool], ...]) -> None:
        if graph.finals[group]:
            found.append(steps)
        for _, kind_, place, target, within in edges.get(group, []):
            walk(target, (*steps, (kind_, place, bool(within))))

    edges: dict[int, list[list[int]]] = {}
    for edge in graph.edges.tolist():
        edges.setdefault(edge[0], []).append(edge)
    walk(0, ())
    return found


def orders_of(problem: Problem) -> list[tuple[int, ...]]:
    return [tuple(kind_ for kind_, _, _ in steps) for steps in walks(problem)]


@given(problem=problems(SILENT))
@examples(70)
def test_its_walks_are_the_orders_and_depths_of_the_problem(problem: Problem) -> None:
    found = walks(problem)
    assert len(set(found)) == len(found)
    warmups = [tuple(problem.places[place].warmup for _, place, _ in steps) for steps in found]
    depths = [tuple(before - after for before, after in pairwise(one)) for one in warmups]
    kinds = [tuple(kind_ for kind_, _, _ in steps) for steps in found]
    if problem.schedule != "adaptive_1f1b":
        depths = [()] * len(found)
    expected = [(order, chosen) for order in all_orders(problem) for chosen in all_depths(problem)]
    assert sorted(zip(kinds, depths, strict=True)) == sorted(expected)


@given(problem=problems(SILENT))
@examples(50)
def test_it_knows_which_boundaries_lie_inside_a_node(problem: Problem) -> None:
    pool_of_kind = search_arrays(problem).pool_of_kind
    for steps in walks(problem):
        kinds = [kind_ for kind_, _, _ in steps]
        inside = [
            within and pool_of_kind[before] == pool_of_kind[after]
            for (before, _, _), (after, _, within) in pairwise(steps)
        ]
        assert inside == boundaries_within_nodes(problem, kinds)


def two_kinds(assignment: str, per_node: int) -> Problem:
    """Two stages of each of two kinds, `per_node` of them in a node."""
    kinds = [replace(one, stages=2, stages_per_node=per_node, max_layers=((4,),) * 4) for one in EXAMPLE.kinds]
    return replace(EXAMPLE, kinds=tuple(kinds), num_stages=4, num_layers=6, assignment=assignment)


def test_whole_nodes_stay_together_under_node_assignment() -> None:
    assert sorted(orders_of(two_kinds("node", 2))) == [(0, 0, 1, 1), (1, 1, 0, 0)]
    assert len(orders_of(two_kinds("node", 1))) == 6
    assert len(orders_of(two_kinds("stage", 2))) == 6


def test_stages_of_a_kind_fill_its_nodes_in_pipeline_order() -> None:
    # Kind 0 has two stages in one node. In 0 1 0 1 its second stage is not next to the first, so no boundary is inside.
    assert boundaries_within_nodes(two_kinds("stage", 2), (0, 0, 1, 1)) == [True, False, True]
    assert boundaries_within_nodes(two_kinds("stage", 2), (0, 1, 0, 1)) == [False, False, False]
    assert boundaries_within_nodes(two_kinds("stage", 2), (0, 1, 1, 0)) == [False, True, False]


def test_a_stage_lies_in_one_node_or_covers_whole_ones() -> None:
    # A pool of two nodes of four devices; stages take 2, 4 or 8 of them.
    kinds = tuple(
        kind(f"of {devices}", LayerCost(1.0, 1.0), pool="p", devices=devices, max_layers=((9,),) * 3)
        for devices in (2, 4, 8)
    )
    pool = replace(EXAMPLE, kinds=kinds, pools=(Pool("p", 8, 4),), num_stages=3, num_layers=6, assignment="stage")
    assert sorted(orders_of(pool)) == [(0, 0, 1), (1, 0, 0)]
    assert orders_of(replace(pool, num_stages=1)) == [(2,)]
    assert orders_of(replace(pool, num_stages=2)) == [(1, 1)]
    # Left idle: in 2 + 4 the four devices would begin inside the first node and end in the second.
    assert sorted(orders_of(replace(pool, num_stages=2, allow_idle=True))) == [(0, 0), (1, 0), (1, 1)]


def test_a_node_that_was_left_is_used_up_where_devices_may_stay_idle() -> None:
    # Kind 0 has one node of two stages: after 0 1 nothing of it is left.
    first = replace(EXAMPLE.kinds[0], stages=2, stages_per_node=2, max_layers=((4,),) * 3)
    second = replace(EXAMPLE.kinds[1], stages=2, max_layers=((4,),) * 3)
    problem = replace(EXAMPLE, kinds=(first, second), num_stages=3, num_layers=6, allow_idle=True)
    assert sorted(orders_of(problem)) == [(0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0)]


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_places_are_the_stages_where_the_schedule_leaves_no_choice(schedule: str) -> None:
    (steps,) = walks(chain(3, 5, schedule=schedule))
    assert [place for _, place, _ in steps] == [0, 1, 2]


def test_a_graph_that_would_be_too_large_is_not_built() -> None:
    arrays = search_arrays(two_kinds("stage", 1))
    assert StageGraph(arrays).complete
    assert not StageGraph(arrays, most_groups=3).complete
    assert not StageGraph(arrays, most_keys=8).complete
    assert StageGraph(arrays, most_groups=9, most_keys=9).complete


def test_kinds_that_cannot_talk_are_left_to_the_boundaries() -> None:
    silent = replace(two_kinds("stage", 1), inter_node_ms=((1.0, math.inf), (math.inf, 1.0)))
    assert len(orders_of(silent)) == 6
    assert list(all_orders(silent)) == []
