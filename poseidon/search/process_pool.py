"""Worker processes that may die without harm: each does one job at a time, and a dead one is replaced."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess, parent_process
from typing import Any, Generic, TypeVar

Job = TypeVar("Job")
Send = Callable[[Any], None]
"""Sends a message that is not yet the answer."""
Handler = Callable[[Any], Any]
"""Takes what a job needs and returns its answer."""

UP = None
"""In the place of a message's kind: the worker is up."""
FAREWELL_S = 1.0
"""How long a worker may take to end by itself."""


@dataclass(frozen=True)
class Message(Generic[Job]):
    """What a worker says of its job; the last message is the answer."""

    job: Job
    content: Any
    is_answer: bool


@dataclass(frozen=True)
class Death(Generic[Job]):
    """A worker died with a job; another one has taken its place."""

    job: Job
    how: str
    had_begun: bool
    """Whether the worker was up: otherwise it is not the job that killed it."""


@dataclass
class _Worker(Generic[Job]):
    process: BaseProcess
    pipe: Connection
    job: Job | None = None
    is_up: bool = False


class ProcessPool(Generic[Job]):
    """`size` processes. Each calls `make_handler(send, index, *arguments)` once, then the handler for every job.

    Processes are spawned: `make_handler` must be importable. They end with their parent, however that ends.
    """

    def __init__(self, size: int, make_handler: Callable[..., Handler], *arguments: Any) -> None:
        """Starts the processes; `size` is at least 1."""
        self._make_handler, self._arguments = make_handler, arguments
        self._workers: list[_Worker[Job]] = [self._start(index) for index in range(size)]

    def _start(self, index: int) -> _Worker[Job]:
        spawn = get_context("spawn")
        ours, theirs = spawn.Pipe()
        arguments = (theirs, self._make_handler, index, self._arguments)
        process = spawn.Process(target=_serve, args=arguments, name="poseidon-worker", daemon=True)
        # Ctrl-C reaches the whole process group: a process that is still starting must not hear it. The first start of
        # all would also start multiprocessing's resource tracker, which unblocks the signal.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return _Worker(process, ours)

    @property
    def process_ids(self) -> list[int]:
        """Of the workers."""
        return [worker.process.pid for worker in self._workers if worker.process.pid is not None]

    @property
    def busy(self) -> list[int]:
        """Indices of the workers that have a job."""
        return [index for index, worker in enumerate(self._workers) if worker.job is not None]

    @property
    def num_idle(self) -> int:
        """Workers without a job."""
        return len(self._workers) - len(self.busy)

    def give(self, job: Job, needs: Any) -> int:
        """Gives a job to an idle worker (there must be one) and returns the worker's index."""
        index = next(index for index, worker in enumerate(self._workers) if worker.job is None)
        if not self._workers[index].process.is_alive():  # it died idle: no job's fault
            self._replace(index)
        worker = self._workers[index]
        worker.job = job
        with suppress(OSError):  # it has died since: `wait` says so
            worker.pipe.send(needs)
        return index

    def wait(self, seconds: float) -> list[Message[Job] | Death[Job]]:
        """What workers have said, or how they died, at the latest after so many seconds; empty if nothing happened."""
        ready = wait([worker.pipe for worker in self._workers], timeout=max(seconds, 0.0))
        news: list[Message[Job] | Death[Job]] = []
        for index, worker in enumerate(self._workers):
            if worker.pipe in ready:
                self._receive(index, news)
        return news

    def _receive(self, index: int, news: list[Message[Job] | Death[Job]]) -> None:
        """Takes all that a worker has sent; replaces it where it is dead."""
        worker = self._workers[index]
        try:
            while worker.pipe.poll():
                is_answer, content = worker.pipe.recv()
                if is_answer is UP:
                    worker.is_up = True
                    continue
                assert worker.job is not None
                news.append(Message(worker.job, content, is_answer))
                worker.job = None if is_answer else worker.job
        except (EOFError, OSError, pickle.UnpicklingError):
            job, how = worker.job, _ending(worker.process)
            self._replace(index)
            if job is not None:
                news.append(Death(job, how, worker.is_up))

    def _replace(self, index: int) -> None:
        """Puts a new worker in the place of one that is dead or of no use any more."""
        _end(self._workers[index], at_once=True)
        self._workers[index] = self._start(index)

    def settle(self, seconds: float) -> None:
        """Waits until no worker has a job; replaces those that still have one when the time is up. What they say is
        dropped.
        """
        until = time.monotonic() + seconds
        while self.busy and time.monotonic() < until:
            self.wait(until - time.monotonic())
        for index in self.busy:
            self._replace(index)

    def close(self) -> None:
        """Ends all workers, busy ones at once."""
        for worker in self._workers:
            worker.pipe.close()  # an idle worker ends when it reads this
        for worker in self._workers:
            _end(worker, at_once=worker.job is not None)
        self._workers.clear()


def _end(worker: _Worker[Any], *, at_once: bool) -> None:
    worker.pipe.close()
    if not at_once:
        worker.process.join(FAREWELL_S)
    if worker.process.is_alive():
        worker.process.kill()
    worker.process.join()


def _ending(process: BaseProcess) -> str:
    """How a process that is about to be gone ended."""
    process.join(FAREWELL_S)
    code = process.exitcode
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit status {code}"


def _serve(pipe: Connection, make_handler: Callable[..., Handler], index: int, arguments: tuple[Any, ...]) -> None:
    """A worker's life: jobs come in, answers go out, until there are no more or the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    handler = make_handler(lambda content: pipe.send((False, content)), index, *arguments)
    with suppress(EOFError, OSError):  # the parent has closed the pipe: perhaps before this process was up
        pipe.send((UP, None))
        while True:
            pipe.send((True, handler(pipe.recv())))


def _end_with_parent() -> None:
    """Ends this process, in the middle of a job too, when its parent is gone."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
