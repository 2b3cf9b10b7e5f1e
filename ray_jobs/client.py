"""What a worker process keeps from shard to shard: its cell, kept up to date by a thread, and what it has built."""

from __future__ import annotations

import pickle
import random
import threading
import time
from typing import TYPE_CHECKING, Any

import ray

from poseidon.search._incumbent_cell import SIZE, IncumbentCell
from poseidon.search.exact import OpenTables
from poseidon.search.shard import Found
from poseidon.search.worker import Worker

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ray_jobs.incumbent_actor import News

WAIT_S = 5.0
"""Seconds after which a question for news is asked again."""
PAUSE_S = 0.2
"""Seconds between two tries to reach an actor that is being restarted."""


class Client:
    """A worker process's part in one search; also the link of its worker (`poseidon.search.link.Link`)."""

    def __init__(self, search: int, context: NDArray[Any], actor: Any) -> None:
        """`context` is a pickled `Context`, `actor` the handle of the `IncumbentActor`."""
        self.search = search
        self.cell = IncumbentCell(bytearray(SIZE))
        self.cell.reset()
        self.worker = Worker(pickle.loads(context.tobytes()), self)
        self.is_over = False
        self._actor = actor
        self._found: dict[int, Found] = {}
        self._given: OpenTables | None = None
        self._put: OpenTables | None = None
        threading.Thread(target=self._listen, name="poseidon-news", daemon=True).start()

    # For the task.

    def hand_in(self, tables: OpenTables | None) -> None:
        """Tables of the shard's outer choice that came with it."""
        self._given, self._put = tables, None

    def take_put(self) -> OpenTables | None:
        """Tables that the shard has built."""
        put, self._given, self._put = self._put, None, None
        return put

    # For the worker.

    def found(self, found: Found) -> None:
        """See `Link`."""
        self._found[found.problem] = found
        self._actor.offer.remote(self.search, found)

    def must_stop(self) -> bool:
        """See `Link`."""
        return self.cell.stop

    def note_nodes(self, search_nodes: int) -> None:
        """Nobody asks."""

    def put_tables(self, problem: int, tables: OpenTables) -> None:
        """See `Link`."""
        self._put = tables

    def get_tables(self, problem: int) -> OpenTables | None:
        """See `Link`."""
        return self._given

    def _listen(self) -> None:
        """Keeps the cell up to date until the search is over; never in the way of the kernel, which holds no lock."""
        epoch, version = "", -1
        while not self.is_over:
            try:
                wait_s = WAIT_S * random.uniform(0.8, 1.2)
                news: News = ray.get(self._actor.news.remote(self.search, epoch, version, wait_s))
            except ray.exceptions.RayActorError as error:
                if self.is_over or not _may_come_back(error):
                    return
                time.sleep(PAUSE_S)
                continue
            except Exception:  # the process is being shut down under this thread
                return
            if epoch not in ("", news.epoch):
                for found in list(self._found.values()):  # a new actor may not know what the old one knew
                    self._actor.offer.remote(self.search, found)
            if news.is_over:
                return
            epoch, version = news.epoch, news.version
            self.cell.publish(news.cutoff_ms, news.rank)
            self.cell.stop, self.cell.hungry = news.stop, news.hungry


def _may_come_back(error: ray.exceptions.RayActorError) -> bool:
    return isinstance(error, ray.exceptions.ActorUnavailableError)


_present: Client | None = None


def client_of(search: int, context: NDArray[Any], actor: Any) -> Client:
    """The client of a search in this process; that of an earlier search is dropped."""
    global _present
    if _present is None or _present.search != search:
        if _present is not None:
            _present.is_over = True
        _present = Client(search, context, actor)
    return _present
