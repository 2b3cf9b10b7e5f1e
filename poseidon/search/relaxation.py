"""Completion tables for clusters whose device states are too many: the counts of the kinds are relaxed, with a charge
on each stage.

The tables then know the place, the layers placed and the last kind, but not how many stages of each kind are left. A
plan that uses the right number of stages pays sum over kinds of charge x stages in charges, whatever its order: taking
that off gives a bound for any charges (Lagrangian relaxation; docs/algorithm.md, "Too many states"). The charges are
tuned by subgradient steps.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from poseidon.search._stage_graph import StageGraph
from poseidon.search._tables import CompletionTables
from poseidon.search.arrays import Floats, Ints, SearchArrays
from poseidon.search.thresholds import Thresholds, achievable, limits_under

TUNING_STEPS = 60


class CountRelaxation:
    """The relaxed stage graph of a problem and the charges found so far."""

    def __init__(self, arrays: SearchArrays) -> None:
        """`accepts(arrays)` must hold."""
        self._arrays = arrays
        self._counts = np.array([kind.stages for kind in arrays.problem.kinds], dtype=np.float64)
        num_kinds = len(self._counts)
        chain = replace(
            arrays,
            pool_of_kind=np.zeros(num_kinds, dtype=np.int32),
            units_of_kind=np.ones(num_kinds, dtype=np.int32),
            pool_units=np.array([arrays.num_stages], dtype=np.int32),
            node_units=np.ones(1, dtype=np.int32),
            by_node=False,
        )
        self.graph = StageGraph(chain)
        self.charges = np.zeros(num_kinds)
        self._tail = _least_tails(arrays, self._counts)

    @staticmethod
    def accepts(arrays: SearchArrays) -> bool:
        """Whether the relaxation is implemented for a problem: kinds with devices of their own, stages of whole nodes,
        one layer type.
        """
        own = not arrays.problem.pools and not arrays.allow_idle and bool((arrays.node_units == 1).all())
        return own and not arrays.is_interleaved and arrays.most_depth == 1 and arrays.forward.shape[2] == 1

    def least_bottleneck(self, ceiling_ms: float) -> float:
        """The least beta that any plan can have, each kind at its best place; infinite where none stays below the
        ceiling.
        """
        values = achievable(self._arrays, 0.0, ceiling_ms)
        low, high = 0, len(values)
        while low < high:
            middle = (low + high) // 2
            most = limits_under(self._arrays, float(values[middle])).max(axis=1)
            if (most * self._counts).sum() >= self._arrays.num_layers:
                high = middle
            else:
                low = middle + 1
        return float(values[low]) if low < len(values) else np.inf

    def tables(self, thresholds: Thresholds, cutoff_ms: float, most_values: int) -> CompletionTables:
        """Tables for the given thresholds with charges tuned to them."""
        limits = limits_under(self._arrays, float(thresholds.high[-1]), cutoff_ms)
        base = self._widened(limits)
        first = self._first_allowed(base, thresholds)
        best = (-np.inf, self.charges)
        charges = self.charges
        for step in range(TUNING_STEPS):
            charged = replace(base, cost=base.cost + charges[:, None, None, None])
            tables = CompletionTables(self.graph, charged, thresholds.low, thresholds.high, first, limits, most_values)
            bounds = tables.root_bounds - float(charges @ self._counts)
            weakest = int(bounds.argmin())
            if bounds[weakest] > best[0]:
                best = (float(bounds[weakest]), charges)
            found = tables.minimiser(charged, first, weakest)
            if found is None:
                break
            slope = np.bincount(found[0], minlength=len(charges)) - self._counts
            if not slope.any():
                break
            target = cutoff_ms if np.isfinite(cutoff_ms) else 1.05 * float(bounds[weakest])
            size = max(target - float(bounds[weakest]), 1e-3 * target) / (1 + 0.1 * step)
            charges = charges + size * slope / float(slope @ slope)
        self.charges = best[1]
        charged = replace(base, cost=base.cost + self.charges[:, None, None, None])
        return CompletionTables(self.graph, charged, thresholds.low, thresholds.high, first, limits, most_values)

    def _widened(self, limits: Ints) -> SearchArrays:
        """The arrays with a row for each first layer, cut to the layers that the limits leave; family 2 is in the
        thresholds instead.
        """
        most = int(limits.max())
        rows = self._arrays.num_layers
        cost = np.repeat(self._arrays.cost[:, :, :, : most + 1], rows, axis=2)
        row_of_layer = np.minimum(np.arange(rows + 1), rows - 1).astype(np.int32)
        return replace(
            self._arrays,
            cost=np.ascontiguousarray(cost),
            gamma=np.full_like(cost, -np.inf),
            row_of_layer=row_of_layer,
            most_layers=most,
            max_layers=np.ascontiguousarray(np.minimum(self._arrays.max_layers, most)),
        )

    def _first_allowed(self, base: SearchArrays, thresholds: Thresholds) -> NDArray[np.int16]:
        """The first threshold that a stage respects, with the least that can follow it."""
        num_layers, most = base.num_layers, base.most_layers
        after = np.minimum(np.arange(num_layers)[:, None] + np.arange(most + 1), num_layers)
        tail = self._tail[:, after]
        beta = self._arrays.beta[:, :, :, : most + 1]
        gamma = self._arrays.gamma[:, :, :, : most + 1]
        return np.ascontiguousarray(np.searchsorted(thresholds.high, np.maximum(beta, gamma + tail)).astype(np.int16))


def _least_tails(arrays: SearchArrays, counts: Floats) -> Floats:
    """Least round trip of the stages after each place when so many layers are placed up to it; N x (L + 1),
    milliseconds.

    The stages that follow take the kinds with the cheapest layers first, one layer each and then up to their limits.
    """
    kinds = arrays.problem.kinds
    per_layer = np.array([kind.layers[0].forward_ms + kind.layers[0].backward_ms for kind in kinds])
    limits = arrays.max_layers.max(axis=2)
    round_trip = np.minimum(arrays.intra_node + arrays.intra_node.T, arrays.inter_node + arrays.inter_node.T).min()
    last = min(kind.last.forward_ms + kind.last.backward_ms for kind in kinds)
    order = np.argsort(per_layer, kind="stable")
    num_stages, num_layers = arrays.num_stages, arrays.num_layers
    tails = np.zeros((num_stages, num_layers + 1))
    for place in range(num_stages - 1):
        stages = num_stages - 1 - place
        used = np.minimum(counts[order], np.maximum(stages - np.concatenate(([0.0], np.cumsum(counts[order])[:-1])), 0))
        room = used * np.maximum(limits[order, place + 1 :].max(axis=1) - 1, 0)
        base = float((used * per_layer[order]).sum()) + stages * float(round_trip) + last
        extra = np.maximum(num_layers - np.arange(num_layers + 1) - stages, 0).astype(np.float64)
        cost = np.zeros(num_layers + 1)
        for spare, each in zip(room, per_layer[order], strict=True):
            placed = np.minimum(extra, spare)
            cost += placed * each
            extra = extra - placed
        tails[place] = base + cost + extra * float(per_layer.min())
    return tails
