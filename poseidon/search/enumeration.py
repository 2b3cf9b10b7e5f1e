"""Enumeration of every outer choice: what the policies `paper` and `brute-force` share."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from poseidon.search.completions import Completions
from poseidon.search.driver import Driver
from poseidon.search.failures import failure_warnings
from poseidon.search.quick_bound import quick_bound
from poseidon.search.result import SearchResult, TerminationReason, status_of
from poseidon.search.run import Run
from poseidon.search.shard import Action, Cuts
from poseidon.search.warmup import random_configurations


class Enumeration:
    """Enumerates the configurations of several problems, one problem after the other, as they are given.

    Within a problem it goes depth first, a stage's kinds in their order and the layers of its chunks from few to many.
    Orders of devices share their common beginnings. The paper's policy searches a problem for a configuration that
    beats those of the others (the paper's T_min); brute force for its own best.
    """

    def __init__(self, run: Run) -> None:
        """Lays every problem out; raises ValueError where a schedule refuses a shape or there are too many states."""
        self.spaces = [run.context.space(index) for index in range(len(run.context.problems))]
        self.watch = run.watch
        self._bounds_ms = [quick_bound(space.arrays) for space in self.spaces]
        self.driver = Driver(run, self._bounds_ms)
        self.incumbents = self.driver.incumbents
        self.counters = self.driver.counters
        for index, space in enumerate(self.spaces):
            if space.is_empty:
                self.driver.note_done(index, math.inf)
            else:
                self.driver.add(index, Action.SEARCH)

    def warm_up(self, count: int) -> None:
        """Times random configurations; the best becomes the time to beat."""
        for index, samples in random_configurations(self.spaces, count, self.driver.context.options.seed):
            if self.watch.must_stop():
                return
            space = self.spaces[index]
            search = space.search(False, False, math.inf)
            for path, layers in samples:
                self.counters.simulations += 1
                solution = space.solution(path, layers, search.time(path, layers))
                self.incumbents.offer(solution, self.watch.seconds)

    def run(self) -> None:
        """Enumerates every problem, unless the watch says stop."""
        try:
            self.driver.run()
        finally:
            self.driver.end()

    @property
    def complete(self) -> list[bool]:
        """Whether each problem has been enumerated to its end."""
        return [choice.is_proven for choice in self.driver.choices]

    @property
    def is_complete(self) -> bool:
        """Whether every problem has been enumerated to its end."""
        return all(self.complete)

    @property
    def num_above(self) -> int:
        """Simulated configurations for which Eq. 2, taken over all their stages, exceeded the best time already."""
        return sum(outcome.num_above for outcome in self.driver.outcomes)

    @property
    def has_layer_cuts(self) -> list[bool]:
        """Whether the layer rule cut any branch of each problem."""
        cut = {outcome.problem for outcome in self.driver.outcomes if outcome.has_layer_cuts}
        return [index in cut for index in range(len(self.spaces))]

    def open_bound_ms(self, index: int) -> float:
        """A time that no configuration of a problem can beat, in closed form."""
        return self._bounds_ms[index]

    def count_cut_configurations(self) -> None:
        """Adds the configurations that each rule cut to the counters, as exact integers; once, at the end."""
        for index, space in enumerate(self.spaces):
            all_cuts = [o.cuts for o in self.driver.outcomes if o.problem == index and o.cuts is not None]
            if not any(map(len, (cuts for pair in all_cuts for cuts in pair))):
                continue
            after = Completions(space).after
            for rule, which in (("stage", 0), ("layer", 1)):
                rows = _added_up([pair[which] for pair in all_cuts])
                self.counters.prune(rule, sum(times * after(*behind) for behind, times in rows.items()))

    @property
    def uncounted(self) -> bool:
        """Whether some problem was too large to count the configurations behind its cut branches."""
        return not all(space.counts_cuts for space in self.spaces)

    def result(self, lower_bound_ms: float, seconds: float, warnings: tuple[str, ...] = ()) -> SearchResult:
        """The answer, given a time that no configuration can beat."""
        best_ms = self.incumbents.best_ms
        lower_bound_ms = min(lower_bound_ms, best_ms)
        return SearchResult(
            status=status_of(best_ms, lower_bound_ms),
            termination=self._termination(),
            solutions=self.incumbents.solutions,
            lower_bound_ms=lower_bound_ms,
            seconds=seconds,
            counters=self.counters,
            num_problems=len(self.spaces),
            warnings=failure_warnings(self.driver) + warnings,
            curve=tuple(self.incumbents.curve),
            cpu_seconds=self.driver.cpu_seconds,
        )

    def _termination(self) -> TerminationReason:
        if self.watch.stopped is not None:
            return self.watch.stopped
        if any(choice.failed for choice in self.driver.choices):
            return TerminationReason.FAILED
        return TerminationReason.COMPLETE if self.is_complete else TerminationReason.NODE_LIMIT


class _Behind(NamedTuple):
    """What lay behind a cut branch."""

    group: int
    last_kind: int
    placed: int


def _added_up(all_cuts: list[Cuts]) -> dict[_Behind, int]:
    """How often branches were cut in all shards together."""
    rows = np.concatenate(all_cuts)
    total: dict[_Behind, int] = {}
    for group, kind, placed, times in rows.tolist():
        behind = _Behind(group, kind, placed)
        total[behind] = total.get(behind, 0) + times
    return total
