"""Workers and the actor are killed: the answer is the same, nothing is done twice, nothing is lost."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from poseidon.cost.problem_file import problem_from_json
from poseidon.search.options import SearchOptions
from poseidon.search.result import SearchResult, SolutionStatus, TerminationReason
from poseidon.search.shard import Action, Context, Event, Failure, Found, Outcome, Shard
from poseidon.search.solve import solve
from poseidon.search.watch import Progress
from tests.processes import kill, ray_workers, wait_until
from tests.ray_jobs import poison
from tests.ray_jobs.searches import UNPRUNED, effort, essence, long_answer, long_problem
from tests.search.example import BEST, BEST_MS, EXAMPLE

if TYPE_CHECKING:
    from ray_jobs.backend import RayBackend

pytestmark = pytest.mark.ray


class Blows:
    """Kills one process when a search has come so far, then another: each a different one."""

    def __init__(self, *find: Callable[[], list[int]]) -> None:
        self.killed: list[int] = []
        self._find = list(find)

    def __call__(self, progress: Progress) -> None:
        if not self._find or not math.isfinite(progress.best_ms):
            return
        new = [pid for pid in self._find[0]() if pid not in self.killed]
        if new and kill(new[0]):
            self.killed.append(new[0])
            del self._find[0]


def assert_undisturbed(result: SearchResult) -> None:
    assert essence(result) == essence(long_answer())
    assert effort(result)[0] == long_answer().counters.simulations


def actor_id(backend: RayBackend) -> int:
    import ray

    process_id: int = ray.get(backend._actor.process_id.remote(), timeout=60)
    return process_id


def test_killed_workers_cost_nothing_but_their_shards(backend: RayBackend, ray_folder: str) -> None:
    def find() -> list[int]:
        return ray_workers(ray_folder, "search")

    blows = Blows(find, find, find)
    assert_undisturbed(solve([long_problem()], UNPRUNED, blows, backend=backend))
    assert len(blows.killed) == 3


def test_a_killed_actor_comes_back_with_what_it_knew(backend: RayBackend, ray_folder: str) -> None:
    before = actor_id(backend)
    blows = Blows(lambda: [before])
    assert_undisturbed(solve([long_problem()], UNPRUNED, blows, backend=backend))
    assert blows.killed == [before]
    assert actor_id(backend) != before


def test_worker_and_actor_killed_one_after_the_other(backend: RayBackend, ray_folder: str) -> None:
    before = actor_id(backend)
    blows = Blows(
        lambda: ray_workers(ray_folder, "search"), lambda: [before], lambda: ray_workers(ray_folder, "search")
    )
    assert_undisturbed(solve([long_problem()], UNPRUNED, blows, backend=backend))
    assert len(blows.killed) == 3


def checkpointed(backend: RayBackend) -> list[Any]:
    """Asks an actor for its plans that was killed just now."""
    import ray

    kill(actor_id(backend))
    _, _, offers = ray.get(backend._actor.offers.remote(backend._search, "", 0, 0.0), timeout=60)
    found: list[Any] = offers
    return found


def test_the_checkpoint_alone_brings_the_plan_back(backend: RayBackend) -> None:
    """Asked in the middle of a search, before anybody can have told the new actor."""
    seen: list[tuple[float, float]] = []

    def ask(progress: Progress) -> None:
        if not seen and progress.best_ms == long_answer().solutions[0].iteration_time_ms:
            [found] = checkpointed(backend)
            seen.append((found.iteration_time_ms, progress.best_ms))

    assert_undisturbed(solve([long_problem()], UNPRUNED, ask, backend=backend))
    [(kept_ms, best_ms)] = seen
    assert kept_ms == best_ms


def test_an_actor_without_a_checkpoint_is_taught_again(backend: RayBackend) -> None:
    import ray

    epochs: list[str] = []

    def kill_and_forget(progress: Progress) -> None:
        if not epochs and progress.best_ms == long_answer().solutions[0].iteration_time_ms:
            epochs.append(backend._epoch)
            pid = actor_id(backend)
            backend._checkpoint.unlink()
            kill(pid)
        elif epochs and backend._epoch != epochs[-1]:
            epochs.append(backend._epoch)
            question = backend._actor.news.remote(backend._search, "", 0, 0.0)
            assert ray.get(question, timeout=60).cutoff_ms == progress.best_ms

    assert_undisturbed(solve([long_problem()], UNPRUNED, kill_and_forget, backend=backend))
    assert len(epochs) == 2


def nothing() -> None:
    time.sleep(3600)


@pytest.mark.parametrize("dies", [True, False])
def test_a_plan_that_only_the_actor_knows_comes_before_the_last_shard(cluster: str, dies: bool) -> None:
    """The trap: all others stop looking for a plan as fast as that of a worker that told the actor of it and died.

    The driver hears nothing of the actor on its own here, so that it can't have known the plan before.
    """
    import ray

    from ray_jobs.backend import RayBackend

    class Deaf(RayBackend):
        def _ask(self) -> None:
            self._news = silence

    silence = ray.remote(num_cpus=0)(nothing).remote()
    backend = Deaf(leaves_cluster=False)
    try:
        problem = poison.poisoned(EXAMPLE) if dies else EXAMPLE
        backend.begin(Context((problem,), SearchOptions(policy="paper")), None)  # type: ignore[arg-type]
        plan = Found(0, BEST, BEST_MS)
        ray.get(backend._actor.offer.remote(backend._search, plan))
        backend.submit(Shard(0, 0, Action.SEARCH, 0.0))
        events: list[Event] = []
        assert wait_until(lambda: events.extend(backend.wait(0.1)) or events)  # type: ignore[func-returns-value]
        assert len(events) == 2, events
        first, last = events
        assert first == plan
        assert isinstance(last, Failure if dies else Outcome)
    finally:
        backend.close()
        ray.cancel(silence, force=True)


def test_a_poisoned_outer_choice_is_named_and_kept_and_the_rest_is_done(
    backend: RayBackend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(poison, "driver", os.getpid())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    bad = poison.poisoned(replace(EXAMPLE, name="bad one"))
    slower = replace(EXAMPLE, name="good one", num_micro_batches=4)
    result = solve([bad, slower], SearchOptions(top=2), backend=backend)
    alone = solve([slower])
    assert [solution.problem.name for solution in result.solutions] == ["good one"]
    assert result.best is not None
    assert alone.best is not None
    assert result.best.iteration_time_ms == alone.best.iteration_time_ms
    assert (result.status, result.termination) == (SolutionStatus.FEASIBLE, TerminationReason.FAILED)
    optimum = solve([EXAMPLE]).best
    assert optimum is not None
    assert 0 < result.lower_bound_ms <= optimum.iteration_time_ms
    [warning] = result.warnings
    assert "part of bad one was not searched: its worker died" in warning
    [kept] = tmp_path.glob("poseidon-failed-*.jsonl")
    assert f"`poseidon solve {kept}`" in warning
    assert problem_from_json(json.loads(kept.read_text()), "kept") == replace(EXAMPLE, name="bad one")
