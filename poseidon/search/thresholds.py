"""Thresholds on a pipeline's bottleneck, for the completion tables (docs/algorithm.md, "Thresholds")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poseidon.search._stage_graph import StageGraph
from poseidon.search._tables import most_layers_after
from poseidon.search.arrays import Floats, Ints, SearchArrays


@dataclass(frozen=True)
class Thresholds:
    """J intervals, `low[j]` to `high[j]` (ms), that cover every value the bottleneck can take in a range."""

    low: Floats
    high: Floats

    def first_allowed(self, arrays: SearchArrays, cutoff_ms: float) -> NDArray[np.int16]:
        """The first threshold that a stage respects, for each (kind, place, row, layers); J where it respects none."""
        first = np.searchsorted(self.high, arrays.beta).astype(np.int16)
        first[arrays.alone >= cutoff_ms] = len(self.high)
        return np.ascontiguousarray(first)


def limits_under(arrays: SearchArrays, beta_ms: float, cutoff_ms: float = np.inf) -> Ints:
    """Most layers of each kind at each place (K x N) when its beta may not exceed a threshold and memory holds."""
    allowed = ((arrays.beta <= beta_ms) & (arrays.alone < cutoff_ms)).any(axis=2)
    layers = np.arange(arrays.most_layers + 1)
    most = np.where(allowed, layers, 0).max(axis=2, initial=0)
    return np.ascontiguousarray(np.minimum(most, arrays.max_layers.max(axis=2)), dtype=np.int32)


def achievable(arrays: SearchArrays, low_ms: float, high_ms: float) -> Floats:
    """The distinct values of beta in a range, ascending, of stages that fit in memory."""
    layers = np.arange(arrays.most_layers + 1)
    fits = (layers >= arrays.least_layers) & (layers <= arrays.max_layers.max(axis=2)[:, :, None])
    inside = fits[:, :, None, :] & (arrays.beta >= low_ms) & (arrays.beta <= high_ms) & np.isfinite(arrays.beta)
    return np.unique(arrays.beta[inside])


def least_bottleneck(arrays: SearchArrays, graph: StageGraph, values: Floats, cutoff_ms: float) -> int:
    """Index of the least of `values` (ascending) under which all layers can be placed; their number where none does."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        limits = limits_under(arrays, float(values[middle]), cutoff_ms)
        if most_layers_after(graph, limits, arrays.least_layers)[0] >= arrays.num_layers:
            high = middle
        else:
            low = middle + 1
    return low


def spread(least_ms: float, values: Floats, ceiling_ms: float, count: int) -> Thresholds:
    """At most `count` thresholds that cover bottlenecks from `least_ms` to `ceiling_ms`.

    `values` are the achievable values of beta in between, ascending. An interval begins at one of them and ends right
    below the next chosen one, so a bottleneck that is some stage's beta loses nothing; where they are sparse, points
    between them are added for bottlenecks of the other family.
    """
    values = np.union1d([least_ms], values)
    if len(values) > count:
        targets = np.linspace(values[0], values[-1], count)
        low = values[np.unique(np.searchsorted(values, targets, side="right") - 1)]
    else:
        last = ceiling_ms if np.isfinite(ceiling_ms) else float(values[-1])
        between = np.linspace(values[0], last, count - len(values) + 2)[1:-1]
        low = np.union1d(values, between)
    high = np.append(np.nextafter(low[1:], -np.inf), ceiling_ms)
    return Thresholds(np.ascontiguousarray(low), np.ascontiguousarray(high))
