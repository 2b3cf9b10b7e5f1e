"""Runs in local worker processes, which may die without harm: a dead worker's run is begun anew in another one."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess, parent_process

from poseidon.sweep.executor import MOST_RESUBMISSIONS, Finished
from poseidon.sweep.grid import Run
from poseidon.sweep.outcome import Outcome
from poseidon.sweep.run import do_run, failed_outcome

_CONTEXT = multiprocessing.get_context("spawn")
FAREWELL_S = 2.0
"""How long an idle worker may take to end before it is killed."""


@dataclass(frozen=True)
class _Job:
    run: Run
    attempts: int = 1
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))


class _Worker:
    """One process that does one run at a time."""

    def __init__(self) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        self.process: BaseProcess = _CONTEXT.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.job: _Job | None = None

    def take(self, job: _Job) -> None:
        """Begins a run; a worker that has died meanwhile is noticed when its answer is awaited."""
        self.job = job
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(job.run)

    def answer(self) -> Outcome | None:
        """The outcome of the run; None if the worker died."""
        try:
            outcome: Outcome = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return None
        return outcome

    def how_it_ended(self) -> str:
        """The end of a dead worker in words."""
        self.process.join(FAREWELL_S)
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit status {code}"

    def end(self) -> None:
        """Ends the process: at once if it is busy."""
        self.connection.close()  # an idle worker ends when it reads this
        self.process.join(FAREWELL_S if self.job is None else 0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


class WorkerProcesses:
    """`num_workers` local processes."""

    backend = "processes"

    def __init__(self, num_workers: int) -> None:
        """At least one worker."""
        self._num_workers = num_workers

    def finished(self, runs: Iterable[Run], started: Callable[[Run], None]) -> Generator[Finished, None, None]:
        """See `Executor`."""
        waiting = deque(_Job(run) for run in runs)
        workers = [_Worker() for _ in range(min(self._num_workers, len(waiting)))]
        try:
            while waiting or any(worker.job for worker in workers):
                for index, worker in enumerate(workers):
                    if worker.job is None and waiting:
                        job = replace(waiting.popleft(), started_at=datetime.now(UTC))
                        started(job.run)
                        if not worker.process.is_alive():  # it died idle: no run's fault
                            worker.end()
                            workers[index] = worker = _Worker()
                        worker.take(job)
                busy = {worker.connection: worker for worker in workers if worker.job is not None}
                for connection in wait(list(busy)):
                    worker = busy[connection]  # type: ignore[index]  # only connections were waited for
                    finished = _collect(worker, waiting, workers)
                    if finished is not None:
                        yield finished
        finally:
            for worker in workers:
                worker.end()


def _collect(worker: _Worker, waiting: deque[_Job], workers: list[_Worker]) -> Finished | None:
    """Takes a worker's answer. A dead worker is replaced, and its run waits again, before all others; None then."""
    job, outcome = worker.job, worker.answer()
    assert job is not None
    worker.job = None
    if outcome is not None:
        return Finished(job.run, outcome, job.attempts)
    ended = worker.how_it_ended()
    worker.end()
    workers[workers.index(worker)] = _Worker()
    if job.attempts <= MOST_RESUBMISSIONS:
        waiting.appendleft(replace(job, attempts=job.attempts + 1))
        return None
    reason = f"its worker process {ended}, {job.attempts} times in all"
    seconds = time.time() - job.started_at.timestamp()
    return Finished(job.run, failed_outcome(reason, job.started_at, seconds), job.attempts)


def _serve(connection: Connection) -> None:
    """A worker's life: runs come in, outcomes go out, until there are no more or the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole process group; the parent deals with it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            run: Run = connection.recv()
        except EOFError:
            return
        connection.send(do_run(run))


def _end_with_parent() -> None:
    """Ends this process, in the middle of a run too, when its parent is gone."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)
