"""A backend that does its worst: workers in this process that take turns at random, a few search nodes at a time.

What several processes do by chance (come back in any order, hear of a better time late, die with a shard or with the
tables) happens here by seed, so a search that goes wrong goes wrong again.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest

from poseidon.search import enumeration_task, worker
from poseidon.search._incumbent_cell import SIZE, IncumbentCell
from poseidon.search.backend import Listener
from poseidon.search.exact import OpenTables
from poseidon.search.shard import Action, Context, Event, Failure, Found, Outcome, Shard
from poseidon.search.worker import Worker

WHOLE_SLICE = worker.SLICE
MOST_LOSSES = 3
"""Times that a shard is lost at the most: fewer than the driver puts up with."""


class Scattered:
    """See `Backend`; a worker is lost with probability `losses` at every shard."""

    name = "scattered"
    slice_seconds = 0.0
    running_nodes = 0

    def __init__(self, seed: int, num_workers: int = 3, losses: float = 0.0) -> None:
        self._random = random.Random(seed)
        self.num_workers = self.window = num_workers
        self._losses = losses
        self.num_outcomes = 0

    def begin(self, context: Context, listener: Listener) -> None:
        self._context = pickle.dumps(context)
        self._cell = IncumbentCell(bytearray(SIZE))
        self._cell.reset()
        self._tables: dict[int, OpenTables] = {}
        self._lost: dict[int, int] = {}
        self._busy: dict[int, Shard] = {}
        self._workers = [self._start() for _ in range(self.num_workers)]
        self._events: list[Event] = []

    def _start(self) -> tuple[Worker, _Link]:
        link = _Link(self._cell, self._tables)
        return Worker(pickle.loads(self._context), link), link

    def submit(self, shard: Shard) -> None:
        index = self._random.choice([index for index in range(self.num_workers) if index not in self._busy])
        self._busy[index] = pickle.loads(pickle.dumps(shard))

    def wait(self, seconds: float) -> list[Event]:
        if self._busy:
            self._turn(self._random.choice(sorted(self._busy)))
        if self._random.random() < 0.5 and self._busy:
            return []
        events, self._events = self._events, []
        return events

    def _turn(self, index: int) -> None:
        shard = self._busy.pop(index)
        before, link = self._workers[index]
        outcome = _choice_of(before, shard) if shard.action is Action.CHOOSE else before.run(shard)
        self._events += pickle.loads(pickle.dumps(link.taken()))
        if self._random.random() < self._losses and self._lost.get(shard.number, 0) < MOST_LOSSES:
            self._lost[shard.number] = self._lost.get(shard.number, 0) + 1
            self._workers[index] = self._start()
            if self._random.random() < 0.5:
                self._tables.clear()
            self._events.append(Failure(shard.number, "lost", again=True))
            return
        self.num_outcomes += 1
        self._events.append(_through_a_pipe(outcome))

    def publish(self, cutoff_ms: float, rank: int, kept: Sequence[Found]) -> None:
        self._cell.publish(cutoff_ms, rank)

    def set_hungry(self, hungry: bool) -> None:
        self._cell.hungry = hungry

    def stop(self) -> None:
        self._cell.stop = True

    def forget(self, problem: int) -> None:
        self._tables.pop(problem, None)

    def end(self) -> None:
        self._busy.clear()
        self._events.clear()

    def close(self) -> None:
        self.end()


class _Link:
    """A worker's connection; tables come back read-only, as from a mapped file."""

    def __init__(self, cell: IncumbentCell, tables: dict[int, OpenTables]) -> None:
        self.cell, self._tables = cell, tables
        self._found: list[Found] = []

    def taken(self) -> list[Found]:
        found, self._found = self._found, []
        return found

    def found(self, found: Found) -> None:
        self._found.append(found)

    def must_stop(self) -> bool:
        return self.cell.stop

    def note_nodes(self, search_nodes: int) -> None:
        pass

    def put_tables(self, problem: int, tables: OpenTables) -> None:
        self._tables[problem] = read_only(tables)

    def get_tables(self, problem: int) -> OpenTables | None:
        return self._tables.get(problem)


def _choice_of(one: Worker, shard: Shard) -> Outcome:
    """The choice among equals is made in whole slices: how long they are decides which plan is the first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "SLICE", WHOLE_SLICE)
        return one.run(shard)


def _through_a_pipe(outcome: Outcome) -> Outcome:
    copy: Outcome = pickle.loads(pickle.dumps(outcome))
    return copy


def read_only(tables: OpenTables) -> OpenTables:
    """Copies that nobody can write to."""
    copies = [np.array(part) for part in tables.parts]
    for copy in copies:
        copy.setflags(write=False)
    low, high, lowest, highest, values = copies
    return OpenTables((low, high, lowest, highest, values), np.array(tables.charges))


@contextmanager
def small_slices(search_nodes: int = 1, operations: int = 1) -> Iterator[None]:
    """Lets a shard come back after so many search nodes (policy exact) or operations (the others)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "SLICE", search_nodes)
        patch.setattr(enumeration_task, "SLICE", operations)
        yield
