"""A search that is stopped anywhere and shared out finds together what it finds alone."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.cost.problem import Problem
from poseidon.search._branch_and_bound import BranchAndBound
from poseidon.search._paper_search import PaperSearch
from poseidon.search._stage_graph import StageGraph
from poseidon.search._tables import CompletionTables, most_layers_after
from poseidon.search.arrays import search_arrays
from poseidon.search.exact import ExactSearch, OpenTables, Plan, bound
from poseidon.search.frontier import OrderFrontier, TreeFrontier
from poseidon.search.options import SearchOptions
from poseidon.search.reference import exhaustive_search
from poseidon.search.result import Solution, TerminationReason
from poseidon.search.solve import solve
from poseidon.search.space import Space as Configurations
from poseidon.search.space import space_of
from poseidon.search.thresholds import achievable, limits_under, spread
from tests.search.checking import assert_feasible, same
from tests.search.example import HARD, medium_problem
from tests.search.scattered import Scattered, read_only, small_slices
from tests.search.strategies import EVERYTHING, SCHEDULES, examples, problems

OPTIONS = SearchOptions()
LONG = replace(EVERYTHING, stages=(2, 5), spare_layers=(2, 6))
Choices = tuple[tuple[int, tuple[int, ...]], ...]
"""Edge and layers of each chunk, stage by stage."""


class Alone:
    """Nobody else searches."""

    def must_stop(self) -> bool:
        return False

    def cutoff_ms(self) -> float:
        return math.inf

    def watched_by(self, search: BranchAndBound) -> None:
        pass

    def found(self, plan: Plan) -> None:
        pass


@dataclass
class Parts:
    """Searches a tree frontier by ever smaller parts, each in a fresh search on tables that it takes over."""

    problem: Problem
    tables: OpenTables
    random: random.Random
    shares_best: bool
    best: Plan | None = None
    floor_ms: float = math.inf
    count: int = 0
    alarms: int = 0

    def take(self, plan: Plan | None) -> None:
        if plan is not None and (self.best is None or plan.time_ms < self.best.time_ms):
            self.best = plan

    def run(self, frontier: TreeFrontier, cutoff_ms: float) -> None:
        search = search_on(self.tables, self.problem)
        if self.shares_best and self.best is not None:
            cutoff_ms = min(cutoff_ms, self.best.time_ms)
        search.load(frontier, cutoff_ms)
        search.advance(self.random.randint(1, 8))
        self.count += 1
        self.floor_ms = min(self.floor_ms, search.floor_ms)
        self.take(search.plan)
        if search.plan is not None:
            assert frontier.bound_ms <= search.plan.time_ms * (1 + 1e-12)
        left, cutoff_ms = search.frontier, search.cutoff_ms
        self.alarms += search.take_counters().bound_alarms
        if left is None:
            return
        parts = left.split(self.random.randint(1, 5))
        assert Counter(map(tuple, left.rows)) == Counter(tuple(row) for part in parts for row in part.rows)
        for part in self.random.sample(parts, len(parts)):
            self.run(part, cutoff_ms if self.shares_best else math.inf)


def tables_of(problem: Problem) -> OpenTables | None:
    """One table for all bottlenecks, and no time to beat: much is left to search. None where nothing fits."""
    arrays = search_arrays(problem)
    values = achievable(arrays, 0.0, math.inf)
    graph = StageGraph(arrays)
    limits = limits_under(arrays, math.inf)
    if not len(values) or most_layers_after(graph, limits, arrays.least_layers)[0] < arrays.num_layers:
        return None
    thresholds = spread(float(values[0]), values, math.inf, 1)
    first = thresholds.first_allowed(arrays, math.inf)
    tables = CompletionTables(graph, arrays, thresholds.low, thresholds.high, first, limits, 60_000_000)
    return OpenTables(tables.parts, np.zeros(len(problem.kinds)))


def search_on(tables: OpenTables, problem: Problem, cutoff_ms: float = math.inf) -> ExactSearch:
    search = ExactSearch(bound(problem), OPTIONS, cutoff_ms, Alone())
    search.take_over(read_only(tables), is_relaxed=False)
    return search


def assert_parts_are_the_whole(problem: Problem, seed: int, shares_best: bool) -> int:
    """Returns into how many parts the search fell."""
    tables = tables_of(problem)
    if tables is None:
        assert exhaustive_search(problem) is None
        return 0
    search, chance = search_on(tables, problem), random.Random(seed)
    search.advance(chance.randint(1, 5))
    parts = Parts(problem, tables, chance, shares_best, search.plan, search.floor_ms)
    if (left := search.frontier) is not None:
        parts.run(left, search.cutoff_ms if shares_best else math.inf)
    optimum = exhaustive_search(problem)
    assert (parts.best is None) == (optimum is None)
    if parts.best is not None and optimum is not None:
        assert parts.best.time_ms == same(optimum.iteration_time_ms)
        assert parts.floor_ms >= optimum.iteration_time_ms * (1 - 1e-9)
        assert_feasible(Solution(problem, parts.best.stages, parts.best.time_ms, parts.best.depths))
    assert parts.alarms == 0
    return parts.count


@given(problem=problems(LONG), seed=st.integers(0, 99), shares_best=st.booleans())
@examples(60)
def test_the_parts_of_a_tree_find_together_what_the_whole_does(problem: Problem, seed: int, shares_best: bool) -> None:
    assert_parts_are_the_whole(problem, seed, shares_best)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_trees_of_every_schedule_fall_into_parts(schedule: str) -> None:
    space = replace(LONG, schedules=(schedule,), pools=False, layer_types=(1, 1), kinds=(2, 3))
    counts: list[int] = []

    @given(problem=problems(space), seed=st.integers(0, 99))
    @examples(15)
    def check(problem: Problem, seed: int) -> None:
        counts.append(assert_parts_are_the_whole(problem, seed, shares_best=False))

    check()
    assert max(counts) > 5


def test_a_split_gives_every_part_large_trees_and_small_ones() -> None:
    tables = tables_of(HARD)
    assert tables is not None
    search = search_on(tables, HARD)
    search.advance(500)
    frontier = search.frontier
    assert frontier is not None
    parts = frontier.split(4)
    assert [part.size for part in parts] == [part.size for part in sorted(parts, key=lambda part: -part.size)]
    assert max(part.size for part in parts) - min(part.size for part in parts) <= 1
    assert min(part.bound_ms for part in parts) == frontier.bound_ms
    assert sum(part.size for part in frontier.split(10_000)) == len(frontier.split(10_000)) == frontier.size
    for part in parts:
        assert (np.diff(part.rows[:, 0]) >= 0).all()


SMALL = SearchOptions(most_table_values=50_000, warmup_samples=0)
"""Room for the tables of relaxed counts only, though the states themselves are few enough."""


@pytest.mark.parametrize("has_tables", [True, False], ids=["tables", "no tables"])
def test_parts_of_a_relaxed_tree_stay_on_its_graph(has_tables: bool) -> None:
    problem = medium_problem(7)
    best = solve([problem]).best
    assert best is not None
    first = ExactSearch(bound(problem), SMALL, math.inf, Alone())
    first.open(0, SMALL.most_table_values)
    first.advance(300)
    frontier, tables = first.frontier, first.tables
    assert frontier is not None
    assert tables is not None
    assert frontier.is_relaxed
    # Where the tables are gone there may be more room than before, but the edges are still those of the relaxed graph.
    for part in frontier.split(3):
        again = ExactSearch(bound(problem), OPTIONS, best.iteration_time_ms, Alone())
        if has_tables:
            again.take_over(read_only(tables), is_relaxed=part.is_relaxed)
        else:
            again.reopen(is_relaxed=part.is_relaxed)
        again.load(part, math.inf)
        again.advance(300)
        assert again.frontier is not None
        assert again.frontier.is_relaxed
        assert part.bound_ms <= again.bound_ms <= best.iteration_time_ms
        assert again.plan is None or again.plan.time_ms >= best.iteration_time_ms * (1 - 1e-9)
        assert again.take_counters().bound_alarms == 0


def test_a_relaxed_search_survives_its_workers() -> None:
    with small_slices(200):
        options = replace(SMALL, node_limit=3000)
        result = solve([medium_problem(7)], options, backend=Scattered(1, losses=0.3))
    assert result.termination is TerminationReason.NODE_LIMIT
    assert (result.warnings, result.counters.bound_alarms) == ((), 0)


@dataclass
class Enumerated:
    """Enumerates by ever smaller parts; every part must time just what it holds."""

    space: Configurations
    rules: tuple[bool, bool]
    cutoff_ms: float
    random: random.Random
    best_ms: float = math.inf
    simulations: int = 0
    parts: int = 0
    cuts: tuple[np.ndarray, np.ndarray] | None = None

    def run(self, frontier: OrderFrontier | None, mine: list[Choices]) -> None:
        search = self.space.search(*self.rules, self.cutoff_ms)
        if frontier is not None:
            search.load(frontier.position)
        for _ in range(self.random.randint(0, 12)):
            if not search.done:
                search.run(1)
                self._note_best(search)
        search.flush()
        self._note_best(search)
        left = () if search.done else OrderFrontier(search.position).split(self.random.randint(1, 4))
        theirs = [[one for one in mine if holds(part, one)] for part in left]
        together = [one for some in theirs for one in some]
        assert len(together) == len(set(together)), "a configuration is in two parts"
        if self.rules == (False, False):
            assert search.num_simulations + len(together) == len(mine)
        self.simulations += search.num_simulations
        self.parts += 1
        stage, layer = search.cuts
        self.cuts = (stage, layer) if self.cuts is None else (self.cuts[0] + stage, self.cuts[1] + layer)
        for index in self.random.sample(range(len(left)), len(left)):
            self.run(left[index], theirs[index])

    def _note_best(self, search: PaperSearch) -> None:
        if search.improved:
            self.best_ms = min(self.best_ms, search.best_ms)


def holds(part: OrderFrontier, configuration: Choices) -> bool:
    """Whether a configuration is still to come: it leaves the position at a marked stage, for a later choice."""
    for (edge, *chunks, is_open), chosen in zip(part.position.tolist(), configuration, strict=False):
        if chosen != (edge, tuple(chunks)):
            return bool(is_open) and chosen > (edge, tuple(chunks))
    return False


def everything(space: Configurations) -> list[Choices]:
    """All configurations of a space, as edges and layers."""
    return list(_going_on(space, (), 0, 0))


def _going_on(space: Configurations, chosen: Choices, group: int, placed: int) -> Iterator[Choices]:
    arrays = space.arrays
    if len(chosen) == arrays.num_stages:
        if placed == arrays.num_layers:
            yield chosen
        return
    for edge in np.flatnonzero(space.edges[:, 0] == group).tolist():
        _, kind, place, target, within = space.edges[edge].tolist()
        if chosen:
            previous = int(space.edges[chosen[-1][0], 1])
            alike = within and arrays.pool_of_kind[previous] == arrays.pool_of_kind[kind]
            times = arrays.intra_node if alike else arrays.inter_node
            if math.isinf(times[previous, kind]) or math.isinf(times[kind, previous]):
                continue
        limits = arrays.max_layers[kind, place]
        most = min(int(limits[min(placed, len(limits) - 1)]), arrays.num_layers - placed)
        for chunks in product(range(1, most + 1), repeat=arrays.num_chunks):
            if sum(chunks) <= most and space.most_after[target] >= 0:
                yield from _going_on(space, (*chosen, (edge, chunks)), target, placed + sum(chunks))


@given(problem=problems(replace(EVERYTHING, most_configurations=120)), seed=st.integers(0, 99))
@examples(60)
def test_the_parts_of_an_enumeration_time_every_configuration_once(problem: Problem, seed: int) -> None:
    space = space_of(problem)
    enumerated = Enumerated(space, (False, False), math.inf, random.Random(seed))
    whole = space.search(False, False, math.inf)
    whole.run(10**9)
    while not whole.done:
        whole.run(10**9)
    mine = everything(space)
    enumerated.run(None, mine)
    assert enumerated.simulations == whole.num_simulations == len(mine)
    optimum = exhaustive_search(problem)
    assert enumerated.best_ms == (math.inf if optimum is None else same(optimum.iteration_time_ms))


@given(
    problem=problems(replace(EVERYTHING, most_configurations=120)),
    seed=st.integers(0, 99),
    rules=st.sampled_from([(True, True), (True, False), (False, True)]),
)
@examples(60)
def test_the_parts_of_the_papers_search_cut_together_what_the_whole_does(
    problem: Problem, seed: int, rules: tuple[bool, bool]
) -> None:
    # With the best time known from the start no part can prune by a better one than another.
    space = space_of(problem)
    first = space.search(*rules, math.inf)
    while not first.done:
        first.run(10**9)
    whole = space.search(*rules, first.best_ms)
    while not whole.done:
        whole.run(10**9)
    enumerated = Enumerated(space, rules, first.best_ms, random.Random(seed))
    enumerated.run(None, everything(space))
    assert enumerated.simulations == whole.num_simulations
    assert enumerated.best_ms == first.best_ms
    assert enumerated.cuts is not None
    for one, other in zip(enumerated.cuts, whole.cuts, strict=True):
        assert (one == other).all()


def test_a_position_of_another_problem_is_refused() -> None:
    space = space_of(HARD)
    search = space.search(False, False, math.inf)
    search.run(1000)
    position = search.position
    position[0, 0] = len(space.edges)
    with pytest.raises(ValueError, match="not a position"):
        space.search(False, False, math.inf).load(position)
