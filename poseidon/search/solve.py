"""Searches over outer choices: the one entry of this room."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from poseidon.cost.problem import Problem
from poseidon.search.exact import Bounded, ExactSearch, bound
from poseidon.search.incumbents import Incumbents
from poseidon.search.options import SearchOptions
from poseidon.search.policies import POLICIES
from poseidon.search.result import Counters, SearchResult, SolutionStatus, TerminationReason
from poseidon.search.tolerance import is_optimal, prune_fraction
from poseidon.search.warm_start import EarlierPlan, starting_solutions
from poseidon.search.watch import Progress, Watch

MOST_OPEN_VALUES = 150_000_000
"""Numbers in the tables of all open outer choices together (8 bytes each)."""
MOST_STARTS = 16
"""Outer choices, the most promising first, to which an earlier plan is fitted."""
FIRST_BUDGET = 4000
"""Search nodes that each open outer choice gets in the first round; every further round doubles them."""


def solve(
    problems: Iterable[Problem],
    options: SearchOptions | None = None,
    report: Callable[[Progress], None] | None = None,
    start: EarlierPlan | None = None,
) -> SearchResult:
    """Finds the fastest configuration over all problems, with a proven bound.

    `problems` are outer choices of one experiment (names must differ); `report` is called with the progress a few times
    a second, `start` an earlier plan to begin from (policy exact). Ctrl-C ends the search with the best plan so far.
    Raises ValueError for a problem whose schedule refuses its shape.
    """
    options = options or SearchOptions()
    watch = Watch(options.time_limit_s, report)
    if options.policy in POLICIES:
        return POLICIES[options.policy](list(problems), options, watch)
    search = _OuterSearch([bound(problem) for problem in problems], options, watch)
    try:
        search.run(start)
    except KeyboardInterrupt:
        search.watch.interrupt()
    return search.result()


class _OuterSearch:
    """Takes the outer choices in two passes: every promising one is opened (tables, first plans), then those still open
    are searched.
    """

    def __init__(self, choices: Sequence[Bounded], options: SearchOptions, watch: Watch) -> None:
        self.watch = watch
        self._options = options
        self._choices = sorted(choices, key=lambda choice: (choice.bound_ms, choice.arrays.problem.name))
        self._bounds = [choice.bound_ms for choice in self._choices]
        self._incumbents = Incumbents(options.top)
        self._counters = Counters()
        self._open: dict[int, ExactSearch] = {}
        self._done = 0
        self._hit_node_limit = False
        self._given_up: list[str] = []

    def run(self, start: EarlierPlan | None) -> None:
        if start is not None:
            promising = [choice.arrays.problem for choice in self._choices if math.isfinite(choice.bound_ms)]
            own = [problem for problem in promising if problem.name == start.problem]
            for solution in starting_solutions([*own, *promising[:MOST_STARTS]], start):
                self._incumbents.offer(solution, self.watch.seconds)
                self._counters.simulations += 1
        samples = self._options.warmup_samples
        for index in range(len(self._choices)):
            if self.watch.must_stop():
                return
            if not self._is_open(index):
                self._counters.prune("outer choice", 1)
                self._done += 1
                continue
            self._start(index, samples)
            samples = 0
        budget = FIRST_BUDGET
        while self._open and not self.watch.must_stop():
            for index in sorted(self._open, key=lambda index: (self._bounds[index], index)):
                self._search(index, budget)
            budget *= 2

    def _is_open(self, index: int) -> bool:
        """Whether an outer choice may still hold a better plan than those known."""
        return self._bounds[index] < self._incumbents.cutoff_ms * (1 - prune_fraction(self._options.gap))

    def _start(self, index: int, samples: int) -> None:
        must_stop = self.watch.must_stop
        cutoff_ms = self._incumbents.cutoff_ms
        search = ExactSearch(self._choices[index], self._options, cutoff_ms, self._counters, must_stop)
        held = sum(other.table_values for other in self._open.values())
        self._open[index] = search
        most = self._options.most_table_values
        search.open(samples, max(min(most, MOST_OPEN_VALUES - held), most // 16))
        self._take(index)

    def _search(self, index: int, budget: int) -> None:
        """Gives an opened outer choice some search nodes."""
        search = self._open[index]
        last = search.search_nodes + budget
        search.improve_cutoff(self._incumbents.cutoff_for(search.name))
        while not search.done and search.search_nodes < last and self._is_open(index) and not self.watch.must_stop():
            if search.search_nodes >= search.node_limit:
                self._hit_node_limit = True
                self._close(index)
                return
            search.advance()
            self._take(index)
        if not self._is_open(index) and index in self._open:
            self._close(index)

    def _take(self, index: int) -> None:
        """Takes over what a search has found out."""
        search = self._open[index]
        self._bounds[index] = search.bound_ms
        if search.solution is not None:
            self._incumbents.offer(search.solution, self.watch.seconds)
        if search.given_up:
            self._given_up.append(search.name)
        if search.done:
            self._close(index)
        self.watch.tell(self._progress)

    def _close(self, index: int) -> None:
        self._open.pop(index).count()
        self._done += 1

    @property
    def _lower_bound_ms(self) -> float:
        return min(self._incumbents.best_ms, min(self._bounds, default=math.inf))

    def _progress(self) -> Progress:
        nodes = self._counters.search_nodes + sum(search.search_nodes for search in self._open.values())
        return Progress(
            self.watch.seconds, self._incumbents.best_ms, self._lower_bound_ms, nodes, self._done, len(self._choices)
        )

    def result(self) -> SearchResult:
        for search in self._open.values():
            if search.solution is not None:  # found in a step that was interrupted
                self._incumbents.offer(search.solution, self.watch.seconds)
        lower_bound_ms = self._lower_bound_ms
        for search in self._open.values():
            search.count()
        return SearchResult(
            status=self._status(lower_bound_ms),
            termination=self._termination(lower_bound_ms),
            solutions=self._incumbents.solutions,
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
        if self._given_up and not is_optimal(self._incumbents.best_ms, lower_bound_ms):
            return TerminationReason.TOO_LARGE
        if self._hit_node_limit:
            return TerminationReason.NODE_LIMIT
        if self._options.gap > 0 and not is_optimal(self._incumbents.best_ms, lower_bound_ms):
            return TerminationReason.GAP
        return TerminationReason.COMPLETE

    def _warnings(self) -> tuple[str, ...]:
        warnings: tuple[str, ...] = ()
        if self._given_up:
            warnings += (
                f"{len(self._given_up)} outer choices were only bounded, not searched: too many device states "
                f"({self._given_up[0]}, for one)",
            )
        if self._hit_node_limit and self._options.node_limit is None:
            warnings += (
                "interleaved outer choices were left at the default limit of search nodes; "
                "a node limit or a time limit of your own lets the search go on",
            )
        if self._counters.bound_alarms:
            warnings += (
                f"{self._counters.bound_alarms} search nodes had a worse bound than their parent: please report this",
            )
        return warnings
