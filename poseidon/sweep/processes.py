"""Runs in local worker processes, which may die without harm: a dead worker's run is begun anew in another one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable

from poseidon.search.process_pool import Death, Handler, Message, ProcessPool, Send
from poseidon.sweep.attempt import Attempt
from poseidon.sweep.executor import Finished
from poseidon.sweep.grid import Run
from poseidon.sweep.run import do_run

POLL_S = 60.0


class WorkerProcesses:
    """`num_workers` local processes."""

    backend = "local"

    def __init__(self, num_workers: int) -> None:
        """At least one worker."""
        self._num_workers = num_workers

    def finished(self, runs: Iterable[Run], started: Callable[[Run], None]) -> Generator[Finished, None, None]:
        """See `Executor`."""
        waiting = deque(Attempt(run) for run in runs)
        if not waiting:
            return
        pool: ProcessPool[Attempt] = ProcessPool(min(self._num_workers, len(waiting)), _run_handler)
        try:
            while waiting or pool.busy:
                while waiting and pool.num_idle:
                    attempt = waiting.popleft().begun()
                    started(attempt.run)
                    pool.give(attempt, attempt.run)
                for news in pool.wait(POLL_S):
                    finished = _collect(news, waiting)
                    if finished is not None:
                        yield finished
        finally:
            pool.close()


def _collect(news: Message[Attempt] | Death[Attempt], waiting: deque[Attempt]) -> Finished | None:
    """A finished run; None where its worker died, and it waits again."""
    if isinstance(news, Message):
        return news.job.finished(news.content)
    return news.job.lost(f"its worker process {news.how}", waiting)


def _run_handler(send: Send, index: int) -> Handler:
    """A run is its own answer."""
    return do_run
