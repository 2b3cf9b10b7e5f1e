"""The backend of `--ray`: every shard is a task, the driver owns them all, one actor holds the time to beat."""

from __future__ import annotations

import itertools
import math
import pickle
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from poseidon.errors import InputError, Mistake
from poseidon.search.backend import Listener
from poseidon.search.shard import Context, Event, Failure, Found, Outcome, Shard
from ray_jobs.checkpoint import new_checkpoint, remove_checkpoint
from ray_jobs.connect import cluster_cpus, disconnect
from ray_jobs.incumbent_actor import IncumbentActor, Rules
from ray_jobs.output import ray_on_standard_error
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
CATCH_UP_S = 20.0
"""Seconds in which the actor must say what it knows: one that died is back after a few."""
MOST_WAITING = 10_000
"""Workers that may wait for news at the same time."""
_numbers = itertools.count(1)
"""Of the searches of this process: worker processes may outlive a backend."""


class RayBackend:
    """Runs shards on the cluster that this process is connected to; see `Backend`."""

    name = "ray"
    slice_seconds = SLICE_S
    running_nodes = 0

    def __init__(self, *, leaves_cluster: bool) -> None:
        """`connect` comes first; `leaves_cluster`: closing the backend ends the connection."""
        self._leaves_cluster = leaves_cluster
        self._output = ExitStack()
        self._output.enter_context(ray_on_standard_error())
        self._size, self._size_at = 1, -math.inf
        self._tasks: dict[Any, tuple[Shard, Any]] = {}
        self._tables: dict[int, Any] = {}
        self._events: list[Event] = []
        self._checkpoint = new_checkpoint()
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
        self._search = 0
        self._context: Any = None
        self._news: Any = None
        self._epoch, self._known = "", 0
        self._hungry = self._is_stopping = False
        self._told: dict[int, Found] = {}

    @property
    def num_workers(self) -> int:
        """CPUs of the cluster."""
        if time.monotonic() - self._size_at >= SIZE_EVERY_S:
            self._size = cluster_cpus()
            self._size_at = time.monotonic()
        return self._size

    @property
    def window(self) -> int:
        """See `Backend`."""
        return self.num_workers + SPARE

    def begin(self, context: Context, listener: Listener) -> None:
        """See `Backend`."""
        self.end()
        self._search = next(_numbers)
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
        """See `Backend`; what was taken when Ctrl-C came is there at the next call."""
        refs = [*self._tasks, self._news]
        ready, _ = ray.wait(refs, num_returns=1, timeout=max(seconds, 0.0))
        if ready:
            ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        for ref in ready:
            if ref == self._news:
                self._hear()
            else:
                self._take_back(ref)
        if self._events and (not self._tasks or any(isinstance(event, Failure) for event in self._events)):
            self._catch_up()
        events, self._events = self._events, []
        return events

    def _hear(self) -> None:
        """Takes plans that workers told the actor of."""
        try:
            self._learn(*ray.get(self._news))
        except ray.exceptions.RayError:
            time.sleep(0.1)  # being restarted
        self._ask()

    def _catch_up(self) -> None:
        """Asks the actor what it knows before the driver acts on what came back.

        A worker that told the actor of a plan and died leaves it there alone: the others do not look for it any more.
        """
        question = self._actor.offers.remote(self._search, self._epoch, self._known, 0.0)
        with suppress(ray.exceptions.RayError):
            self._learn(*ray.get(question, timeout=END_S if self._is_stopping else CATCH_UP_S))

    def _learn(self, epoch: str, known: int, offers: list[Found]) -> None:
        """Keeps plans for the driver, before all outcomes; tells a new actor what the driver knows."""
        if self._epoch not in ("", epoch):
            self._actor.begin.remote(self._rules)
            for found in self._told.values():
                self._actor.offer.remote(self._search, found)
            self._actor.set_flags.remote(self._search, self._is_stopping, self._hungry)
        self._events[:0] = offers
        self._epoch, self._known = epoch, known
        self._told |= {found.problem: found for found in offers}

    def _take_back(self, ref: Any) -> None:
        """What a task brought; its tables stay where they are until somebody needs them."""
        shard, tables = self._tasks[ref]
        try:
            event: Outcome | Failure = ray.get(ref)
        except ray.exceptions.RayError as error:
            self._tables.pop(shard.problem, None)  # they may have been lost with a node: others are built
            event = Failure(shard.number, _reason(error), again=True)
        if isinstance(event, Outcome):
            if event.found is not None:
                self._told[event.found.problem] = event.found
            if event.table_values and shard.problem not in self._tables:
                self._tables[shard.problem] = tables
        self._events.append(event)
        del self._tasks[ref]

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
            self._actor.set_flags.remote(self._search, self._is_stopping, hungry)

    def stop(self) -> None:
        """See `Backend`."""
        self._is_stopping = True
        self._actor.set_flags.remote(self._search, True, self._hungry)

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
        self._events.clear()
        if self._search:
            self._actor.end.remote(self._search)
        self._search, self._news, self._context = 0, None, None
        self._epoch, self._known = "", 0
        self._hungry = self._is_stopping = False

    def close(self) -> None:
        """See `Backend`; leaves the cluster."""
        last = self._search
        with suppress(ray.exceptions.RayError):
            self.end()
            ray.get(self._actor.end.remote(last), timeout=END_S)
        with suppress(ray.exceptions.RayError):
            ray.kill(self._actor)
        remove_checkpoint(self._checkpoint)
        if self._leaves_cluster:
            disconnect()
        self._output.close()


def _reason(error: Exception) -> str:
    """One plain clause; InputError where the nodes of the cluster lack this package."""
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        return "its worker ran out of memory"
    if isinstance(error, ray.exceptions.WorkerCrashedError):
        return "its worker died"
    if isinstance(error, ray.exceptions.ObjectLostError):
        return "its tables were lost with a node"
    lines = str(error).strip().splitlines() or [""]
    if lines[-1].startswith(("ModuleNotFoundError: ", "ImportError: ")):
        reason = f"a node of the cluster can't load what this process has: {lines[-1]} (see ray_jobs/README.md)"
        raise InputError(Mistake("command line", "--ray", reason))
    return f"{type(error).__name__}: {lines[0][:120]}"
