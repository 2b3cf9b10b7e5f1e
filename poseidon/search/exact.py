"""The exact policy for one outer choice: graph, tables, branch and bound (docs/algorithm.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from poseidon.cost.problem import Problem
from poseidon.errors import InputError, Mistake
from poseidon.search._branch_and_bound import BranchAndBound
from poseidon.search._chunked_search import ChunkedSearch
from poseidon.search._local_search import LocalSearch
from poseidon.search._sampling import Sampler
from poseidon.search._stage_graph import StageGraph
from poseidon.search._tables import CompletionTables, most_layers_after, restored_tables
from poseidon.search.arrays import Floats, Ints, SearchArrays, search_arrays
from poseidon.search.evaluate import order_graph
from poseidon.search.frontier import TreeFrontier
from poseidon.search.options import SearchOptions
from poseidon.search.quick_bound import quick_bound
from poseidon.search.relaxation import CountRelaxation
from poseidon.search.result import Counters, StageChoice
from poseidon.search.thresholds import Thresholds, achievable, least_bottleneck, limits_under, spread
from poseidon.search.tolerance import prune_fraction

if TYPE_CHECKING:
    from poseidon.search._tables import TableParts

MOST_REFINEMENTS = 4
POLISH_OPERATIONS = 100_000_000
"""Operations of simulated pipelines that local moves on a first incumbent may cost (about a nanosecond each)."""
BEAM_WIDTH = 64
"""Prefixes that a beam search keeps, where relaxed tables have no minimisers of their own."""
POLISH_SLICE = 2000
"""Configurations that local moves time between two looks at the clock."""
RELAXED_POLISH_OPERATIONS = 3_000_000_000
"""The same where relaxed tables give first incumbents that are farther from the optimum."""
MOST_SPLITS = 256
"""Splits of a stage's layers over its chunks that are tried in full for one allocation."""


@dataclass(frozen=True)
class Bounded:
    """What is known of one outer choice before it is searched."""

    arrays: SearchArrays
    bound_ms: float


def bound(problem: Problem) -> Bounded:
    """Lays a problem out and bounds it in closed form."""
    arrays = search_arrays(problem)
    return Bounded(arrays, quick_bound(arrays))


class OpenTables(NamedTuple):
    """Tables as another process can take them over: `CompletionTables.parts`, and the charges of relaxed counts."""

    parts: TableParts
    charges: Floats


class Plan(NamedTuple):
    """The best plan that a search of one outer choice found."""

    time_ms: float
    stages: tuple[StageChoice, ...]
    depths: tuple[int, ...]


class Surroundings(Protocol):
    """What a search is told while it runs."""

    def must_stop(self) -> bool:
        """Whether it is to end soon, with what it has."""

    def cutoff_ms(self) -> float:
        """The time to beat that others have reached; infinite where there is none."""

    def watched_by(self, search: BranchAndBound) -> None:
        """Lets the kernel look at that time by itself."""

    def found(self, plan: Plan) -> None:
        """Takes a plan that is better than all before."""


class ExactSearch:
    """The search of one outer choice. First `open` it or take over `tables`; then `advance` until `done`, or `load` a
    part of the work and advance until that is done.
    """

    def __init__(self, bounded: Bounded, options: SearchOptions, cutoff_ms: float, around: Surroundings) -> None:
        """`cutoff_ms` is the time to beat. Nothing is done before `open`."""
        self._arrays = bounded.arrays
        self._options = options
        self._around = around
        self._search: BranchAndBound | None = None
        self._counted: BranchAndBound | None = None
        self._most_table_values = options.most_table_values
        self.bound_ms = bounded.bound_ms
        self._floor_ms = math.inf
        self.cutoff_ms = cutoff_ms
        self.plan: Plan | None = None
        self.done = False
        self.given_up = False
        """The cluster has more device states than this search can hold: the closed-form bound is all that is known."""
        self._counters = Counters()
        self._kernel = order_graph(self._arrays.problem).kernel if self._arrays.is_interleaved else None
        self._graph = StageGraph(self._arrays)
        self._relaxation: CountRelaxation | None = None

    def open(self, samples: int, most_table_values: int) -> None:
        """Times `samples` random configurations, builds tables (of so many numbers at most) and tries their plans."""
        self._most_table_values = most_table_values
        try:
            if self._graph.complete:
                self._begin(samples)
                return
        except MemoryError:
            self._search = None
        try:
            self._relax()
        except MemoryError:
            self._give_up()

    @property
    def tables(self) -> OpenTables | None:
        """What another process needs to go on; None where nothing was built."""
        if self._search is None:
            return None
        charges = np.zeros(len(self._arrays.problem.kinds)) if self._relaxation is None else self._relaxation.charges
        return OpenTables(self._search.tables.parts, charges)

    def reopen(self, *, is_relaxed: bool) -> None:
        """Builds the tables anew for a part of a search whose tables are gone, on the graph that its edges belong to.

        Raises MemoryError where they are too large now.
        """
        if is_relaxed:
            self._relax()
        else:
            self._begin(0)

    def take_over(self, tables: OpenTables, *, is_relaxed: bool) -> None:
        """Uses the tables of another search of this outer choice, with relaxed counts or not, instead of opening it."""
        if is_relaxed:
            self._relaxation = CountRelaxation(self._arrays)
            self._relaxation.charges = tables.charges
            self._graph = self._relaxation.graph
        self._search = self._searcher(restored_tables(self._graph, *tables.parts))

    def load(self, frontier: TreeFrontier, cutoff_ms: float) -> None:
        """Takes up a part of the work (of this or another search of the same outer choice), on the tables it has.

        Raises InputError for one from a file that is no part of it.
        """
        assert self._search is not None
        if frontier.is_foreign and not frontier.fits(
            self._graph.edges, self._arrays.num_stages, self._arrays.num_layers
        ):
            message = "holds search nodes that this search has not; remove it, or search without --resume"
            raise InputError(Mistake("search.journal", "", message))
        self.cutoff_ms, self.plan, self.done = cutoff_ms, None, False
        self.bound_ms = frontier.bound_ms
        tables = self._search.tables
        self._count()
        self._search = self._searcher(tables)
        self._around.watched_by(self._search)
        self._search.load(frontier.path, frontier.rows)

    @property
    def frontier(self) -> TreeFrontier | None:
        """What is left to search; None when done."""
        if self.done or self._search is None:
            return None
        return TreeFrontier(self._search.path, self._search.rows, self._relaxation is not None)

    @property
    def floor_ms(self) -> float:
        """No plan in what is finished is faster (but for the gap that was asked for)."""
        if self.done or self._search is None:
            return self.bound_ms
        return min(self._floor_ms, self._search.floor_ms)

    def _begin(self, samples: int) -> None:
        """Samples and opens; raises MemoryError where even the smallest tables are too large."""
        most_after = most_layers_after(self._graph, self._arrays.max_layers.max(axis=2), self._arrays.least_layers)
        if most_after[0] < self._arrays.num_layers:
            self.bound_ms, self.done = math.inf, True
            return
        if samples and not self._arrays.is_interleaved:
            self._sample(most_after, samples)
        self._open()

    def _relax(self) -> None:
        """Too many device states: searches with the counts of the kinds relaxed, where that is possible."""
        if not CountRelaxation.accepts(self._arrays):
            self._give_up()
            return
        self._relaxation = CountRelaxation(self._arrays)
        self._graph = self._relaxation.graph
        self._open()

    def _give_up(self) -> None:
        self._search = None
        self.given_up = self.done = True

    @property
    def table_values(self) -> int:
        """Numbers in the tables that it holds."""
        return self._search.tables.num_values if self._search else 0

    def _sample(self, most_after: Ints, samples: int) -> None:
        best = Sampler(self._graph, self._arrays, most_after, self._options.seed).best_of(samples)
        self._counters.simulations += samples
        if best is not None:
            self._offer(*best)

    def _offer(self, time_ms: float, kinds: Ints, layers: Ints, warmups: Ints) -> None:
        if time_ms < self.cutoff_ms:
            self.cutoff_ms = time_ms
            depths = _depths(warmups) if self._arrays.problem.schedule == "adaptive_1f1b" else ()
            stages = tuple(
                StageChoice(int(kind), tuple(map(int, chunks))) for kind, chunks in zip(kinds, layers, strict=True)
            )
            self.plan = Plan(time_ms, stages, depths)
            self._around.found(self.plan)

    def _open(self) -> None:
        """Builds tables over ever narrower ranges of the bottleneck, trying their minimisers, until a search is worth
        it.
        """
        arrays = self._arrays
        tolerance = prune_fraction(self._options.gap)
        ceiling = self._ceiling()
        low = self._least_bottleneck(ceiling)
        roots = np.array([self.bound_ms])
        for _ in range(MOST_REFINEMENTS):
            if self._around.must_stop():
                break
            self.cutoff_ms = min(self.cutoff_ms, self._around.cutoff_ms())
            ceiling = min(ceiling, self._ceiling())
            if not low <= ceiling:
                self._close(min(self.cutoff_ms, self._floor_ms))
                return
            search = self._searcher(self._tables(low, ceiling))
            search.try_minimisers()
            if self._relaxation is not None:
                search.beam(BEAM_WIDTH)
            self._take(search)
            if search.improved and not arrays.is_interleaved and arrays.most_depth == 1:
                self._polish(search)
            self._count()
            self._search = search
            roots = search.root_bounds
            is_open = roots < self.cutoff_ms * (1 - tolerance)
            self._floor_ms = min(self._floor_ms, float(roots[~is_open].min(initial=math.inf)))
            open_ = np.flatnonzero(is_open)
            if len(open_) == 0:
                self._close(min(self._floor_ms, self.cutoff_ms))
                return
            low, ceiling = search.tables.low[open_[0]], search.tables.high[open_[-1]]
            if len(open_) > self._options.num_thresholds // 2:
                break
        self.bound_ms = max(self.bound_ms, min(float(roots.min()), self._floor_ms))

    def _polish(self, search: BranchAndBound) -> None:
        """Improves the incumbent by local moves."""
        plan = search.best_plan
        assert plan is not None
        kinds, layers, warmups = plan
        local = LocalSearch(self._arrays, self._graph)
        budget = POLISH_OPERATIONS if self._relaxation is None else RELAXED_POLISH_OPERATIONS
        most = budget // (2 * self._arrays.num_stages * self._arrays.num_micro_batches)
        time_ms, kinds, layers = search.best_ms, kinds, layers[:, 0].copy()
        while local.num_simulations < most and not self._around.must_stop():
            before = time_ms
            time_ms, kinds, layers = local.improve(kinds, layers, time_ms, POLISH_SLICE)
            if time_ms >= before:
                break
        self._counters.simulations += local.num_simulations
        self._offer(time_ms, kinds, layers[:, None], warmups)
        search.set_incumbent(self.cutoff_ms)

    def _ceiling(self) -> float:
        """The largest bottleneck that a plan faster than the cutoff can have."""
        return self.cutoff_ms - float(self._arrays.cost.min())

    def _least_bottleneck(self, ceiling_ms: float) -> float:
        """The least bottleneck that any plan can have; infinite where none stays below the ceiling."""
        if self._relaxation is not None:
            return self._relaxation.least_bottleneck(ceiling_ms)
        values = achievable(self._arrays, 0.0, ceiling_ms)
        index = least_bottleneck(self._arrays, self._graph, values, self.cutoff_ms)
        return float(values[index]) if index < len(values) else math.inf

    def _tables(self, least_ms: float, ceiling_ms: float) -> CompletionTables:
        """Tables for a range of the bottleneck, with as many thresholds as memory allows; MemoryError where not even
        two fit.
        """
        values = achievable(self._arrays, least_ms, ceiling_ms)
        count = self._options.num_thresholds
        while True:
            thresholds = spread(least_ms, values, ceiling_ms, count)
            try:
                return self._tables_over(thresholds)
            except MemoryError:
                if count <= 2:
                    raise
                count //= 2

    def _searcher(self, tables: CompletionTables) -> BranchAndBound:
        """A branch and bound on some tables, at its root."""
        tolerance = prune_fraction(self._options.gap)
        if self._relaxation is not None:
            return BranchAndBound(self._arrays, tables, self.cutoff_ms, tolerance, self._relaxation.charges)
        if self._kernel is not None:
            return ChunkedSearch(self._arrays, tables, self.cutoff_ms, tolerance, self._kernel, MOST_SPLITS)
        return BranchAndBound(self._arrays, tables, self.cutoff_ms, tolerance)

    def _tables_over(self, thresholds: Thresholds) -> CompletionTables:
        if self._relaxation is not None:
            # Charges are tuned towards a plan's time: the first plan comes from tables without.
            stop = self._around.must_stop if math.isfinite(self.cutoff_ms) else lambda: True
            return self._relaxation.tables(thresholds, self.cutoff_ms, self._most_table_values, stop)
        first = thresholds.first_allowed(self._arrays, self.cutoff_ms)
        limits = limits_under(self._arrays, float(thresholds.high[-1]), self.cutoff_ms)
        return CompletionTables(
            self._graph, self._arrays, thresholds.low, thresholds.high, first, limits, self._most_table_values
        )

    def _take(self, search: BranchAndBound) -> None:
        """Takes over what a search has found."""
        plan = search.best_plan
        if plan is not None:
            self._offer(search.best_ms, *plan)

    def advance(self, search_nodes: int) -> None:
        """Searches for so many search nodes more."""
        search = self._search
        assert search is not None
        assert not self.done
        complete = search.run(search_nodes)
        self._take(search)
        self.bound_ms = max(self.bound_ms, min(search.bound_ms, self._floor_ms, self.cutoff_ms))
        if complete:
            self._close(min(search.bound_ms, self._floor_ms))

    @property
    def search_nodes(self) -> int:
        """Search nodes since it was opened or last loaded."""
        return self._search.num_search_nodes if self._search else 0

    def _close(self, bound_ms: float) -> None:
        self.bound_ms, self.done = max(self.bound_ms, bound_ms), True

    def take_counters(self) -> Counters:
        """What it did since the last time."""
        self._count()
        counters, self._counters = self._counters, Counters()
        return counters

    def _count(self) -> None:
        """Adds what the present kernel did; it is not asked again."""
        search = self._search
        if search is None or search is self._counted:
            return
        self._counted = search
        self._counters.search_nodes += search.num_search_nodes
        self._counters.simulations += search.num_simulations
        self._counters.bound_alarms += search.num_bound_alarms
        self._counters.prune("table", search.num_pruned_by_table)
        self._counters.prune("prefix", search.num_pruned_by_prefix)
        self._counters.prune("incumbent", search.num_pruned_by_incumbent)


def _depths(warmups: Ints) -> tuple[int, ...]:
    """Depths (>= 1) of the links that give the stages their warm-ups, which the number of micro-batches caps."""
    return tuple(max(1, int(before - after)) for before, after in pairwise(warmups))
