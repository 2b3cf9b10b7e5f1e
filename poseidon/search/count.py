"""The exact number of feasible configurations, counted by dynamic programming (contract, "what `count` counts")."""

from __future__ import annotations

from math import comb

import numpy as np

from poseidon.cost.problem import Problem
from poseidon.search._stage_graph import StageGraph
from poseidon.search.arrays import SearchArrays, search_arrays

Row = list[int]


def count_configurations(problem: Problem) -> int:
    """Distinct orders x allocations within memory of one outer choice, as an exact integer.

    With several chunks each way to split a stage's layers over them counts. Raises ValueError where the schedule
    refuses the shape and MemoryError where there are too many states.
    """
    arrays = search_arrays(problem)
    graph = StageGraph(arrays)
    if not graph.complete:
        raise MemoryError("the cluster has too many device states to count")
    return _Counter(arrays, graph).count()


class _Counter:
    """Counts completions from the last group to the first; a row has one number for each count of placed layers."""

    def __init__(self, arrays: SearchArrays, graph: StageGraph) -> None:
        self._arrays = arrays
        self._stages, self._finals = graph.stages, graph.finals
        self._edges = graph.edges
        self._first = np.searchsorted(self._edges[:, 0], np.arange(len(self._stages) + 1)).tolist()
        blocked = ~np.isfinite(np.maximum(arrays.inter_node, arrays.inter_node.T))
        blocked_within = ~np.isfinite(np.maximum(arrays.intra_node, arrays.intra_node.T))
        self._forbidden = bool(blocked.any() or blocked_within.any())
        self._blocked = (blocked, blocked_within)

    def count(self) -> int:
        if not (self._forbidden and self._arrays.num_chunks > 1):
            return self._count_from(None)
        return sum(self._count_from(kind) for kind in range(len(self._arrays.problem.kinds)))

    def _count_from(self, first: int | None) -> int:
        """Configurations whose first stage is of a kind (any kind: None)."""
        num_layers, num_kinds = self._arrays.num_layers, len(self._arrays.problem.kinds)
        lasts = range(num_kinds) if self._forbidden else range(1)
        rows: list[dict[int, Row]] = [{} for _ in range(len(self._stages))]
        for group in range(len(self._stages) - 1, -1, -1):
            if self._finals[group]:
                done = [0] * num_layers + [1]
                rows[group] = {last: done for last in lasts if first is None or not self._blocked[0][last, first]}
                continue
            edges = self._edges[self._first[group] : self._first[group + 1]].tolist()
            ways = [
                (kind, within, self._ways(kind, place, rows[target].get(kind if self._forbidden else 0)))
                for _, kind, place, target, within in edges
                if group > 0 or first is None or kind == first
            ]
            for last in lasts:
                allowed = [row for kind, within, row in ways if row and not self._is_blocked(group, last, kind, within)]
                rows[group][last] = [sum(column) for column in zip(*allowed, strict=True)] if allowed else []
        return rows[0][0][0] if rows[0][0] else 0

    def _is_blocked(self, group: int, last: int, kind: int, begins_within: int) -> bool:
        if not self._forbidden or self._stages[group] == 0:
            return False
        pools = self._arrays.pool_of_kind
        within = begins_within and pools[last] == pools[kind]
        return bool(self._blocked[1 if within else 0][last, kind])

    def _ways(self, kind: int, place: int, after: Row | None) -> Row:
        """For each count of placed layers: ways to give a next stage of a kind some layers and complete the rest."""
        if not after:
            return []
        arrays = self._arrays
        limits = arrays.max_layers[kind, place].tolist()
        chunks = arrays.num_chunks
        ways = [0] * (arrays.num_layers + 1)
        if chunks == 1:
            sums = [0]
            for value in after:
                sums.append(sums[-1] + value)
        for placed in range(arrays.num_layers):
            most = min(limits[placed] if len(limits) > 1 else limits[0], arrays.num_layers - placed)
            if chunks == 1:
                ways[placed] = sums[placed + most + 1] - sums[placed + 1]
            else:
                ways[placed] = sum(comb(n - 1, chunks - 1) * after[placed + n] for n in range(chunks, most + 1))
        return ways
