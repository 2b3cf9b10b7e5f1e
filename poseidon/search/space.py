"""The configurations of one outer choice, as the policies that enumerate them see it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from poseidon.cost.problem import Problem
from poseidon.search._paper_search import PaperSearch
from poseidon.search._stage_graph import StageGraph
from poseidon.search._tables import most_layers_after
from poseidon.search.arrays import Ints, SearchArrays, search_arrays
from poseidon.search.evaluate import order_graph
from poseidon.search.result import Solution, StageChoice

Bools = NDArray[np.bool_]

MOST_COUNTERS = 4_000_000
"""Most counters with which cut branches are kept account of (8 bytes each, two sets)."""


@dataclass(frozen=True)
class Space:
    """A problem with its stage graph.

    A configuration is a path of edges through the graph and the layers of each stage's chunks. `edges` has a row
    (group, kind, place, target, begins inside a node that its pool has begun) for each way to go on from a group,
    `finals` says whether a group is a whole pipeline, `most_after` how many layers fit after it at most (-1: no whole
    pipeline can follow).
    """

    arrays: SearchArrays
    edges: Ints
    finals: Bools
    most_after: Ints

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.arrays.problem

    @property
    def is_empty(self) -> bool:
        """Whether memory rules every configuration out."""
        return bool(self.most_after[0] < self.arrays.num_layers)

    @property
    def counts_cuts(self) -> bool:
        """Whether the graph is small enough to keep account of what lay behind each cut branch."""
        kinds, layers = len(self.problem.kinds), self.arrays.num_layers + 1
        return len(self.finals) * kinds * layers <= MOST_COUNTERS

    @cached_property
    def first_edge(self) -> Ints:
        """Group g has the edges first_edge[g] .. first_edge[g + 1] - 1."""
        return np.searchsorted(self.edges[:, 0], np.arange(len(self.finals) + 1)).astype(np.int32)

    def search(self, stage_pruning: bool, layer_pruning: bool, cutoff_ms: float) -> PaperSearch:
        """An enumeration of the configurations for one faster than `cutoff_ms`."""
        kernel = order_graph(self.problem).kernel if self.arrays.is_interleaved else None
        return PaperSearch(
            self.arrays, self.edges, self.most_after, kernel, stage_pruning, layer_pruning, cutoff_ms, self.counts_cuts
        )

    def solution(self, path: Ints, layers: Ints, time_ms: float) -> Solution:
        """The configuration with these edges and layers of each chunk (N x V) as a solution."""
        kinds, places = self.edges[path, 1].tolist(), self.edges[path, 2].tolist()
        stages = tuple(StageChoice(kind, tuple(chunks)) for kind, chunks in zip(kinds, layers.tolist(), strict=True))
        depths: tuple[int, ...] = ()
        if self.problem.schedule == "adaptive_1f1b":
            warmups = [self.problem.places[place].warmup for place in places]
            depths = tuple(before - after for before, after in pairwise(warmups))
        return Solution(self.problem, stages, time_ms, depths)


def space_of(problem: Problem) -> Space:
    """Lays a problem out; raises ValueError where its schedule refuses its shape or it has too many device states."""
    arrays = search_arrays(problem)
    graph = StageGraph(arrays)
    if not graph.complete:
        raise ValueError(f"{problem.name} has too many device states to enumerate; use the exact policy")
    limits = np.ascontiguousarray(arrays.max_layers.max(axis=2))
    return Space(arrays, graph.edges, graph.finals, most_layers_after(graph, limits, arrays.least_layers))
