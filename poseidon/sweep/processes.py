"""Runs in local worker processes, which may die without harm: a dead worker's run is begun anew in another one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from poseidon.search.process_pool import Death, Handler, Message, ProcessPool, Send
from poseidon.sweep.executor import MOST_RESUBMISSIONS, Finished
from poseidon.sweep.grid import Run
from poseidon.sweep.run import do_run, failed_outcome

POLL_S = 60.0


@dataclass(frozen=True)
class _Job:
    run: Run
    attempts: int = 1
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))


class WorkerProcesses:
    """`num_workers` local processes."""

    backend = "local"

    def __init__(self, num_workers: int) -> None:
        """At least one worker."""
        self._num_workers = num_workers

    def finished(self, runs: Iterable[Run], started: Callable[[Run], None]) -> Generator[Finished, None, None]:
        """See `Executor`."""
        waiting = deque(_Job(run) for run in runs)
        if not waiting:
            return
        pool: ProcessPool[_Job] = ProcessPool(min(self._num_workers, len(waiting)), _run_handler)
        try:
            while waiting or pool.busy:
                while waiting and pool.num_idle:
                    job = replace(waiting.popleft(), started_at=datetime.now(UTC))
                    started(job.run)
                    pool.give(job, job.run)
                for news in pool.wait(POLL_S):
                    finished = _collect(news, waiting)
                    if finished is not None:
                        yield finished
        finally:
            pool.close()


def _collect(news: Message[_Job] | Death[_Job], waiting: deque[_Job]) -> Finished | None:
    """A finished run; None where its worker died, and it waits again, before all others."""
    job = news.job
    if isinstance(news, Message):
        return Finished(job.run, news.content, job.attempts)
    if job.attempts <= MOST_RESUBMISSIONS:
        waiting.appendleft(replace(job, attempts=job.attempts + 1))
        return None
    reason = f"its worker process {news.how}, {job.attempts} times in all"
    seconds = time.time() - job.started_at.timestamp()
    return Finished(job.run, failed_outcome(reason, job.started_at, seconds), job.attempts)


def _run_handler(send: Send, index: int) -> Handler:
    """A run is its own answer."""
    return do_run
