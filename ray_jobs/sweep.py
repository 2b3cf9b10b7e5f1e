"""Runs of a sweep as Ray tasks: one a run, a bounded number under way, outcomes taken as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import Any

import ray

from poseidon.sweep.attempt import Attempt
from poseidon.sweep.executor import Finished
from poseidon.sweep.grid import Run
from poseidon.sweep.outcome import Outcome
from poseidon.sweep.run import do_run
from ray_jobs.connect import cluster_cpus, disconnect
from ray_jobs.output import ray_on_standard_error

POLL_S = 1.0


@ray.remote(max_retries=0)
def _run(run: Run) -> Outcome:
    """A run; a dead worker is dealt with by the driver, which counts."""
    return do_run(run)


class RayTasks:
    """The cluster that this process is connected to (`ray_jobs.ray_runs`)."""

    backend = "ray"

    def finished(self, runs: Iterable[Run], started: Callable[[Run], None]) -> Generator[Finished, None, None]:
        """See `poseidon.sweep.executor.Executor`; leaves the cluster at the end."""
        try:
            with ray_on_standard_error():
                yield from _fold(deque(Attempt(run) for run in runs), started)
        finally:
            disconnect()


def _fold(waiting: deque[Attempt], started: Callable[[Run], None]) -> Generator[Finished, None, None]:
    under_way: dict[Any, Attempt] = {}
    try:
        while waiting or under_way:
            window = 2 * cluster_cpus()  # asked every time: a cluster may grow
            while waiting and len(under_way) < window:
                attempt = waiting.popleft().begun()
                started(attempt.run)
                under_way[_run.remote(attempt.run)] = attempt
            ready, _ = ray.wait(list(under_way), timeout=POLL_S)
            for reference in ready:
                finished = _collect(reference, under_way.pop(reference), waiting)
                if finished is not None:
                    yield finished
    finally:
        for reference in under_way:
            ray.cancel(reference, force=True)


def _collect(reference: Any, attempt: Attempt, waiting: deque[Attempt]) -> Finished | None:
    """The outcome of a task; None after it was lost with its worker or node, and waits again."""
    try:
        outcome: Outcome = ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # an exception in the run itself: it would come again
        return attempt.failed(f"{type(error.cause).__name__}: {error.cause}")
    except ray.exceptions.RayError as error:
        return attempt.lost(f"its Ray task was lost ({type(error).__name__})", waiting)
    return attempt.finished(outcome)
