"""The backend of `--ray`: every shard is a task, the driver owns them all, one actor holds the time to beat."""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from poseidon.search.backend import Listener
from poseidon.search.shard import Context, Event, Failure, Found, Outcome, Shard
from ray_jobs.incumbent_actor import NO_SEARCH, IncumbentActor, Rules
from ray_jobs.shard_task import run_shard

SLICE_S = 1.0
"""Seconds after which a shard comes back: far more than the few milliseconds that a task costs."""
SPARE = 2
"""Tasks that wait at the cluster, so that no worker has to."""
SIZE_EVERY_S = 5.0
"""Seconds between two looks at the size of the cluster, which may grow or shrink."""
NEWS_S = 30.0
END_S = 1.0
"""Seconds that everybody who waits for news has to be told that there will be none."""
MOST_WAITING = 10_000
"""Workers that may wait for news at the same time."""


class RayBackend:
    """Runs shards on the cluster that this process is connected to; see `Backend`."""

    name = "ray"
    slice_seconds = SLICE_S
    running_nodes = 0

    def __init__(self) -> None:
        """`connect` comes first."""
        self._size, self._size_at = 1, -SIZE_EVERY_S
        self._tasks: dict[Any, tuple[Shard, Any]] = {}
        self._tables: dict[int, Any] = {}
        self._checkpoint = Path(tempfile.gettempdir()) / f"poseidon-incumbent-{os.urandom(8).hex()}"
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        actor_class: Any = ray.remote(IncumbentActor).options(
            num_cpus=0,
            max_restarts=-1,
            max_task_retries=-1,
            max_concurrency=MOST_WAITING,
            scheduling_strategy=here,
            runtime_env={"env_vars": {"RAY_worker_niceness": "0"}},
        )
        self._actor: Any = actor_class.remote(str(self._checkpoint))
        self._search = ""
        self._news: Any = None
        self._epoch, self._known = "", 0
        self._hungry = False
        self._told: dict[int, Found] = {}

    @property
    def num_workers(self) -> int:
        """CPUs of the cluster."""
        if time.monotonic() - self._size_at >= SIZE_EVERY_S:
            resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
            self._size = max(1, int(resources.get("CPU", 1)))
            self._size_at = time.monotonic()
        return self._size

    @property
    def window(self) -> int:
        """See `Backend`."""
        return self.num_workers + SPARE

    def begin(self, context: Context, listener: Listener) -> None:
        """See `Backend`."""
        self.end()
        self._search = os.urandom(8).hex()
        self._context = ray.put(np.frombuffer(pickle.dumps(context), dtype=np.uint8))
        self._rules = Rules(
            search=self._search,
            names=tuple(problem.name for problem in context.problems),
            count=context.options.top,
            tie=context.options.tie,
            shares=context.options.shares_best,
        )
        self._actor.begin.remote(self._rules)
        self._ask()

    def _ask(self) -> None:
        self._news = self._actor.offers.remote(self._search, self._epoch, self._known, NEWS_S)

    def submit(self, shard: Shard) -> None:
        """See `Backend`."""
        task: Any = run_shard.options(name=str(shard.action))
        outcome, tables = task.remote(
            self._search, self._context, [self._actor], shard, self._tables.get(shard.problem)
        )
        self._tasks[outcome] = (shard, tables)

    def wait(self, seconds: float) -> list[Event]:
        """See `Backend`."""
        refs = [*self._tasks, self._news]
        ready, _ = ray.wait(refs, num_returns=1, timeout=max(seconds, 0.0))
        if ready:
            ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        events: list[Event] = []
        for ref in ready:
            if ref is self._news or ref == self._news:
                events += self._heard()
            else:
                events.append(self._back(ref))
        return events

    def _heard(self) -> list[Found]:
        """Plans that workers told the actor of; tells a new actor what the driver knows."""
        try:
            epoch, known, offers = ray.get(self._news)
        except ray.exceptions.RayError:
            time.sleep(0.1)  # being restarted
            self._ask()
            return []
        if self._epoch not in ("", epoch):
            self._actor.begin.remote(self._rules)
            for found in self._told.values():
                self._actor.offer.remote(self._search, found)
            self._actor.set_flags.remote(False, self._hungry)
        self._epoch, self._known = epoch, known
        self._told |= {found.problem: found for found in offers}
        self._ask()
        return list(offers)

    def _back(self, ref: Any) -> Outcome | Failure:
        """What a task brought; its tables stay where they are until somebody needs them."""
        shard, tables = self._tasks.pop(ref)
        try:
            outcome: Outcome | Failure = ray.get(ref)
        except ray.exceptions.RayError as error:
            self._tables.pop(shard.problem, None)  # they may have been lost with a node: others are built
            return Failure(shard.number, _reason(error), again=True)
        if isinstance(outcome, Outcome):
            if outcome.found is not None:
                self._told[outcome.found.problem] = outcome.found
            if outcome.table_values and shard.problem not in self._tables:
                self._tables[shard.problem] = tables
        return outcome

    def publish(self, cutoff_ms: float, rank: int, kept: Sequence[Found]) -> None:
        """The actor works the time to beat out by itself, from the plans: it is told those that it does not know."""
        for found in kept:
            if self._told.get(found.problem) != found:
                self._told[found.problem] = found
                self._actor.offer.remote(self._search, found)

    def set_hungry(self, hungry: bool) -> None:
        """See `Backend`."""
        if hungry != self._hungry:
            self._hungry = hungry
            self._actor.set_flags.remote(False, hungry)

    def stop(self) -> None:
        """See `Backend`."""
        self._actor.set_flags.remote(True, self._hungry)

    def forget(self, problem: int) -> None:
        """See `Backend`."""
        self._tables.pop(problem, None)

    def end(self) -> None:
        """See `Backend`."""
        for ref in self._tasks:
            ray.cancel(ref, force=True)
        self._tasks.clear()
        self._tables.clear()
        self._told.clear()
        if self._search:
            self._actor.begin.remote(NO_SEARCH)
        self._search, self._news = "", None
        self._epoch, self._known, self._hungry = "", 0, False

    def close(self) -> None:
        """See `Backend`; leaves the cluster."""
        with suppress(ray.exceptions.RayError):
            self.end()
            ray.get(self._actor.begin.remote(NO_SEARCH), timeout=END_S)
        ray.kill(self._actor)
        self._checkpoint.unlink(missing_ok=True)
        ray.shutdown()


def _reason(error: Exception) -> str:
    """One plain clause."""
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        return "its worker ran out of memory"
    if isinstance(error, ray.exceptions.WorkerCrashedError):
        return "its worker died"
    if isinstance(error, ray.exceptions.ObjectLostError):
        return "its tables were lost with a node"
    return f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
