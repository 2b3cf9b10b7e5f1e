"""Worker processes that are really killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable

from poseidon.sweep.executor import InProcess
from poseidon.sweep.grid import Run
from poseidon.sweep.outcome import RunStatus
from poseidon.sweep.processes import WorkerProcesses
from poseidon.sweep.row import row_of
from poseidon.sweep.sweep import Sweep

Build = Callable[..., tuple[Sweep, tuple[Run, ...]]]
EFFORT = {"attempts", "backend", "started_at", "run_s", "search_s", "load"}
"""Columns that are not the same twice."""


HUGE = {"model.num_layers": 64, "cluster.nodes.0.count": 4, "cluster.nodes.1.count": 4, "search.policy": "brute-force"}
"""No brute force ends here: a run takes its time limit."""


def workers() -> list[int]:
    return [child.pid for child in multiprocessing.active_children() if child.pid is not None]


def kill_all_workers() -> None:
    for pid in workers():
        os.kill(pid, signal.SIGKILL)


def plain(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name not in EFFORT}


def nothing(run: Run) -> None:
    pass


def test_workers_give_the_rows_of_this_process(sweep_of: Build) -> None:
    _, runs = sweep_of(axes={"training.global_batch_size": [16, 0, 32, 64]})
    here = {item.run.number: plain(row_of(item, "x")) for item in InProcess().finished(runs, nothing)}
    there = {item.run.number: plain(row_of(item, "x")) for item in WorkerProcesses(2).finished(runs, nothing)}
    assert there == here
    assert here[1]["status"] == "refused"
    assert workers() == []


def kill_soon(delay_s: float) -> threading.Thread:
    """Kills all workers after some time."""

    def kill() -> None:
        time.sleep(delay_s)
        kill_all_workers()

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def quick_slow_quick(sweep_of: Build) -> tuple[Run, ...]:
    slow = {"label": "slow", "set": HUGE | {"search.time_limit_s": 4}}
    points = [{"label": "first"}, slow, {"label": "last", "set": {"search.seed": 1}}]
    return sweep_of(axes={"x": {"points": points}})[1]


def test_the_run_of_a_killed_worker_is_begun_anew(sweep_of: Build) -> None:
    killers: list[threading.Thread] = []

    def started(run: Run) -> None:
        if run.name == "x=slow" and not killers:
            killers.append(kill_soon(0.5))

    finished = {item.run.name: item for item in WorkerProcesses(1).finished(quick_slow_quick(sweep_of), started)}
    assert {name: item.attempts for name, item in finished.items()} == {"x=first": 1, "x=slow": 2, "x=last": 1}
    assert finished["x=slow"].outcome.status is RunStatus.FEASIBLE
    assert finished["x=last"].outcome.status is RunStatus.OPTIMAL


def test_two_workers_killed_in_the_middle_of_a_search_cost_only_their_runs(sweep_of: Build) -> None:
    _, runs = sweep_of(axes={"search.seed": [0, 1]}, set=HUGE | {"search.time_limit_s": 4})
    killer = kill_soon(3.0)  # the processes have started and search
    finished = list(WorkerProcesses(2).finished(runs, nothing))
    killer.join()
    assert sorted((item.run.number, item.attempts) for item in finished) == [(0, 2), (1, 2)]
    assert {item.outcome.status for item in finished} == {RunStatus.FEASIBLE}


def test_a_run_whose_worker_always_dies_is_reported_by_name_and_the_rest_completes(sweep_of: Build) -> None:
    def started(run: Run) -> None:
        if run.name == "x=slow":
            kill_soon(0.5)

    finished = {item.run.name: item for item in WorkerProcesses(1).finished(quick_slow_quick(sweep_of), started)}
    failed = finished["x=slow"]
    assert failed.attempts == 4
    assert failed.outcome.status is RunStatus.ERROR
    assert failed.outcome.reason == "its worker process was killed by SIGKILL, 4 times in all"
    assert row_of(failed, "processes")["name"] == "x=slow"
    assert {finished[name].outcome.status for name in ("x=first", "x=last")} == {RunStatus.OPTIMAL}
    assert workers() == []


def test_a_worker_that_dies_idle_costs_no_run_an_attempt(sweep_of: Build) -> None:
    _, runs = sweep_of(axes={"training.global_batch_size": [16, 32, 64]})
    finished = []
    for item in WorkerProcesses(1).finished(runs, nothing):
        finished.append(item)
        kill_all_workers()
        time.sleep(0.2)
    assert [item.attempts for item in finished] == [1, 1, 1]


def test_no_worker_is_left_when_the_consumer_stops(sweep_of: Build) -> None:
    _, runs = sweep_of(axes={"training.global_batch_size": [16, 32, 64]})
    results = WorkerProcesses(2).finished(runs, nothing)
    next(results)
    assert workers()
    results.close()
    assert workers() == []
