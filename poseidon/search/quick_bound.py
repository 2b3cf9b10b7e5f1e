"""A bound on a whole outer choice in a millisecond: it orders the outer choices and drops the hopeless ones before any
table is built.

For a limit on the bottleneck, stages and layers are mixed as is cheapest, each stage with at most the layers of its
kind's best place (a fractional relaxation of the completion tables that ignores places and orders). docs/algorithm.md,
"Outer choices".
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from poseidon.search._stage_mix import StageMix
from poseidon.search.arrays import Floats, SearchArrays

MOST_MIXES = 48
"""Limits on the bottleneck that are looked at."""


def quick_bound(arrays: SearchArrays) -> float:
    """A time (ms) that no configuration of the problem can beat; infinite where memory rules every one out."""
    least = _least_beta(arrays)
    values = np.unique(least[np.isfinite(least)])
    if len(values) == 0:
        return math.inf
    mix = StageMix(
        arrays.pool_of_kind,
        arrays.units_of_kind,
        arrays.pool_units,
        _per_layer(arrays),
        arrays.num_stages,
        arrays.num_layers,
        arrays.least_layers,
        arrays.allow_idle,
    )
    return _least_over_bottlenecks(mix, least, values) + _fixed_cost(arrays)


def _least_beta(arrays: SearchArrays) -> Floats:
    """Least beta of each kind with each number of layers (K x n) at any place; infinite where memory does not hold."""
    layers = np.arange(arrays.most_layers + 1)
    most = arrays.max_layers.max(axis=2)
    fits = (layers >= arrays.least_layers) & (layers <= most[:, :, None])
    return np.asarray(np.where(fits, arrays.beta.min(axis=2), np.inf).min(axis=1), dtype=np.float64)


def _least_over_bottlenecks(mix: StageMix, least: Floats, values: Floats) -> float:
    """Least sum of bottleneck and round trip.

    A configuration whose bottleneck lies in an interval takes at least its lower end, and the round trip of the best
    mix under its upper end. The interval that promises the least is halved, until it is a single value.
    """
    intervals = [(values[0] + mix.least_cost(_most(least, values[-1])), 0, len(values) - 1)]
    for _ in range(MOST_MIXES):
        bound_ms, first, last = intervals[0]
        if first == last or math.isinf(bound_ms):
            break
        middle = (first + last) // 2
        lower = values[first] + mix.least_cost(_most(least, values[middle]))
        upper = bound_ms - values[first] + values[middle + 1]
        heapq.heapreplace(intervals, (lower, first, middle))
        heapq.heappush(intervals, (upper, middle + 1, last))
    return float(intervals[0][0])


def _most(least: Floats, limit: float) -> Floats:
    """Most layers of each kind at its best place, when beta may not exceed a limit."""
    layers = np.arange(least.shape[1])
    return np.asarray(np.where(least <= limit, layers, 0).max(axis=1), dtype=np.float64)


def _per_layer(arrays: SearchArrays) -> Floats:
    """Least forward + backward of one layer on each kind."""
    return np.array([min(c.forward_ms + c.backward_ms for c in kind.layers) for kind in arrays.problem.kinds])


def _fixed_cost(arrays: SearchArrays) -> float:
    """Embedding, head, first all-reduce and transfers: what every round trip has, at the least."""
    kinds = arrays.problem.kinds
    extras = min(k.first.forward_ms + k.first.backward_ms + k.first.all_reduce_ms for k in kinds)
    extras += min(k.last.forward_ms + k.last.backward_ms for k in kinds)
    extras += min(min(c.all_reduce_ms for c in k.layers) for k in kinds) * arrays.least_layers
    boundaries = 0.0
    if arrays.num_stages > 1:
        round_trip = np.minimum(arrays.intra_node + arrays.intra_node.T, arrays.inter_node + arrays.inter_node.T)
        boundaries = (arrays.num_stages - 1) * arrays.round_trips * float(round_trip.min())
    return extras + boundaries + arrays.wrap_ms
