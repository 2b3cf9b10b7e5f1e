"""Hands the shards of a search out, best bound first, and puts what comes back together (docs/parallel.md).

The driver owns every shard: what is open, what is being worked on, what is left of it. Nothing is lost with a worker.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from poseidon.search.frontier import Frontier
from poseidon.search.incumbents import Incumbents, ranks_of
from poseidon.search.options import INTERLEAVED_NODES
from poseidon.search.result import Counters, Solution
from poseidon.search.run import Run
from poseidon.search.shard import Action, Event, Failure, Found, Outcome, Shard
from poseidon.search.tolerance import prune_fraction
from poseidon.search.watch import Progress

FIRST_NODES = 4000
"""Search nodes of an opened outer choice's first turn; every further one has twice as many, up to `MOST_NODES`."""
MOST_NODES = 16_000
ENUMERATED_NODES = 4_000_000
"""The same for a part of an enumeration (some seconds): what a process that is killed loses at the most."""
MOST_OPEN_VALUES = 150_000_000
"""Numbers in the tables of all open outer choices together (8 bytes each)."""
MOST_ATTEMPTS = 6
"""Workers that may be lost with a shard before it is given up."""
MOST_IDLE_DEATHS = 100
"""Workers that may be lost before they begin; from then on it counts against the shards: none of them comes up."""
STOP_S = 1.5
"""Seconds that running shards have to come back when a search stops early."""


@dataclass
class OuterChoice:
    """What the driver knows of one outer choice."""

    index: int
    name: str
    bound_ms: float
    """No plan of it is faster."""
    floor_ms: float = math.inf
    """The same for the part that is finished."""
    shards: dict[int, float] = field(default_factory=dict)
    """Bounds of the shards that are not finished, by number."""
    search_nodes: int = 0
    table_values: int = 0
    given_up: bool = False
    hit_node_limit: bool = False
    failed: list[str] = field(default_factory=list)
    """Why shards of it could not be done."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return not self.shards

    @property
    def is_proven(self) -> bool:
        """Whether everything in it was searched."""
        return self.is_done and not (self.given_up or self.hit_node_limit or self.failed)

    @property
    def least_ms(self) -> float:
        """No plan of it is faster, as far as is known now."""
        return max(self.bound_ms, min(self.floor_ms, min(self.shards.values(), default=math.inf)))


Key = tuple[float, ...]


class Driver:
    """Runs one search on a backend: `add` every shard to begin with, then `run`, then look at what is known."""

    def __init__(self, run: Run, bounds_ms: Iterable[float]) -> None:
        """`bounds_ms` are the closed-form bounds of the outer choices."""
        context = run.context
        self.context, self.watch = context, run.watch
        self._backend, self._journal = run.backend, run.journal
        self._options = context.options
        self.is_exact = self._options.policy == "exact"
        self.incumbents: Incumbents[Solution] = Incumbents(self._options.top, self._options.tie)
        self.counters = Counters()
        self.cpu_seconds = 0.0
        """CPU time of all shards together."""
        problems = zip(context.problems, bounds_ms, strict=True)
        self.choices = [OuterChoice(index, p.name, float(bound_ms)) for index, (p, bound_ms) in enumerate(problems)]
        self._rank_of = ranks_of(choice.name for choice in self.choices)
        self.index_of = {choice.name: choice.index for choice in self.choices}
        self.outcomes: list[Outcome] = []
        """Of enumerations, with what they counted; frontiers left out."""
        self._queue: list[tuple[Key, int, Shard]] = []
        self._turns: dict[int, int] = {}
        self._attempts: dict[int, int] = {}
        self._num_idle_deaths = 0
        self._in_flight: dict[int, Shard] = {}
        self._is_begun = False
        self.next_number = 0
        self.num_done = 0

    # Building up the work.

    def add(self, problem: int, action: Action, samples: int = 0) -> None:
        """Puts a whole outer choice up for work."""
        shard = Shard(self._number(), problem, action, self.choices[problem].bound_ms, samples=samples)
        self._put(shard, 0)

    def note_done(self, problem: int, bound_ms: float) -> None:
        """An outer choice needs no work: its bound is known."""
        self.choices[problem].bound_ms = bound_ms
        self.num_done += 1

    def take_queued(self, number: int) -> Shard:
        """Takes a shard that waits out of the queue."""
        index = next(index for index, entry in enumerate(self._queue) if entry[1] == number)
        shard = self._queue.pop(index)[2]
        heapq.heapify(self._queue)
        return shard

    def _number(self) -> int:
        self.next_number += 1
        return self.next_number - 1

    def _put(self, shard: Shard, turn: int) -> None:
        choice = self.choices[shard.problem]
        choice.shards[shard.number] = shard.bound_ms
        self._turns[shard.number] = turn
        heapq.heappush(self._queue, (self._key(shard, turn), shard.number, shard))

    def _key(self, shard: Shard, turn: int) -> Key:
        if not self.is_exact:
            return (shard.problem,)
        return (shard.action is not Action.OPEN, turn, shard.bound_ms, self._rank_of[self.choices[shard.problem].name])

    # Working it off.

    def run(self) -> None:
        """Works until nothing is left, the watch says stop or Ctrl-C is pressed."""
        if not self._is_begun:
            self._backend.begin(self.context, self)
            self._is_begun = True
            if self._journal is not None:
                self._journal.replay(self)  # may finish outer choices, which the backend is told
            self._tell_cutoff()
        try:
            while not self.watch.must_stop():
                self._dispatch()
                if not self._in_flight:
                    return
                self._take_all(self._backend.wait(0.1))
                self.heartbeat()
            self._call_back()
        except KeyboardInterrupt:
            self.watch.interrupt()
            self._call_back()

    def end(self) -> None:
        """What still runs is of no interest any more."""
        if self._is_begun:
            self._backend.end()

    def choose(self, problem: int, cutoff_ms: float) -> None:
        """Has an outer choice searched for the first plan, in its own order, that beats a time; `run` does it."""
        bound_ms = self.choices[problem].least_ms
        self._put(Shard(self._number(), problem, Action.CHOOSE, bound_ms, cutoff_ms=cutoff_ms), 0)

    def heartbeat(self) -> bool:
        """Reports the progress; whether to stop."""
        if not self.watch.must_stop():
            self.watch.tell(self._progress)
        return self.watch.must_stop()

    def _call_back(self) -> None:
        """Takes what running shards have so far."""
        self._backend.stop()
        until = self.watch.seconds + STOP_S
        try:
            while self._in_flight and self.watch.seconds < until and self._backend.name != "in-process":
                self._take_all(self._backend.wait(until - self.watch.seconds))
        except KeyboardInterrupt:
            self.watch.interrupt()

    def _dispatch(self) -> None:
        while len(self._in_flight) < self._backend.window and self._queue:
            _, _, shard = heapq.heappop(self._queue)
            if not self._is_open(shard):
                self._drop(shard)
                continue
            spare = self._backend.num_workers - len(self._in_flight) - len(self._queue)
            if spare > 1 and shard.frontier is not None and shard.frontier.size > 1:
                self._split(shard, spare)
                continue
            self._send(shard)
        self._backend.set_hungry(len(self._in_flight) < self._backend.num_workers)

    def _is_open(self, shard: Shard) -> bool:
        """Whether a shard may hold a better plan than those known, and its outer choice has search nodes left."""
        choice = self.choices[shard.problem]
        if shard.action is Action.CHOOSE:
            return True
        if shard.frontier is not None and self._nodes_left(choice) <= 0:
            choice.hit_node_limit = True
            return False
        if not self.is_exact:
            return True
        return shard.bound_ms < self.incumbents.cutoff_for(choice.name) * (1 - prune_fraction(self._options.gap))

    def _nodes_left(self, choice: OuterChoice) -> float:
        limit: float = math.inf if self._options.node_limit is None else self._options.node_limit
        if self._options.node_limit is None and self._options.time_limit_s is None and self.is_exact:
            interleaved = self.context.problems[choice.index].num_chunks > 1
            limit = INTERLEAVED_NODES if interleaved else math.inf
        return limit - choice.search_nodes

    def _drop(self, shard: Shard) -> None:
        choice = self.choices[shard.problem]
        choice.floor_ms = min(choice.floor_ms, shard.bound_ms)
        if shard.action is Action.OPEN:
            self.counters.prune("outer choice", 1)
        self._finish(shard)

    def _send(self, shard: Shard) -> None:
        choice = self.choices[shard.problem]
        turn = self._turns[shard.number]
        cutoff_ms = shard.cutoff_ms
        if self._options.shares_best and shard.action is not Action.CHOOSE:
            cutoff_ms = self.incumbents.cutoff_for(choice.name)
        most_nodes = min(FIRST_NODES << min(turn, 20), MOST_NODES) if self.is_exact else ENUMERATED_NODES
        shard = replace(
            shard,
            cutoff_ms=cutoff_ms,
            most_nodes=int(min(most_nodes, self._nodes_left(choice))),
            seconds=self._backend.slice_seconds,
            most_table_values=self._table_room(),
        )
        self._in_flight[shard.number] = shard
        self._backend.submit(shard)

    def _table_room(self) -> int:
        held = sum(choice.table_values for choice in self.choices if not choice.is_done)
        most = self._options.most_table_values
        return max(min(most, MOST_OPEN_VALUES - held), most // 16)

    def _split(self, shard: Shard, parts: int) -> None:
        assert shard.frontier is not None
        first = self.next_number
        self.apply_split(shard, parts)
        if self._journal is not None:
            self._journal.note_split(shard.number, parts, first)

    def apply_split(self, shard: Shard, parts: int) -> None:
        """Replaces a shard by its parts."""
        assert shard.frontier is not None
        turn = self._turns[shard.number]
        for frontier in shard.frontier.split(parts):
            self._child(shard, frontier, turn)
        self.choices[shard.problem].shards.pop(shard.number)

    def _child(self, parent: Shard, frontier: Frontier, turn: int) -> None:
        """Puts what is left of a shard, or a part of it, up for work."""
        bound_ms = max(parent.bound_ms, frontier.bound_ms)
        self._put(Shard(self._number(), parent.problem, Action.SEARCH, bound_ms, frontier), turn)

    # Taking what comes back.

    def _take_all(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, Found):
                self.found(event)
            elif isinstance(event, Failure):
                self._take_failure(event)
            elif event.number in self._in_flight:
                shard = self._in_flight.pop(event.number)
                if event.is_cut_short:
                    self._put(shard, self._turns[shard.number])
                    continue
                if self._journal is not None and shard.action is not Action.CHOOSE:
                    self._journal.note_outcome(event, self.next_number)
                self.apply(shard, event)

    def found(self, found: Found) -> None:
        """Takes a plan."""
        solution = found.solution(self.context.problems)
        if not self.incumbents.offer(solution, self.watch.seconds):
            return
        if self._journal is not None:
            self._journal.note_found(found)
        self._tell_cutoff()

    def _tell_cutoff(self) -> None:
        """Lets all workers know the time to beat."""
        name = self.incumbents.cutoff_name
        if name and self._options.shares_best and self._is_begun:
            kept = [Found.of(solution, self.index_of[solution.name]) for solution in self.incumbents.solutions]
            self._backend.publish(self.incumbents.cutoff_ms, self._rank_of[name], kept)

    def apply(self, shard: Shard, outcome: Outcome) -> None:
        """Puts the outcome of a shard in its place."""
        choice = self.choices[shard.problem]
        self.counters.add(outcome.counters)
        self.cpu_seconds += outcome.cpu_seconds
        if shard.action is Action.CHOOSE:
            if outcome.found is not None:
                self.incumbents.replace(outcome.found.solution(self.context.problems))
            self._finish(shard)
            return
        if outcome.found is not None:
            self.found(outcome.found)
        choice.search_nodes += outcome.counters.search_nodes
        choice.table_values = outcome.table_values or choice.table_values
        choice.given_up = choice.given_up or outcome.given_up
        choice.floor_ms = min(choice.floor_ms, max(outcome.floor_ms, shard.bound_ms))
        if not self.is_exact:
            self.outcomes.append(replace(outcome, frontier=None))
        if outcome.frontier is not None and outcome.frontier.size > 0:
            spent = outcome.counters.search_nodes >= shard.most_nodes
            turn = self._turns[shard.number] + (spent if shard.action is Action.SEARCH else 0)
            self._child(shard, outcome.frontier, turn)
        self._finish(shard)

    def _take_failure(self, failure: Failure) -> None:
        shard = self._in_flight.pop(failure.number, None)
        if shard is None:
            return
        self._num_idle_deaths += not failure.counts
        is_fault = failure.counts or self._num_idle_deaths > MOST_IDLE_DEATHS
        attempts = self._attempts[shard.number] = self._attempts.get(shard.number, 0) + is_fault
        if failure.again and attempts < MOST_ATTEMPTS:
            self._put(shard, self._turns[shard.number])
            return
        choice = self.choices[shard.problem]
        times = "" if attempts == 1 else f" {attempts} times"
        choice.failed.append(f"{failure.reason}{times}")
        choice.floor_ms = min(choice.floor_ms, max(shard.bound_ms, choice.bound_ms))
        self._finish(shard)

    def _finish(self, shard: Shard) -> None:
        choice = self.choices[shard.problem]
        choice.shards.pop(shard.number, None)
        if choice.is_done and shard.action is not Action.CHOOSE:
            choice.bound_ms = choice.least_ms
            self.num_done += 1
            self._backend.forget(shard.problem)

    # What is known.

    @property
    def lower_bound_ms(self) -> float:
        """No plan of any outer choice is faster."""
        return min((choice.least_ms for choice in self.choices), default=math.inf)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do."""
        return all(choice.is_done for choice in self.choices)

    def _progress(self) -> Progress:
        best_ms = self.incumbents.best_ms
        bound_ms = min(best_ms, self.lower_bound_ms)
        nodes, choices = self.counters.search_nodes, len(self.choices)
        nodes += self._backend.running_nodes if self._in_flight else 0
        return Progress(self.watch.seconds, best_ms, bound_ms, nodes, self.num_done, choices)
