"""The search on real worker processes: the same answer as in this one, whatever becomes of them."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from poseidon.cost import costs
from poseidon.cost.outer import recompute_modes
from poseidon.cost.problem import Problem
from poseidon.cost.problem_file import problem_from_json
from poseidon.inputs import load_experiment
from poseidon.profile import load_profile
from poseidon.search.local_workers import PREFIX, LocalWorkers
from poseidon.search.options import SearchOptions
from poseidon.search.result import SearchResult, SolutionStatus, TerminationReason
from poseidon.search.solve import solve
from poseidon.search.watch import Progress, Watch
from tests.judge import Draw
from tests.search.checking import same
from tests.search.example import BEST_MS, EXAMPLE, HARD, MEDIUM
from tests.search.poisoned import Faulty, Poisoned, spoilt

ROOT = Path(__file__).parents[2]
SHARED_MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())


@pytest.fixture(scope="module")
def workers() -> Iterator[LocalWorkers]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(ROOT)])  # workers unpack problems of tests.search.poisoned
        backend = LocalWorkers(2)
        yield backend
        backend.close()


def problems_of(setting: str) -> list[Problem]:
    """The outer choices of a setting of the paper."""
    experiment = load_experiment(ROOT / "configs" / "experiments" / f"{setting}.yaml")
    profile = load_profile(experiment, recompute=recompute_modes(experiment))
    return [problem for _, problem in costs(experiment, profile)]


def answer(result: SearchResult) -> tuple[object, ...]:
    return result.solutions, result.status, result.termination


def assert_same_answer(problems: list[Problem], options: SearchOptions, backend: LocalWorkers) -> None:
    expected, result = solve(problems, options), solve(problems, options, backend=backend)
    assert answer(result) == answer(expected)
    assert result.lower_bound_ms == same(expected.lower_bound_ms)
    assert result.counters.bound_alarms == 0
    if options.policy == "brute-force":
        assert result.counters.simulations == expected.counters.simulations


@pytest.mark.parametrize(
    "options",
    [
        SearchOptions(),
        SearchOptions(top=3, num_thresholds=1, warmup_samples=0),
        SearchOptions(policy="paper", warmup_samples=20),
        SearchOptions(policy="brute-force", top=2),
    ],
    ids=["exact", "exact top 3", "paper", "brute-force"],
)
def test_two_workers_answer_as_this_process_does(workers: LocalWorkers, options: SearchOptions) -> None:
    draw = Draw(options.top)
    for number in range(35):
        assert_same_answer(draw.problems(number), options, workers)


@pytest.mark.parametrize("name", ["setting1", "setting2", "setting3", "setting4", "setting5", "setting6-96"])
def test_the_papers_settings_have_the_same_plan(workers: LocalWorkers, name: str) -> None:
    problems = problems_of(name)
    expected, result = solve(problems), solve(problems, backend=workers)
    assert answer(result) == answer(expected)
    assert result.lower_bound_ms == expected.lower_bound_ms


def test_a_long_search_is_shared_out_and_has_the_same_answer(workers: LocalWorkers) -> None:
    options = SearchOptions(num_thresholds=1, warmup_samples=0, top=2)
    assert_same_answer([MEDIUM, replace(MEDIUM, name="again", num_micro_batches=11)], options, workers)


def test_workers_that_are_killed_at_work_are_replaced(workers: LocalWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watch.__init__, "__defaults__", (None, None, 0.0))
    options = SearchOptions(num_thresholds=1, warmup_samples=0)
    problems = [replace(MEDIUM, name=f"{index}", num_micro_batches=8 + index) for index in range(3)]
    expected, before, left = solve(problems, options), workers.process_ids, [*workers.process_ids]

    def kill(progress: Progress) -> None:
        if left and progress.search_nodes > 100:
            os.kill(left.pop(), signal.SIGKILL)

    result = solve(problems, options, kill, backend=workers)
    assert left == []
    assert answer(result) == answer(expected)
    assert result.warnings == ()
    solve([EXAMPLE], backend=workers)
    assert not set(before) & set(workers.process_ids)


def test_workers_that_are_killed_idle_are_replaced(workers: LocalWorkers) -> None:
    before = workers.process_ids
    for process_id in before:
        os.kill(process_id, signal.SIGKILL)
    result = solve([EXAMPLE, MEDIUM], SearchOptions(top=2), backend=workers)
    assert answer(result) == answer(solve([EXAMPLE, MEDIUM], SearchOptions(top=2)))
    assert not set(before) & set(workers.process_ids)


def spoilt_search(kind: type, workers: LocalWorkers, policy: str) -> tuple[SearchResult, float]:
    """One outer choice of three kills or fails its workers; the answer and the true optimum."""
    bad = spoilt(kind, replace(EXAMPLE, name="bad / one", num_micro_batches=1))
    problems = [bad, EXAMPLE, replace(EXAMPLE, name="slower", num_micro_batches=3)]
    best = solve(problems).best
    assert best is not None
    options = SearchOptions(policy=policy, warmup_samples=0)
    return solve(problems, options, backend=workers), best.iteration_time_ms


def kept_problem(result: SearchResult) -> Problem:
    """The problem in the file that the warning names, which goes."""
    found = re.search(r"poseidon solve (\S+)`", result.warnings[0])
    assert found is not None
    path = Path(found[1])
    problem = problem_from_json(json.loads(path.read_text()), str(path))
    path.unlink()
    return problem


def test_a_shard_that_kills_its_workers_is_named_and_the_rest_completes(workers: LocalWorkers) -> None:
    result, optimum = spoilt_search(Poisoned, workers, "exact")
    assert result.termination is TerminationReason.FAILED
    assert result.best is not None
    assert (result.best.problem.name, result.best.iteration_time_ms) == ("example", BEST_MS)
    assert 0 < result.lower_bound_ms <= optimum < BEST_MS
    assert result.status is SolutionStatus.FEASIBLE
    assert len(result.warnings) == 1
    assert result.warnings[0].startswith("part of bad / one was not searched: its worker was killed by SIGKILL 6 times")
    assert kept_problem(result).num_micro_batches == 1


@pytest.mark.parametrize("policy", ["exact", "paper", "brute-force"])
def test_a_shard_that_raises_an_error_is_named_and_not_tried_again(workers: LocalWorkers, policy: str) -> None:
    before = workers.process_ids
    result, optimum = spoilt_search(Faulty, workers, policy)
    assert result.termination is TerminationReason.FAILED
    assert result.best is not None
    assert result.best.iteration_time_ms == BEST_MS
    assert 0 < result.lower_bound_ms <= optimum * (1 + 1e-9)
    assert "not searched: ArithmeticError: no such schedule here; its bound" in result.warnings[0]
    assert kept_problem(result).name == "bad / one"
    assert workers.process_ids == before


def test_a_time_limit_keeps_the_best_plan(workers: LocalWorkers) -> None:
    result = solve([HARD, EXAMPLE], SearchOptions(time_limit_s=1.5, top=2), backend=workers)
    assert result.termination is TerminationReason.TIME_LIMIT
    assert [one.name for one in result.solutions] == ["example", "hard"]
    assert result.seconds < 8
    assert 0 < result.lower_bound_ms <= BEST_MS
    assert solve([EXAMPLE], backend=workers).lower_bound_ms == same(BEST_MS)


def test_ctrl_c_keeps_the_best_plan(workers: LocalWorkers) -> None:
    def press(progress: Progress) -> None:
        if math.isfinite(progress.best_ms) and progress.search_nodes:
            signal.raise_signal(signal.SIGINT)

    result = solve([HARD], report=press, backend=workers)
    assert result.termination is TerminationReason.INTERRUPTED
    assert result.best is not None
    assert 0 < result.gap < 0.3
    assert solve([EXAMPLE], backend=workers).termination is TerminationReason.COMPLETE


DRIVER = """
import sys
from poseidon.search.local_workers import LocalWorkers
from poseidon.search.solve import solve
from tests.search.example import HARD

def report(progress):
    if progress.search_nodes:
        print(*backend.process_ids, flush=True)

if __name__ == "__main__":
    backend = LocalWorkers(2)
    solve([HARD], report=report, backend=backend)
"""


def test_workers_go_with_a_driver_that_is_killed_and_the_next_one_clears_up(tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as driver:
        assert driver.stdout is not None
        processes = [int(number) for number in driver.stdout.readline().split()]
        [folder] = SHARED_MEMORY.glob(f"{PREFIX}{driver.pid}-*")
        driver.kill()
    assert len(processes) == 2
    assert gone_within(10.0, processes)
    LocalWorkers(1).close()  # or that of another test, which runs at the same time
    assert not folder.exists()


def gone_within(seconds: float, processes: list[int]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(is_running(process) for process in processes):
            return True
        time.sleep(0.05)
    return False


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_backend_that_is_closed_leaves_nothing() -> None:
    backend = LocalWorkers(1)
    processes = backend.process_ids
    solve([EXAMPLE], backend=backend)
    backend.close()
    backend.close()
    assert not any(map(is_running, processes))
    assert not list(SHARED_MEMORY.glob(f"{PREFIX}{os.getpid()}-*/{1}"))
