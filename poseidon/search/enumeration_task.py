"""Shards of the policies that enumerate: a part of one outer choice, configuration by configuration."""

from __future__ import annotations

import math
import time

import numpy as np

from poseidon.search._paper_search import PaperSearch
from poseidon.search.frontier import OrderFrontier
from poseidon.search.link import Link, is_time_up
from poseidon.search.options import SearchOptions
from poseidon.search.result import Counters
from poseidon.search.shard import Cuts, Found, Outcome, Shard
from poseidon.search.space import Space

SLICE = 10_000_000
"""Operations of simulations (a few milliseconds) between two looks at the clock."""


class EnumerationTask:
    """The enumeration of one outer choice, part by part.

    With the policy `brute-force` nothing is pruned and every part looks for its own best; with `paper` the time to
    beat is shared.
    """

    def __init__(self, space: Space, options: SearchOptions) -> None:
        """Nothing is enumerated before `run`."""
        self._space = space
        self._is_paper = options.policy == "paper"
        self._prunes_stages = self._is_paper and options.stage_pruning
        self._prunes_layers = self._is_paper and options.layer_pruning

    def run(self, shard: Shard, link: Link) -> Outcome:
        """Enumerates until the shard is done, its limits are reached or the link says stop."""
        cutoff_ms = shard.cutoff_ms if self._is_paper else math.inf
        search = self._space.search(self._prunes_stages, self._prunes_layers, cutoff_ms)
        if shard.frontier is not None:
            assert isinstance(shard.frontier, OrderFrontier)
            search.load(shard.frontier.position)
        if self._is_paper:
            search.watch(link.cell)
        found = self._enumerate(search, shard, link)
        return Outcome(
            number=shard.number,
            problem=shard.problem,
            frontier=None if search.done else OrderFrontier(search.position),
            found=found,
            counters=_counters(search),
            num_above=search.num_above,
            has_layer_cuts=search.num_pruned_by_layer > 0,
            cuts=self._cuts(search),
        )

    def _enumerate(self, search: PaperSearch, shard: Shard, link: Link) -> Found | None:
        found: Found | None = None
        started = time.perf_counter()
        while not search.done and search.num_search_nodes < shard.most_nodes and not link.must_stop():
            search.run(SLICE)
            link.note_nodes(search.num_search_nodes)
            found = self._found(search, shard, link) or found
            if is_time_up(shard, link, started):
                break
        search.flush()
        return self._found(search, shard, link) or found

    def _found(self, search: PaperSearch, shard: Shard, link: Link) -> Found | None:
        """Tells of a new best configuration, if there is one."""
        if not search.improved:
            return None
        solution = self._space.solution(*search.best, search.best_ms)
        found = Found(shard.problem, solution.stages, solution.iteration_time_ms, solution.depths)
        link.found(found)
        return found

    def _cuts(self, search: PaperSearch) -> tuple[Cuts, Cuts] | None:
        if not self._is_paper or not self._space.counts_cuts:
            return None
        by_stage, by_layer = (np.column_stack((*np.nonzero(cuts), cuts[cuts > 0])) for cuts in search.cuts)
        return by_stage, by_layer


def _counters(search: PaperSearch) -> Counters:
    counters = Counters(search_nodes=search.num_search_nodes, simulations=search.num_simulations)
    counters.prune("stage branches", search.num_pruned_by_stage)
    counters.prune("layer branches", search.num_pruned_by_layer)
    return counters
