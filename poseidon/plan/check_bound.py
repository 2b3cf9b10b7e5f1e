"""A lower bound on every pipeline of a problem, worked out without the search.

A dynamic program gives the least S when no stage's beta exceeds a threshold (see `check_graph`). Intervals of
thresholds that cover everything are split until the bound is good enough or the effort is used up.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from poseidon.plan.check_graph import Floats, SpaceGraph, Steps
from poseidon.plan.check_space import Use


@dataclass(frozen=True, order=True)
class _Interval:
    """Pipelines whose bottleneck is one of `values[low]` .. `values[high]`.

    `least_ms` is the least S of those below `values[high]`, `bound_ms` a lower bound on the times of all.
    """

    bound_ms: float
    low: int
    high: int
    least_ms: float


def lower_bound(graph: SpaceGraph, enough_ms: float, steps: Steps) -> float:
    """A time that no pipeline of the graph beats: `enough_ms`, or what could be shown; infinite where none exists."""
    if not graph.levels:
        return 0.0
    values = graph.betas()
    if len(values) == 0:
        return math.inf
    least = _least_sum(graph, float(values[-1]), steps)
    if least is None:
        return 0.0
    heap = [_Interval(least + float(values[0]), 0, len(values) - 1, least)]
    while heap[0].bound_ms < enough_ms:
        worst = heap[0]
        middle = (worst.low + worst.high) // 2
        least = None if worst.low == worst.high else _least_sum(graph, float(values[middle]), steps)
        if least is None:
            return worst.bound_ms
        upper = _Interval(worst.least_ms + float(values[middle + 1]), middle + 1, worst.high, worst.least_ms)
        heapq.heapreplace(heap, _Interval(least + float(values[worst.low]), worst.low, middle, least))
        heapq.heappush(heap, upper)
    return enough_ms if math.isfinite(heap[0].bound_ms) else math.inf


def _least_sum(graph: SpaceGraph, threshold: float, steps: Steps) -> float | None:
    """The least S of a pipeline in which no beta exceeds the threshold; infinite if none exists, None if too much."""
    if not steps.take(graph.num_edges):
        return None
    costs = graph.costs_up_to(threshold)
    nothing = np.full(graph.problem.num_layers + 1, np.inf)
    start = nothing.copy()
    start[0] = 0.0
    sums: dict[Use, dict[int, Floats]] = {graph.space.start: {-1: start}}
    for stage, level in enumerate(graph.levels):
        following: dict[Use, dict[int, Floats]] = {}
        for use, edges in level.items():
            for edge in edges:
                before = nothing
                for last, row in sums.get(use, {}).items():
                    before = np.minimum(before, row + edge.boundary_ms.get(last, math.inf))
                row = (before[:, None] + costs[edge.kind, stage]).min(axis=0)
                known = following.setdefault(edge.after, {})
                known[edge.kind] = np.minimum(known[edge.kind], row) if edge.kind in known else row
        sums = following
    ends = [row[-1] for use, rows in sums.items() if graph.space.is_whole(use) for row in rows.values()]
    return float(min(ends, default=math.inf))
