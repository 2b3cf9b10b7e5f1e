"""Nodes and pools whose devices the stages do not divide: the search sees the orders that the judge sees, no others."""

from __future__ import annotations

import math

from poseidon.cost.problem import Kind, LayerCost, Pool, Problem
from poseidon.search.reference import all_orders
from poseidon.search.result import SolutionStatus
from poseidon.search.solve import solve

COST = LayerCost(1.0, 2.0)


def kind(name: str, stages: int, per_node: int, pool: str = "", devices: int = 1) -> Kind:
    return Kind(name, stages, per_node, (COST,), LayerCost(), LayerCost(), ((3,),) * 6, pool, devices)


def test_a_half_used_node_is_left_for_good_even_beside_an_odd_one():
    """B has one node of two stages, A a node and a half: B's node may not be entered again after A and C."""
    cannot, near = math.inf, 0.1
    times = ((cannot, near, near), (near, near, cannot), (near, cannot, cannot))
    kinds = (kind("B", 2, 2), kind("A", 3, 2), kind("C", 1, 1))
    problem = Problem("odd", "1f1b", 1, 4, 6, 6, "node", kinds, times, times, allow_idle=True)
    assert list(all_orders(problem)) == []
    assert solve([problem]).status is SolutionStatus.INFEASIBLE


def test_a_pool_with_a_device_too_many_is_not_used_up():
    """Five devices, stages of two: one device is always left, which is refused unless devices may be idle."""
    pools = (Pool("q", 5, 4),)
    problem = Problem("odd", "1f1b", 1, 4, 4, 2, "stage", (kind("k", 9, 1, "q", 2),), ((0.1,),), ((0.1,),), pools=pools)
    assert list(all_orders(problem)) == []
    assert solve([problem]).status is SolutionStatus.INFEASIBLE
