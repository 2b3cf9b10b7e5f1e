"""Does the shards of a search, one at a time: what every backend runs, in whatever process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

from poseidon.search._branch_and_bound import BranchAndBound
from poseidon.search.enumeration_task import EnumerationTask
from poseidon.search.exact import ExactSearch, Plan
from poseidon.search.frontier import OrderFrontier, TreeFrontier
from poseidon.search.incumbents import ranks_of
from poseidon.search.link import Link, is_time_up
from poseidon.search.recent import Recent
from poseidon.search.shard import Action, Context, Found, Outcome, Shard
from poseidon.search.tolerance import TIE

SLICE = 200
"""Search nodes between two looks at the clock."""
CHOOSE_NODES = 100_000
"""Search nodes after which the choice among equally fast plans is given up."""
MOST_HELD = 16
"""Outer choices whose tables a worker keeps at hand."""


class Worker:
    """Knows one search; keeps what it has built for its outer choices at hand."""

    def __init__(self, context: Context, link: Link) -> None:
        """Nothing is laid out before the first shard that needs it."""
        self._context = context
        self._link = link
        ranks = ranks_of(problem.name for problem in context.problems)
        self._ranks = [ranks[problem.name] for problem in context.problems]
        self._searches: Recent[int, ExactSearch] = Recent(MOST_HELD)

    def run(self, shard: Shard) -> Outcome:
        """Works on a shard until it is done, its limits are reached or the link says stop."""
        started = time.process_time()
        if self._context.options.policy != "exact":
            outcome = self._enumerate(shard)
        elif shard.action is Action.OPEN:
            outcome = self._open(shard)
        elif shard.action is Action.CHOOSE:
            outcome = self._choose(shard)
        else:
            outcome = self._search(shard)
        return replace(outcome, cpu_seconds=time.process_time() - started)

    def forget(self, problem: int) -> None:
        """Drops what it holds of an outer choice."""
        self._searches.pop(problem)

    def _open(self, shard: Shard) -> Outcome:
        search = self._new_search(shard.problem, shard.cutoff_ms)
        search.open(shard.samples, shard.most_table_values)
        tables = search.tables
        if not search.done and tables is not None:
            self._searches[shard.problem] = search
            self._link.put_tables(shard.problem, tables)
        return self._outcome(shard, search)

    def _search(self, shard: Shard) -> Outcome:
        assert isinstance(shard.frontier, TreeFrontier)
        search = self._searches.get(shard.problem)
        if search is None:
            search = self._ready_search(shard)
            if search.done or search.tables is None:
                return self._outcome(shard, search)
            self._searches[shard.problem] = search
        search.load(shard.frontier, shard.cutoff_ms)
        started = time.perf_counter()
        while not search.done and search.search_nodes < shard.most_nodes and not self._link.must_stop():
            search.advance(SLICE)
            self._link.note_nodes(search.search_nodes)
            if is_time_up(shard, self._link, started):
                break
        return self._outcome(shard, search)

    def _ready_search(self, shard: Shard) -> ExactSearch:
        """A search with the tables that were put, or with new ones where they are gone."""
        assert isinstance(shard.frontier, TreeFrontier)
        search = self._new_search(shard.problem, shard.cutoff_ms)
        tables = self._link.get_tables(shard.problem)
        if tables is None:
            search.reopen(is_relaxed=shard.frontier.is_relaxed)
            if not search.done and search.tables is not None:
                self._link.put_tables(shard.problem, search.tables)
        else:
            search.take_over(tables, is_relaxed=shard.frontier.is_relaxed)
        return search

    def _choose(self, shard: Shard) -> Outcome:
        around = _Around(shard.problem, self._link, None)
        search = ExactSearch(self._context.bounded(shard.problem), self._context.options, shard.cutoff_ms, around)
        search.open(0, shard.most_table_values)
        while search.plan is None and not search.done and not self._link.must_stop():
            if search.tables is None or search.search_nodes >= CHOOSE_NODES:
                break
            search.advance(SLICE)
        found = None if search.plan is None else _found(shard.problem, search.plan)
        return Outcome(shard.number, shard.problem, found=found, counters=search.take_counters())

    def _enumerate(self, shard: Shard) -> Outcome:
        assert shard.frontier is None or isinstance(shard.frontier, OrderFrontier)
        task = EnumerationTask(self._context.space(shard.problem), self._context.options)
        return task.run(shard, self._link)

    def _new_search(self, problem: int, cutoff_ms: float) -> ExactSearch:
        slack = self._context.options.tie
        around = _Around(problem, self._link, lambda search: search.watch(self._link.cell, self._ranks[problem], slack))
        return ExactSearch(self._context.bounded(problem), self._context.options, cutoff_ms, around)

    def _outcome(self, shard: Shard, search: ExactSearch) -> Outcome:
        return Outcome(
            number=shard.number,
            problem=shard.problem,
            floor_ms=search.floor_ms,
            frontier=search.frontier,
            found=None if search.plan is None else _found(shard.problem, search.plan),
            counters=search.take_counters(),
            table_values=0 if search.done else search.table_values,
            given_up=search.given_up,
            is_cut_short=not search.done and search.tables is None,
        )


def _found(problem: int, plan: Plan) -> Found:
    return Found(problem, plan.stages, plan.time_ms, plan.depths)


class _Around:
    """What one search of an outer choice is told; `watch` (None: nothing is shared) ties a kernel to the cell."""

    def __init__(self, problem: int, link: Link, watch: Callable[[BranchAndBound], None] | None) -> None:
        self._problem, self._link, self._watch = problem, link, watch

    def must_stop(self) -> bool:
        return self._link.must_stop()

    def cutoff_ms(self) -> float:
        return self._link.cell.read()[0] * (1 + TIE) if self._watch is not None else math.inf

    def watched_by(self, search: BranchAndBound) -> None:
        if self._watch is not None:
            self._watch(search)

    def found(self, plan: Plan) -> None:
        if self._watch is not None:
            self._link.found(_found(self._problem, plan))
