"""A bound on a whole outer choice in closed form: it orders the outer choices and drops the hopeless ones before any
table is built.

For a limit on the bottleneck, the layers go to the kinds with the least time per layer first, each up to its most
layers at its best place (a fractional relaxation of the completion tables that ignores places and orders).
docs/algorithm.md, "Outer choices".
"""

from __future__ import annotations

import numpy as np

from poseidon.search.arrays import Floats, SearchArrays


def quick_bound(arrays: SearchArrays, num_limits: int = 48) -> float:
    """A time (ms) that no configuration of the problem can beat; infinite where memory rules every one out."""
    most = arrays.max_layers.max(axis=2)
    capacity = _stages(arrays)
    if not _holds(arrays, capacity, most.max(axis=1)):
        return np.inf
    layers = np.arange(arrays.most_layers + 1)
    fits = (layers >= arrays.least_layers) & (layers <= most[:, :, None])
    beta = arrays.beta.min(axis=2)
    least = np.where(fits, beta, np.inf).min(axis=1)
    values = np.unique(least[np.isfinite(least)])
    if len(values) == 0:
        return np.inf
    low = _least_limit(arrays, capacity, least, values)
    values = values[low:]
    picks = np.unique(np.linspace(0, len(values) - 1, min(num_limits, len(values))).astype(int))
    previous = np.concatenate(([0], picks[:-1] + 1))
    fixed = _fixed_cost(arrays)
    return min(
        float(values[before]) + _least_round_trip(arrays, capacity, _most(least, values[pick])) + fixed
        for before, pick in zip(previous, picks, strict=True)
    )


def _stages(arrays: SearchArrays) -> Floats:
    """Most stages of each kind."""
    stages = np.minimum(arrays.pool_units[arrays.pool_of_kind] // arrays.units_of_kind, arrays.num_stages)
    return np.asarray(stages, dtype=np.float64)


def _most(least: Floats, limit: float) -> Floats:
    """Most layers of each kind at its best place, when beta may not exceed a limit."""
    layers = np.arange(least.shape[1])
    return np.asarray(np.where(least <= limit, layers, 0).max(axis=1), dtype=np.float64)


def _holds(arrays: SearchArrays, capacity: Floats, most: Floats) -> bool:
    """Whether so many layers a stage could hold the model."""
    total = 0.0
    for pool, units in enumerate(arrays.pool_units):
        members = arrays.pool_of_kind == pool
        per_unit = (most[members] / arrays.units_of_kind[members]).max()
        total += min(per_unit * units, most[members].max() * arrays.num_stages)
    return total >= arrays.num_layers


def _least_limit(arrays: SearchArrays, capacity: Floats, least: Floats, values: Floats) -> int:
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        if _holds(arrays, capacity, _most(least, values[middle])):
            high = middle
        else:
            low = middle + 1
    return low


def _per_layer(arrays: SearchArrays) -> Floats:
    """Least forward + backward of one layer on each kind."""
    return np.array([min(c.forward_ms + c.backward_ms for c in kind.layers) for kind in arrays.problem.kinds])


def _least_round_trip(arrays: SearchArrays, capacity: Floats, most: Floats) -> float:
    """Least sum of F + B over the layers, kinds with the cheapest layers first."""
    left = float(arrays.num_layers)
    total = 0.0
    per_layer = _per_layer(arrays)
    exact = not (arrays.allow_idle or arrays.problem.pools)
    if exact:
        total += float((capacity * arrays.least_layers * per_layer).sum())
        left -= float(capacity.sum()) * arrays.least_layers
        most = np.maximum(most - arrays.least_layers, 0)
    for kind in np.argsort(per_layer, kind="stable"):
        placed = min(left, capacity[kind] * most[kind])
        total += placed * per_layer[kind]
        left -= placed
        if left <= 0:
            break
    return total


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
