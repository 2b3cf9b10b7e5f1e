"""What is left of a search that stopped: enough for another process to go on, and easy to share out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poseidon.search.arrays import Floats, Ints

STAGE, BOUND = 0, 3
"""Columns of a tree frontier's rows."""


@dataclass(frozen=True)
class TreeFrontier:
    """The open search nodes of a branch and bound (`BranchAndBound.path` and `.rows`): stages that are fixed, and the
    candidates that are left for each of them and for the next.
    """

    path: Floats
    rows: Floats
    is_relaxed: bool = False
    """Their edges are those of a stage graph with the counts of the kinds relaxed."""
    is_foreign: bool = False
    """It was read from a file, which may hold anything: to be checked before the kernel goes on from it."""

    @property
    def bound_ms(self) -> float:
        """No plan behind any of the search nodes is faster."""
        return float(self.rows[:, BOUND].min(initial=np.inf))

    @property
    def size(self) -> int:
        """Parts that it can be split into."""
        return len(self.rows)

    def split(self, parts: int) -> tuple[TreeFrontier, ...]:
        """At most so many frontiers that hold the same search nodes: large trees and small ones in each."""
        order = np.lexsort((self.rows[:, BOUND], self.rows[:, STAGE]))
        return tuple(
            self._part(np.sort(order[first::parts]).astype(np.int32)) for first in range(min(parts, self.size))
        )

    def _part(self, chosen: Ints) -> TreeFrontier:
        rows = np.ascontiguousarray(self.rows[chosen])
        path = np.ascontiguousarray(self.path[: int(rows[:, STAGE].max())])
        return TreeFrontier(path, rows, self.is_relaxed, self.is_foreign)

    def fits(self, edges: Ints, num_stages: int, num_layers: int) -> bool:
        """Whether its search nodes are some of a stage graph with these `edges` (`StageGraph.edges`)."""
        if not (_is_table(self.path, 4) and _is_table(self.rows, 5) and len(self.path) < num_stages):
            return False
        groups, placed = [0], [0]
        for edge, layers in self.path[:, :2]:
            if not (0 <= edge < len(edges) and edges[int(edge), 0] == groups[-1] and 1 <= layers <= num_layers):
                return False
            groups.append(int(edges[int(edge), 3]))
            placed.append(placed[-1] + int(layers))
        stages, chosen, layers = self.rows[:, 0], self.rows[:, 1], self.rows[:, 2]
        if not (((stages >= 0) & (stages < len(groups))).all() and ((chosen >= 0) & (chosen < len(edges))).all()):
            return False
        at = stages.astype(np.intp)
        follows = edges[chosen.astype(np.intp), 0] == np.array(groups)[at]
        has_room = (layers >= 1) & (layers <= num_layers - np.array(placed)[at])
        return bool((follows & has_room).all())


@dataclass(frozen=True)
class OrderFrontier:
    """The rest of an enumeration (`PaperSearch.position`): a configuration's beginning, and the stages whose later
    choices are still to come.
    """

    position: Ints

    @property
    def bound_ms(self) -> float:
        """An enumeration knows no bound of its parts."""
        return -np.inf

    @property
    def size(self) -> int:
        """Parts that it can be split into."""
        return int((self.position[:, -1] != 0).sum())

    def split(self, parts: int) -> tuple[OrderFrontier, ...]:
        """At most so many frontiers that hold the same configurations; earlier stages, with more behind them, alone."""
        stages = np.flatnonzero(self.position[:, -1]).astype(np.int32)
        count = min(parts, len(stages))
        return tuple(
            self._part(stages[index : index + 1] if index < count - 1 else stages[index:]) for index in range(count)
        )

    def _part(self, stages: Ints) -> OrderFrontier:
        position = self.position[: int(stages[-1]) + 1].copy()
        position[:, -1] = 0
        position[stages, -1] = 1
        return OrderFrontier(position)


def _is_table(array: Floats, columns: int) -> bool:
    return array.dtype == np.float64 and array.ndim == 2 and array.shape[1] == columns


Frontier = TreeFrontier | OrderFrontier
