"""The backend of `--workers N`: processes on this machine that read the time to beat from shared memory.

Each worker has a pipe to the driver and does one shard at a time. Tables of an outer choice are written once, to a
file in shared memory, and mapped by every worker that needs them. A worker that dies takes nothing with it: the driver
sends its shard to another one, and a new worker takes its place.
"""

from __future__ import annotations

import atexit
import mmap
import os
import pickle
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poseidon.search._incumbent_cell import SIZE, IncumbentCell
from poseidon.search.backend import Listener
from poseidon.search.exact import OpenTables
from poseidon.search.shard import Context, Event, Failure, Found, Outcome, Shard
from poseidon.search.worker import Worker

SLICE_S = 0.5
"""Seconds after which a shard comes back."""
NODE_BYTES = 8
END_S = 1.0
"""Seconds that workers have to end by themselves."""
PREFIX = "poseidon-workers-"


@dataclass
class _Process:
    """One worker process, with the shard that it has."""

    process: BaseProcess
    pipe: Connection
    shard: int | None = None


class LocalWorkers:
    """Runs shards on worker processes; see `Backend`."""

    name = "local"
    slice_seconds = SLICE_S

    def __init__(self, num_workers: int) -> None:
        """Starts the workers; `num_workers` is at least 1."""
        self.num_workers = self.window = num_workers
        _remove_left_behind()
        self._folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=_shared_memory()))
        atexit.register(self.close)
        (self._folder / "shared").write_bytes(bytes(SIZE + NODE_BYTES * num_workers))
        shared = _open_shared(self._folder)
        self._cell = IncumbentCell(shared)
        self._cell.reset()
        self._nodes = shared[SIZE:].cast("q")
        self._search = 0
        self._workers = [self._start(index) for index in range(num_workers)]

    def _start(self, index: int) -> _Process:
        spawn = get_context("spawn")
        ours, theirs = spawn.Pipe()
        process = spawn.Process(
            target=_work, args=(theirs, str(self._folder), os.getpid(), index), name="poseidon-worker", daemon=True
        )
        process.start()
        theirs.close()
        return _Process(process, ours)

    @property
    def running_nodes(self) -> int:
        """See `Backend`."""
        busy = (index for index, worker in enumerate(self._workers) if worker.shard is not None)
        return sum(self._nodes[index] for index in busy)

    @property
    def process_ids(self) -> list[int]:
        """Of the workers."""
        return [worker.process.pid for worker in self._workers if worker.process.pid is not None]

    def begin(self, context: Context, listener: Listener) -> None:
        """See `Backend`."""
        self.end()
        self._search += 1
        self._cell.reset()
        with (self._folder / f"{self._search}.search").open("wb") as file:
            pickle.dump(context, file, protocol=pickle.HIGHEST_PROTOCOL)

    def submit(self, shard: Shard) -> None:
        """See `Backend`; at most `window` shards at a time."""
        index = next(index for index, worker in enumerate(self._workers) if worker.shard is None)
        worker = self._workers[index]
        worker.shard = shard.number
        self._nodes[index] = 0
        with suppress(OSError):  # the worker is dead: `wait` says so
            worker.pipe.send((self._search, shard))

    def wait(self, seconds: float) -> list[Event]:
        """See `Backend`."""
        ready = wait([worker.pipe for worker in self._workers], timeout=max(seconds, 0.0))
        events: list[Event] = []
        for worker in list(self._workers):
            if worker.pipe in ready:
                self._receive(worker, events)
        return events

    def _receive(self, worker: _Process, events: list[Event]) -> None:
        """Takes all that a worker has sent; replaces it where it is dead."""
        try:
            while worker.pipe.poll():
                search, event = worker.pipe.recv()
                if not isinstance(event, Found):
                    worker.shard = None
                if search == self._search:
                    events.append(event)
        except (EOFError, OSError, pickle.UnpicklingError):
            worker.process.join()
            if worker.shard is not None:
                events.append(Failure(worker.shard, _ending(worker.process.exitcode), again=True))
            worker.pipe.close()
            index = self._workers.index(worker)
            self._workers[index] = self._start(index)

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
        for path in self._folder.glob(f"{self._search}-{problem}-*.npy"):
            path.unlink(missing_ok=True)

    def end(self) -> None:
        """See `Backend`; waits a moment for shards that still run, and replaces workers that do not come back."""
        self._cell.stop = True
        busy = [worker for worker in self._workers if worker.shard is not None]
        for worker in busy:
            if not worker.pipe.poll(END_S):
                worker.process.kill()
            ignored: list[Event] = []
            while worker.shard is not None and worker in self._workers:
                worker.pipe.poll(END_S)
                self._receive(worker, ignored)
        for path in self._folder.glob(f"{self._search}*"):
            path.unlink(missing_ok=True)
        self._cell.stop = False

    def close(self) -> None:
        """See `Backend`."""
        if not self._folder.exists():
            return
        self._cell.stop = True
        for worker in self._workers:
            worker.pipe.close()
        for worker in self._workers:
            worker.process.join(END_S)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        shutil.rmtree(self._folder, ignore_errors=True)
        atexit.unregister(self.close)


class _LocalLink:
    """A worker process's connection; see `Link`."""

    def __init__(self, pipe: Connection, folder: Path, parent: int, index: int) -> None:
        shared = _open_shared(folder)
        self.cell = IncumbentCell(shared)
        self.search = 0
        self._nodes = shared[SIZE:].cast("q")
        self._pipe, self._folder, self._parent, self._index = pipe, folder, parent, index

    def found(self, found: Found) -> None:
        self._pipe.send((self.search, found))

    def must_stop(self) -> bool:
        if os.getppid() != self._parent:
            os._exit(1)  # the driver is gone
        return self.cell.stop

    def note_nodes(self, search_nodes: int) -> None:
        self._nodes[self._index] = search_nodes

    def put_tables(self, problem: int, tables: OpenTables) -> None:
        arrays: list[NDArray[Any]] = [*tables.parts, tables.charges]
        for index, array in enumerate(arrays):
            path = self._path(problem, index)
            unfinished = path.with_suffix(f".{os.getpid()}")
            with unfinished.open("wb") as file:
                np.save(file, array)
            unfinished.rename(path)

    def get_tables(self, problem: int) -> OpenTables | None:
        try:
            arrays = [np.load(self._path(problem, index), mmap_mode="r") for index in range(6)]
        except (OSError, ValueError):
            return None
        low, high, lowest, highest, values, charges = arrays
        return OpenTables((low, high, lowest, highest, values), np.array(charges))

    def _path(self, problem: int, index: int) -> Path:
        return self._folder / f"{self.search}-{problem}-{index}.npy"


def _work(pipe: Connection, folder: str, parent: int, index: int) -> None:
    """What a worker process does until the driver closes its pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the driver decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    link = _LocalLink(pipe, Path(folder), parent, index)
    worker = None
    while True:
        try:
            search, shard = pipe.recv()
            if worker is None or search != link.search:
                context = pickle.loads((Path(folder) / f"{search}.search").read_bytes())
                link.search = search
                worker = Worker(context, link)
            pipe.send((search, _run(worker, shard)))
        except (EOFError, OSError):
            return


def _run(worker: Worker, shard: Shard) -> Outcome | Failure:
    try:
        return worker.run(shard)
    except Exception as error:  # a defect: reported with the problem, while the other shards go on
        return Failure(shard.number, f"{type(error).__name__}: {error}", again=False)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"its worker was killed by {signal.Signals(-code).name}"
    return f"its worker ended with status {code}"


def _shared_memory() -> str | None:
    """A folder in memory where there is one."""
    return "/dev/shm" if sys.platform == "linux" and os.access("/dev/shm", os.W_OK) else None


def _open_shared(folder: Path) -> memoryview:
    """The cell, and after it the search nodes of each worker's shard."""
    with (folder / "shared").open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 0))


def _remove_left_behind() -> None:
    """Removes folders of drivers that were killed."""
    for path in Path(_shared_memory() or tempfile.gettempdir()).glob(f"{PREFIX}*"):
        owner = path.name.removeprefix(PREFIX).split("-")[0]
        if owner.isdigit() and not _is_running(int(owner)):
            shutil.rmtree(path, ignore_errors=True)


def _is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
