"""Runs of a sweep as Ray tasks: one a run, a bounded number under way, outcomes taken as they come."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import ray

from poseidon.errors import PoseidonError
from poseidon.sweep.executor import MOST_RESUBMISSIONS, Finished
from poseidon.sweep.grid import Run
from poseidon.sweep.outcome import Outcome
from poseidon.sweep.run import do_run, failed_outcome

CONNECT_S = 5.0
"""How long a named cluster may take to answer at all."""
OBJECT_STORE_BYTES = 200 * 2**20
"""Of a cluster that is started here: experiments and outcomes are small."""
POLL_S = 1.0


class NoClusterError(PoseidonError):
    """There is no Ray cluster where one was asked for."""

    exit_code = 2


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
    """A Ray cluster: the one at `address`, the one that this job runs in, or one of this machine alone."""

    backend = "ray"

    def __init__(self, address: str | None = None) -> None:
        """`address`: host:port, "auto" (one that runs already) or None (RAY_ADDRESS, else one of our own)."""
        self._address = address or os.environ.get("RAY_ADDRESS") or "local"

    def finished(self, runs: Iterable[Run], started: Callable[[Run], None]) -> Generator[Finished, None, None]:
        """See `poseidon.sweep.executor.Executor`; raises NoClusterError when no cluster answers."""
        waiting = deque((run, 1) for run in runs)
        if not waiting:
            return
        with _connected(self._address):
            yield from _fold(waiting, started)


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


@contextmanager
def _connected(address: str) -> Iterator[None]:
    """A connection to a cluster, ended afterwards; a cluster that was started here ends with it."""
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"address": address, "logging_level": "ERROR", "log_to_driver": False}
    if address == "local":
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    _check_answers(address)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        ray.init(**options)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        hint = "ray start --head starts one, and --ray alone a private one" if address == "auto" else _first_line(error)
        raise NoClusterError(f"--ray {address}: no Ray cluster can be used: {hint}") from None
    try:
        for number, handler in handlers.items():  # ray.init replaces them, and its own end without a word from us
            signal.signal(number, handler)
        with redirect_stdout(sys.stderr):  # Ray prints to standard output that a worker died, whatever it is told
            yield
    finally:
        ray.shutdown()


def _check_answers(address: str) -> None:
    """Raises NoClusterError when nobody listens at host:port: Ray itself would wait for a minute."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), CONNECT_S).close()
    except OSError as error:
        raise NoClusterError(f"--ray {address}: no Ray cluster answers there: {error.strerror or error}") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
