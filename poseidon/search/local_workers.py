"""The backend of `--workers N`: processes on this machine that read the time to beat from shared memory.

Tables of an outer choice are written once, to files in shared memory, and mapped by every worker that needs them.
"""

from __future__ import annotations

import atexit
import mmap
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poseidon.search._incumbent_cell import SIZE, IncumbentCell
from poseidon.search.backend import Listener
from poseidon.search.exact import OpenTables
from poseidon.search.left_behind import left_behind, own_prefix
from poseidon.search.process_pool import Death, ProcessPool, Send
from poseidon.search.shard import Context, Event, Failure, Found, Outcome, Shard
from poseidon.search.worker import Worker

SLICE_S = 0.5
"""Seconds after which a shard comes back."""
SETTLE_S = 1.0
"""Seconds that shards of a search that has ended have to come back before their workers are replaced."""
PREFIX = "poseidon-workers-"
NODE_BYTES = 8
NUM_TABLE_ARRAYS = 6


class LocalWorkers:
    """Runs shards on worker processes; see `Backend`."""

    name = "local"
    slice_seconds = SLICE_S

    def __init__(self, num_workers: int) -> None:
        """Starts the workers; `num_workers` is at least 1."""
        self.num_workers = self.window = num_workers
        memory = _shared_memory()
        for folder in left_behind(memory, PREFIX):
            shutil.rmtree(folder, ignore_errors=True)
        self._folder = Path(tempfile.mkdtemp(prefix=own_prefix(PREFIX), dir=memory))
        (self._folder / "shared").write_bytes(bytes(SIZE + NODE_BYTES * num_workers))
        shared = _open_shared(self._folder)
        self._cell = IncumbentCell(shared)
        self._cell.reset()
        self._nodes = shared[SIZE:].cast("q")
        self._search = 0
        self._pool: ProcessPool[int] = ProcessPool(num_workers, _ShardHandler, str(self._folder))
        atexit.register(self.close)

    @property
    def running_nodes(self) -> int:
        """See `Backend`."""
        return sum(self._nodes[index] for index in self._pool.busy)

    @property
    def process_ids(self) -> list[int]:
        """Of the workers."""
        return self._pool.process_ids

    def begin(self, context: Context, listener: Listener) -> None:
        """See `Backend`."""
        self.end()
        self._search += 1
        self._cell.reset()
        with _context_path(self._folder, self._search).open("wb") as file:
            pickle.dump(context, file, protocol=pickle.HIGHEST_PROTOCOL)

    def submit(self, shard: Shard) -> None:
        """See `Backend`; at most `window` shards at a time."""
        index = self._pool.give(shard.number, (self._search, shard))
        self._nodes[index] = 0

    def wait(self, seconds: float) -> list[Event]:
        """See `Backend`."""
        return [
            Failure(news.job, f"its worker {news.how}", again=True, counts=news.had_begun)
            if isinstance(news, Death)
            else news.content
            for news in self._pool.wait(seconds)
        ]

    def publish(self, cutoff_ms: float, rank: int, kept: Sequence[Found]) -> None:
        """See `Backend`."""
        self._cell.publish(cutoff_ms, rank)

    def set_hungry(self, hungry: bool) -> None:
        """See `Backend`."""
        self._cell.hungry = hungry

    def stop(self) -> None:
        """See `Backend`."""
        self._cell.stop = True

    def forget(self, problem: int) -> None:
        """Tables that no worker maps any more give their memory back."""
        shutil.rmtree(_tables_path(self._folder, self._search, problem), ignore_errors=True)

    def end(self) -> None:
        """See `Backend`."""
        self._cell.stop = True
        self._pool.settle(SETTLE_S)
        for path in self._folder.glob("search-*"):
            path.unlink(missing_ok=True)
        for path in self._folder.glob("tables-*"):
            shutil.rmtree(path, ignore_errors=True)
        self._cell.stop = False

    def close(self) -> None:
        """See `Backend`."""
        if self._folder.exists():
            self._cell.stop = True
            self._pool.close()
            shutil.rmtree(self._folder, ignore_errors=True)
            atexit.unregister(self.close)


class _LocalLink:
    """A worker process's connection; see `Link`."""

    def __init__(self, send: Send, index: int, folder: Path) -> None:
        shared = _open_shared(folder)
        self.cell = IncumbentCell(shared)
        self.found: Callable[[Found], None] = send
        self.search = 0
        self._nodes = shared[SIZE:].cast("q")
        self._folder, self._index = folder, index

    def must_stop(self) -> bool:
        return self.cell.stop

    def note_nodes(self, search_nodes: int) -> None:
        self._nodes[self._index] = search_nodes

    def put_tables(self, problem: int, tables: OpenTables) -> None:
        arrays: list[NDArray[Any]] = [*tables.parts, tables.charges]
        assert len(arrays) == NUM_TABLE_ARRAYS
        path = _tables_path(self._folder, self.search, problem)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.mkdir(exist_ok=True)
        for index, array in enumerate(arrays):
            np.save(_array_path(unfinished, index), array)
        try:
            unfinished.rename(path)  # all arrays at once: they must be of the same tables
        except OSError:  # another worker was faster
            shutil.rmtree(unfinished, ignore_errors=True)

    def get_tables(self, problem: int) -> OpenTables | None:
        path = _tables_path(self._folder, self.search, problem)
        try:
            arrays = [np.load(_array_path(path, index), mmap_mode="r") for index in range(NUM_TABLE_ARRAYS)]
        except (OSError, ValueError):
            return None
        low, high, lowest, highest, values, charges = arrays
        return OpenTables((low, high, lowest, highest, values), np.array(charges))


class _ShardHandler:
    """What a worker process does with the shards that come in."""

    def __init__(self, send: Send, index: int, folder: str) -> None:
        self._folder = Path(folder)
        self._link = _LocalLink(send, index, self._folder)
        self._worker: Worker | None = None

    def __call__(self, needs: tuple[int, Shard]) -> Outcome | Failure:
        search, shard = needs
        try:
            if self._worker is None or search != self._link.search:
                context = pickle.loads(_context_path(self._folder, search).read_bytes())
                self._link.search = search
                self._worker = Worker(context, self._link)
            return self._worker.run(shard)
        except Exception as error:  # a defect: reported with the problem, while the other shards go on
            return Failure(shard.number, f"{type(error).__name__}: {error}", again=False)


def _context_path(folder: Path, search: int) -> Path:
    return folder / f"search-{search}"


def _tables_path(folder: Path, search: int, problem: int) -> Path:
    return folder / f"tables-{search}-{problem}"


def _array_path(tables: Path, index: int) -> Path:
    return tables / f"{index}.npy"


def _shared_memory() -> Path:
    """A folder in memory where there is one."""
    in_memory = sys.platform == "linux" and os.access("/dev/shm", os.W_OK)
    return Path("/dev/shm" if in_memory else tempfile.gettempdir())


def _open_shared(folder: Path) -> memoryview:
    """The cell, and after it the search nodes of each worker's shard."""
    with (folder / "shared").open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 0))
