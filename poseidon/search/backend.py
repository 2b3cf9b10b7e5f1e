"""Where shards are run: the interface of all backends, and the one that needs no other process."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from poseidon.search._incumbent_cell import SIZE, IncumbentCell
from poseidon.search.exact import OpenTables
from poseidon.search.shard import Context, Event, Found, Shard
from poseidon.search.worker import Worker


class Listener(Protocol):
    """What a backend that works in the driver's own process calls while it does."""

    def heartbeat(self) -> bool:
        """A few times a second; True: stop."""

    def found(self, found: Found) -> None:
        """At once, for every plan that is better than those before."""


class Backend(Protocol):
    """Runs shards on some workers. One search at a time; the same backend may serve many, one after the other."""

    name: str
    """in-process, local or ray."""
    slice_seconds: float
    """Seconds after which a shard comes back with what is left."""

    @property
    def num_workers(self) -> int:
        """How many shards can run at the same time."""

    @property
    def window(self) -> int:
        """How many shards to hand out at the same time: some may wait so that no worker has to."""

    @property
    def running_nodes(self) -> int:
        """Search nodes that shards which are not back yet have taken, as far as is known: for the progress only."""

    def begin(self, context: Context, listener: Listener) -> None:
        """From now on runs shards of this search."""

    def submit(self, shard: Shard) -> None:
        """Hands out a shard."""

    def wait(self, seconds: float) -> list[Event]:
        """What has happened, at the latest after so many seconds; empty if nothing did."""

    def publish(self, cutoff_ms: float, rank: int, kept: Sequence[Found]) -> None:
        """Tells all workers of a new time to beat and of the rank of the outer choice whose plan it is; `kept` are the
        best plans, from which it comes.
        """

    def set_hungry(self, hungry: bool) -> None:
        """Whether workers have nothing to do: running shards come back soon, to be shared out."""

    def stop(self) -> None:
        """Asks running shards to come back at once."""

    def forget(self, problem: int) -> None:
        """Nothing more will be done for an outer choice."""

    def end(self) -> None:
        """Ends the search: what still runs is of no interest any more."""

    def close(self) -> None:
        """Lets go of all workers."""


class InProcess:
    """One worker: this process itself. A shard runs while the driver waits for it."""

    name = "in-process"
    num_workers = window = 1
    slice_seconds = float("inf")

    def __init__(self) -> None:
        """Ready to `begin`."""
        self.cell = IncumbentCell(bytearray(SIZE))
        self._shards: deque[Shard] = deque()
        self._tables: dict[int, OpenTables] = {}
        self.running_nodes = 0

    def begin(self, context: Context, listener: Listener) -> None:
        """See `Backend`."""
        self.end()
        self.cell.reset()
        self.must_stop, self.found = listener.heartbeat, listener.found
        self._worker = Worker(context, self)

    def submit(self, shard: Shard) -> None:
        """See `Backend`."""
        self._shards.append(shard)

    def wait(self, seconds: float) -> list[Event]:
        """Runs the next shard."""
        self.running_nodes = 0
        return [self._worker.run(self._shards.popleft())] if self._shards else []

    def publish(self, cutoff_ms: float, rank: int, kept: Sequence[Found]) -> None:
        """See `Backend`."""
        self.cell.publish(cutoff_ms, rank)

    def set_hungry(self, hungry: bool) -> None:
        """There is no other worker."""

    def stop(self) -> None:
        """Nothing runs while the driver does."""

    def forget(self, problem: int) -> None:
        """See `Backend`."""
        self._worker.forget(problem)
        self._tables.pop(problem, None)

    def end(self) -> None:
        """See `Backend`."""
        self._shards.clear()
        self._tables.clear()

    def close(self) -> None:
        """See `Backend`."""
        self.end()

    # What the worker needs of its link.

    def note_nodes(self, search_nodes: int) -> None:
        """See `Link`."""
        self.running_nodes = search_nodes

    def put_tables(self, problem: int, tables: OpenTables) -> None:
        """See `Link`."""
        self._tables[problem] = tables

    def get_tables(self, problem: int) -> OpenTables | None:
        """See `Link`."""
        return self._tables.get(problem)
