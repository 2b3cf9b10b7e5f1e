"""Runs of a sweep as Ray tasks: one a run, a bounded number under way, outcomes taken as they come."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import ray

from poseidon.sweep.executor import MOST_RESUBMISSIONS, Finished
from poseidon.sweep.grid import Run
from poseidon.sweep.outcome import Outcome
from poseidon.sweep.run import do_run, failed_outcome
from ray_jobs.output import ray_on_standard_error

POLL_S = 1.0


@ray.remote(max_retries=0)
def _run(run: Run) -> Outcome:
    """A run; a dead worker is dealt with by the driver, which counts."""
    return do_run(run)


@dataclass(frozen=True)
class _Job:
    run: Run
    attempts: int
    started_at: datetime


class RayTasks:
    """The cluster that this process is connected to (`ray_jobs.ray_runs`)."""

    backend = "ray"

    def finished(self, runs: Iterable[Run], started: Callable[[Run], None]) -> Generator[Finished, None, None]:
        """See `poseidon.sweep.executor.Executor`; leaves the cluster at the end."""
        try:
            with ray_on_standard_error():
                yield from _fold(deque((run, 1) for run in runs), started)
        finally:
            ray.shutdown()


def _fold(waiting: deque[tuple[Run, int]], started: Callable[[Run], None]) -> Generator[Finished, None, None]:
    under_way: dict[Any, _Job] = {}
    try:
        while waiting or under_way:
            resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
            window = 2 * max(1, int(resources.get("CPU", 1)))  # asked every time: a cluster may grow
            while waiting and len(under_way) < window:
                run, attempts = waiting.popleft()
                started(run)
                under_way[_run.remote(run)] = _Job(run, attempts, datetime.now(UTC))
            ready, _ = ray.wait(list(under_way), timeout=POLL_S)
            for reference in ready:
                finished = _collect(reference, under_way.pop(reference), waiting)
                if finished is not None:
                    yield finished
    finally:
        for reference in under_way:
            ray.cancel(reference, force=True)


def _collect(reference: Any, job: _Job, waiting: deque[tuple[Run, int]]) -> Finished | None:
    """The outcome of a task; None after it was lost with its worker or node, and waits again."""
    try:
        outcome: Outcome = ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # an exception in the run itself: it would come again
        reason = f"{type(error.cause).__name__}: {error.cause}"
    except ray.exceptions.RayError as error:
        if job.attempts <= MOST_RESUBMISSIONS:
            waiting.appendleft((job.run, job.attempts + 1))
            return None
        reason = f"its Ray task was lost ({type(error).__name__}), {job.attempts} times in all"
    else:
        return Finished(job.run, outcome, job.attempts)
    seconds = time.time() - job.started_at.timestamp()
    return Finished(job.run, failed_outcome(reason, job.started_at, seconds), job.attempts)
