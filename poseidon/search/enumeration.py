"""Enumeration of every outer choice in turn: what the policies `paper` and `brute-force` share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poseidon.cost.problem import Problem
from poseidon.search._paper_search import PaperSearch
from poseidon.search.completions import Completions
from poseidon.search.incumbents import Incumbents
from poseidon.search.options import SearchOptions
from poseidon.search.quick_bound import quick_bound
from poseidon.search.result import Counters, SearchResult, Solution, SolutionStatus, TerminationReason
from poseidon.search.space import Space, space_of
from poseidon.search.tolerance import is_optimal
from poseidon.search.warmup import random_configurations
from poseidon.search.watch import Progress, Watch

Counts = NDArray[np.int64]
"""Rows (group, last kind, layers placed, how often a branch was cut there)."""

SLICE = 10_000_000
"""Operations of simulations (a few milliseconds) between two looks at the clock."""


class Enumeration:
    """Enumerates the configurations of several problems, one problem after the other, as they are given.

    Within a problem it goes depth first, a stage's kinds in their order and the layers of its chunks from few to many.
    Orders of devices share their common beginnings. With `share_best` a problem is searched for a configuration that
    beats those of the others (the paper's T_min); without, for its own best.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        options: SearchOptions,
        watch: Watch,
        *,
        stage_pruning: bool,
        layer_pruning: bool,
        share_best: bool,
    ) -> None:
        """Lays every problem out; raises ValueError where a schedule refuses a shape or there are too many states."""
        self.spaces = [space_of(problem) for problem in problems]
        self.incumbents = Incumbents(options.top)
        self.counters = Counters()
        self.watch = watch
        self.complete = [space.is_empty for space in self.spaces]
        """Whether each problem has been enumerated to its end."""
        self.has_layer_cuts = [False] * len(self.spaces)
        """Whether the layer rule cut any branch of each problem."""
        self.num_above = 0
        """Simulated configurations for which Eq. 2, taken over all their stages, exceeded the best time already."""
        self._options = options
        self._stage_pruning, self._layer_pruning, self._share_best = stage_pruning, layer_pruning, share_best
        self._cuts: list[tuple[Space, tuple[Counts, Counts]]] = []

    def warm_up(self, count: int) -> None:
        """Times random configurations; the best becomes the time to beat."""
        for index, samples in random_configurations(self.spaces, count, self._options.seed):
            if self.watch.must_stop():
                return
            space = self.spaces[index]
            search = space.search(False, False, math.inf)
            for path, layers in samples:
                self.counters.simulations += 1
                self._offer(space.solution(path, layers, search.time(path, layers)))

    def run(self) -> None:
        """Enumerates every problem, unless the watch says stop."""
        for index, space in enumerate(self.spaces):
            if not self.complete[index] and not self.watch.must_stop():
                self._enumerate(index, space)

    def _enumerate(self, index: int, space: Space) -> None:
        search = space.search(self._stage_pruning, self._layer_pruning, self._cutoff_ms(space.problem))
        limit = self._options.node_limit
        try:
            while not search.done and not self.watch.must_stop():
                search.run(SLICE)
                if search.improved:
                    self._offer(space.solution(*search.best, search.best_ms))
                    search.set_incumbent(self._cutoff_ms(space.problem))
                self.watch.tell(lambda: self._progress(index, search))
                if limit is not None and search.num_search_nodes >= limit:
                    break
        finally:
            if search.improved:
                self._offer(space.solution(*search.best, search.best_ms))
            self.complete[index] = search.done
            self.has_layer_cuts[index] = search.num_pruned_by_layer > 0
            self._count(space, search)

    def _cutoff_ms(self, problem: Problem) -> float:
        return self.incumbents.cutoff_for(problem.name) if self._share_best else math.inf

    def _offer(self, solution: Solution) -> None:
        self.incumbents.offer(solution, self.watch.seconds)

    def _progress(self, index: int, search: PaperSearch) -> Progress:
        nodes = self.counters.search_nodes + search.num_search_nodes
        best_ms = self.incumbents.best_ms
        bound_ms = min(best_ms, self._floor_ms)
        return Progress(self.watch.seconds, best_ms, bound_ms, nodes, index, len(self.spaces))

    @cached_property
    def _floor_ms(self) -> float:
        """A time that no configuration of any problem can beat, in closed form."""
        return min((self.open_bound_ms(index) for index in range(len(self.spaces))), default=math.inf)

    def _count(self, space: Space, search: PaperSearch) -> None:
        self.counters.search_nodes += search.num_search_nodes
        self.counters.simulations += search.num_simulations
        self.num_above += search.num_above
        self.counters.prune("stage branches", search.num_pruned_by_stage)
        self.counters.prune("layer branches", search.num_pruned_by_layer)
        if space.counts_cuts:
            by_stage, by_layer = (np.column_stack((*np.nonzero(cuts), cuts[cuts > 0])) for cuts in search.cuts)
            self._cuts.append((space, (by_stage, by_layer)))

    @property
    def is_complete(self) -> bool:
        """Whether every problem has been enumerated to its end."""
        return all(self.complete)

    def open_bound_ms(self, index: int) -> float:
        """A time that no configuration of a problem can beat, in closed form."""
        return quick_bound(self.spaces[index].arrays)

    def count_cut_configurations(self) -> None:
        """Adds the configurations that each rule cut to the counters, as exact integers; once, at the end."""
        for space, cuts_by_rule in self._cuts:
            if not any(map(len, cuts_by_rule)):
                continue
            after = Completions(space).after
            for rule, cuts in zip(("stage", "layer"), cuts_by_rule, strict=True):
                behind = (times * after(group, kind, placed) for group, kind, placed, times in cuts.tolist())
                self.counters.prune(rule, sum(behind))

    @property
    def uncounted(self) -> bool:
        """Whether some problem was too large to count the configurations behind its cut branches."""
        return not all(space.counts_cuts for space in self.spaces)

    def result(self, lower_bound_ms: float, seconds: float, warnings: tuple[str, ...] = ()) -> SearchResult:
        """The answer, given a time that no configuration can beat."""
        best_ms = self.incumbents.best_ms
        lower_bound_ms = min(lower_bound_ms, best_ms)
        if math.isfinite(best_ms):
            status = SolutionStatus.OPTIMAL if is_optimal(best_ms, lower_bound_ms) else SolutionStatus.FEASIBLE
        else:
            status = SolutionStatus.INFEASIBLE if math.isinf(lower_bound_ms) else SolutionStatus.UNKNOWN
        return SearchResult(
            status=status,
            termination=self._termination(),
            solutions=self.incumbents.solutions,
            lower_bound_ms=lower_bound_ms,
            seconds=seconds,
            counters=self.counters,
            num_problems=len(self.spaces),
            warnings=warnings,
            curve=tuple(self.incumbents.curve),
        )

    def _termination(self) -> TerminationReason:
        if self.watch.stopped is not None:
            return self.watch.stopped
        return TerminationReason.COMPLETE if self.is_complete else TerminationReason.NODE_LIMIT
