"""How many configurations lie behind a partial one, counted by dynamic programming in exact integers."""

from __future__ import annotations

from math import comb

import numpy as np

from poseidon.search.space import Space

Row = list[int]


class Completions:
    """Counts the ways to complete a pipeline from each group of the stage graph, last kind and number of layers placed.

    With several chunks each way to split a stage's layers over them counts.
    """

    def __init__(self, space: Space, first_kind: int | None = None) -> None:
        """Counts from the last stage to the first; with `first_kind` only pipelines that begin with this kind."""
        self._first_kind = first_kind
        self._arrays = space.arrays
        self._edges = space.edges.tolist()
        self._first_edge = space.first_edge.tolist()
        self._num_kinds = len(space.problem.kinds)
        self._none: Row = [0] * (self._arrays.num_layers + 1)
        self._blocked = tuple(
            ~np.isfinite(np.maximum(times, times.T)) for times in (self._arrays.inter_node, self._arrays.intra_node)
        )
        self._by_last = any(bool(blocked.any()) for blocked in self._blocked)
        self._rows: dict[int, list[Row]] = {}
        for group in range(len(space.finals) - 1, -1, -1):
            self._rows[group] = self._complete(group, bool(space.finals[group]))

    def after(self, group: int, last_kind: int, placed: int) -> int:
        """Completions of a pipeline that stands at a group with `placed` layers and a last stage of this kind."""
        return self._rows[group][last_kind if self._by_last else 0][placed]

    @property
    def total(self) -> int:
        """All configurations."""
        return self.after(0, 0, 0)

    def _complete(self, group: int, is_final: bool) -> list[Row]:
        """For each last kind (one row for all where every pair of kinds can talk) the completions by layers placed."""
        lasts = range(self._num_kinds) if self._by_last else range(1)
        if is_final:
            done = [*self._none[1:], 1]
            return [self._none if self._cannot_wrap(last) else done for last in lasts]
        edges = self._edges[self._first_edge[group] : self._first_edge[group + 1]]
        if group == 0 and self._first_kind is not None:
            edges = [edge for edge in edges if edge[1] == self._first_kind]
        ways = [(kind, within, self._ways(kind, place, target)) for _, kind, place, target, within in edges]
        rows = []
        for last in lasts:
            allowed = [row for kind, within, row in ways if group == 0 or not self._is_blocked(last, kind, within)]
            rows.append([sum(column) for column in zip(*allowed, strict=True)] if allowed else self._none)
        return rows

    def _cannot_wrap(self, last: int) -> bool:
        """Whether a last stage of this kind cannot talk to the first stage's next chunk."""
        return self._first_kind is not None and self._by_last and bool(self._blocked[0][last, self._first_kind])

    def _is_blocked(self, last: int, kind: int, within: int) -> bool:
        pools = self._arrays.pool_of_kind
        return bool(self._blocked[1 if within and pools[last] == pools[kind] else 0][last, kind])

    def _ways(self, kind: int, place: int, target: int) -> Row:
        """By layers placed: the ways to give a next stage of a kind some layers and to complete the rest."""
        after = self._rows[target][kind if self._by_last else 0]
        limits = self._arrays.max_layers[kind, place].tolist()
        chunks, layers = self._arrays.num_chunks, self._arrays.num_layers
        ways = list(self._none)
        sums = [0]
        for value in after:
            sums.append(sums[-1] + value)
        for placed in range(layers):
            most = min(limits[placed if len(limits) > 1 else 0], layers - placed)
            if chunks == 1:
                ways[placed] = sums[placed + most + 1] - sums[placed + 1]
            else:
                ways[placed] = sum(comb(n - 1, chunks - 1) * after[placed + n] for n in range(chunks, most + 1))
        return ways
