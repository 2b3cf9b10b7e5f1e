"""Completion tables for clusters with too many device states: the counts of the kinds are relaxed within classes.

The tables then know how many stages of each class of kinds are left, but not of which kind. In their place every stage
of kind k is charged mu_k: a plan pays sum over kinds of mu_k x stages, whatever its order, and taking that off gives a
bound for any charges (Lagrangian relaxation; docs/algorithm.md, "Too many states"). Charges are tuned by subgradient
steps. None is positive, so that what a table says of the stages that follow is never more than what they take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np

from poseidon.search._stage_graph import StageGraph
from poseidon.search._tables import CompletionTables
from poseidon.search.arrays import Floats, Ints, SearchArrays
from poseidon.search.thresholds import Thresholds, achievable, limits_under

TUNING_STEPS = 40
MOST_STATES = 3000
"""Counts of the classes that the relaxed states may tell apart."""


class CountRelaxation:
    """The relaxed stage graph of a problem and the charges found so far."""

    def __init__(self, arrays: SearchArrays) -> None:
        """`accepts(arrays)` must hold."""
        self._arrays = arrays
        self._counts = np.array([kind.stages for kind in arrays.problem.kinds], dtype=np.float64)
        self._class_of_kind = _classes(arrays, self._counts)
        totals = np.bincount(self._class_of_kind, weights=self._counts).astype(np.int32)
        relaxed = replace(
            arrays,
            pool_of_kind=self._class_of_kind,
            units_of_kind=np.ones(len(self._counts), dtype=np.int32),
            pool_units=totals,
            node_units=np.ones(len(totals), dtype=np.int32),
            by_node=False,
        )
        self.graph = StageGraph(relaxed)
        self.charges = np.zeros(len(self._counts))

    @staticmethod
    def accepts(arrays: SearchArrays) -> bool:
        """Whether it is implemented for a problem: own devices for each kind, stages of whole nodes, no depths."""
        own = not arrays.problem.pools and not arrays.allow_idle and bool((arrays.node_units == 1).all())
        return own and not arrays.is_interleaved and arrays.most_depth == 1

    def least_bottleneck(self, ceiling_ms: float) -> float:
        """The least beta that any plan can have, each kind at its best place; infinite if above the ceiling."""
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

    def tables(
        self, thresholds: Thresholds, cutoff_ms: float, most_values: int, must_stop: Callable[[], bool]
    ) -> CompletionTables:
        """Tables for the given thresholds with charges tuned to them until `must_stop`.

        Raises MemoryError where they would be too large.
        """
        limits = limits_under(self._arrays, float(thresholds.high[-1]), cutoff_ms)
        first = thresholds.first_allowed(self._arrays, cutoff_ms)
        best_bound, best_charges = -np.inf, self.charges
        charges = self.charges
        for step in range(TUNING_STEPS):
            if must_stop():
                break
            charged = self._charged(charges)
            tables = CompletionTables(self.graph, charged, thresholds.low, thresholds.high, first, limits, most_values)
            bounds = tables.root_bounds - float(charges @ self._counts)
            weakest = int(bounds.argmin())
            if bounds[weakest] > best_bound:
                best_bound, best_charges = float(bounds[weakest]), charges
            found = tables.minimiser(charged, first, weakest)
            if found is None:
                break
            slope = np.bincount(found[0], minlength=len(charges)) - self._counts
            if not slope.any():
                break
            target = cutoff_ms if np.isfinite(cutoff_ms) else 1.05 * float(bounds[weakest])
            size = max(target - float(bounds[weakest]), 1e-3 * target) / (1 + 0.2 * step)
            charges = self._without_gain(charges + size * slope / float(slope @ slope))
        self.charges = best_charges
        charged = self._charged(self.charges)
        return CompletionTables(self.graph, charged, thresholds.low, thresholds.high, first, limits, most_values)

    def _charged(self, charges: Floats) -> SearchArrays:
        return replace(self._arrays, cost=self._arrays.cost + charges[:, None, None, None])

    def _without_gain(self, charges: Floats) -> Floats:
        """The charges with the largest of each class at zero: the same bound, since a class's stages are counted."""
        largest = np.full(int(self._class_of_kind.max()) + 1, -np.inf)
        np.maximum.at(largest, self._class_of_kind, charges)
        return np.asarray(charges - largest[self._class_of_kind], dtype=np.float64)


def _classes(arrays: SearchArrays, counts: Floats) -> Ints:
    """Class of each kind: kinds of like speed together, in as many classes as `MOST_STATES` allows.

    The cuts lie where the speeds differ most.
    """
    per_layer = np.array([min(c.forward_ms + c.backward_ms for c in kind.layers) for kind in arrays.problem.kinds])
    order = np.argsort(per_layer, kind="stable")
    steps = np.diff(np.log(np.maximum(per_layer[order], 1e-12)))
    best: tuple[int, float, tuple[int, ...]] = (0, 0.0, ())
    for number in range(1, min(len(order), 5)):
        for cuts in combinations(range(1, len(order)), number):
            states = prod(int(part.sum()) + 1 for part in np.split(counts[order], list(cuts)))
            apart = float(sum(steps[cut - 1] for cut in cuts))
            if states <= MOST_STATES and (number, apart) > best[:2]:
                best = (number, apart, cuts)
    class_of_kind = np.zeros(len(order), dtype=np.int32)
    for index, members in enumerate(np.split(order, list(best[2]))):
        class_of_kind[members] = index
    return class_of_kind
