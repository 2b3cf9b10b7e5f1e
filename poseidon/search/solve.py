"""Searches over outer choices: the one entry of this room."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from poseidon.cost.problem import Problem
from poseidon.search.exact import Bounded, ExactSearch, bound
from poseidon.search.incumbents import Incumbents
from poseidon.search.options import SearchOptions
from poseidon.search.result import Counters, SearchResult, SolutionStatus, TerminationReason
from poseidon.search.tolerance import is_optimal, prune_fraction
from poseidon.search.watch import Progress, Watch


def solve(
    problems: Iterable[Problem],
    options: SearchOptions | None = None,
    report: Callable[[Progress], None] | None = None,
) -> SearchResult:
    """Finds the fastest configuration over all problems, with a proven bound.

    `problems` are outer choices of one experiment (names must differ); `report` is called with the progress a few times a second.
    Ctrl-C ends the search with the best plan so far. Raises ValueError for a problem whose schedule refuses its shape.
    """
    options = options or SearchOptions()
    watch = Watch(options.time_limit_s, report)
    search = _OuterSearch([bound(problem) for problem in problems], options, watch)
    try:
        search.run()
    except KeyboardInterrupt:
        search.watch.interrupt()
    return search.result()


class _OuterSearch:
    """Takes the outer choices one by one, the most promising first."""

    def __init__(self, choices: Sequence[Bounded], options: SearchOptions, watch: Watch) -> None:
        self.watch = watch
        self._options = options
        self._choices = sorted(choices, key=lambda choice: (choice.bound_ms, choice.arrays.problem.name))
        self._incumbents = Incumbents(options.top)
        self._counters = Counters()
        self._done = 0
        self._floor_ms = math.inf
        self._hit_node_limit = False
        self._current: ExactSearch | None = None

    def run(self) -> None:
        samples = self._options.warmup_samples
        for choice in self._choices:
            if self.watch.must_stop():
                return
            cutoff_ms = self._incumbents.cutoff_ms
            if choice.bound_ms >= cutoff_ms * (1 - prune_fraction(self._options.gap)):
                self._counters.prune("outer choice", 1)
                self._finish(choice.bound_ms)
                continue
            self._search(choice, cutoff_ms, samples)
            samples = 0

    def _search(self, choice: Bounded, cutoff_ms: float, samples: int) -> None:
        search = self._current = ExactSearch(choice, self._options, cutoff_ms, self._counters, samples)
        self._offer(search)
        while not search.done and not self.watch.must_stop():
            if self._options.node_limit is not None and search.search_nodes >= self._options.node_limit:
                self._hit_node_limit = True
                break
            search.advance()
            self._offer(search)
            self.watch.tell(self._progress)
        if self.watch.stopped is None:
            self._finish(search.bound_ms)
            search.count()
            self._current = None

    def _offer(self, search: ExactSearch) -> None:
        if search.solution is not None:
            self._incumbents.offer(search.solution, self.watch.seconds)

    def _finish(self, bound_ms: float) -> None:
        self._floor_ms = min(self._floor_ms, bound_ms)
        self._done += 1

    @property
    def _lower_bound_ms(self) -> float:
        open_ = self._choices[self._done :]
        bounds = [choice.bound_ms for choice in open_]
        if self._current is not None and open_:
            bounds[0] = max(bounds[0], self._current.bound_ms)
        return min([self._floor_ms, self._incumbents.best_ms, *bounds])

    def _progress(self) -> Progress:
        nodes = self._counters.search_nodes + (self._current.search_nodes if self._current else 0)
        return Progress(
            self.watch.seconds, self._incumbents.best_ms, self._lower_bound_ms, nodes, self._done, len(self._choices)
        )

    def result(self) -> SearchResult:
        lower_bound_ms = self._lower_bound_ms
        if self._current is not None:
            self._current.count()
        solutions = self._incumbents.solutions
        return SearchResult(
            status=self._status(lower_bound_ms),
            termination=self._termination(lower_bound_ms),
            solutions=solutions,
            lower_bound_ms=lower_bound_ms,
            seconds=self.watch.seconds,
            counters=self._counters,
            num_problems=len(self._choices),
            warnings=self._warnings(),
            curve=tuple(self._incumbents.curve),
        )

    def _status(self, lower_bound_ms: float) -> SolutionStatus:
        best_ms = self._incumbents.best_ms
        if math.isfinite(best_ms):
            return SolutionStatus.OPTIMAL if is_optimal(best_ms, lower_bound_ms) else SolutionStatus.FEASIBLE
        return SolutionStatus.INFEASIBLE if math.isinf(lower_bound_ms) else SolutionStatus.UNKNOWN

    def _termination(self, lower_bound_ms: float) -> TerminationReason:
        if self.watch.stopped is not None:
            return self.watch.stopped
        if self._hit_node_limit:
            return TerminationReason.NODE_LIMIT
        if self._options.gap > 0 and not is_optimal(self._incumbents.best_ms, lower_bound_ms):
            return TerminationReason.GAP
        return TerminationReason.COMPLETE

    def _warnings(self) -> tuple[str, ...]:
        if self._counters.bound_alarms:
            return (f"{self._counters.bound_alarms} search nodes had a worse bound than their parent: please report this",)
        return ()
