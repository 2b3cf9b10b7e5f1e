"""Ctrl-C ends a search with the best plan so far; the kernels let other threads run."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from dataclasses import replace

from poseidon.search._branch_and_bound import BranchAndBound
from poseidon.search._stage_graph import StageGraph
from poseidon.search._tables import CompletionTables
from poseidon.search.arrays import search_arrays
from poseidon.search.result import SolutionStatus, TerminationReason
from poseidon.search.solve import solve
from poseidon.search.thresholds import achievable, limits_under, spread
from poseidon.search.watch import Progress
from tests.search.checking import assert_feasible
from tests.search.example import EXAMPLE, HARD


def press_ctrl_c(progress: Progress) -> None:
    if math.isfinite(progress.best_ms) and progress.search_nodes:
        signal.raise_signal(signal.SIGINT)


def press_at_the_first_plan(progress: Progress) -> None:
    if math.isfinite(progress.best_ms):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_keeps_the_best_plan_and_its_gap() -> None:
    result = solve([HARD], report=press_ctrl_c)
    assert result.termination is TerminationReason.INTERRUPTED
    assert result.status is SolutionStatus.FEASIBLE
    assert result.best is not None
    assert 0 < result.gap < 0.2
    assert sum(stage.num_layers for stage in result.best.stages) == HARD.num_layers


def test_outer_choices_that_were_not_reached_keep_their_bounds() -> None:
    result = solve([HARD, EXAMPLE], report=press_at_the_first_plan)
    assert result.termination is TerminationReason.INTERRUPTED
    assert result.best is not None
    assert result.best.problem is EXAMPLE
    assert_feasible(result.best)
    assert 0 < result.lower_bound_ms <= result.best.iteration_time_ms


def test_ctrl_c_before_the_first_plan_leaves_it_open_whether_there_is_one() -> None:
    def press_at_once(progress: Progress) -> None:
        signal.raise_signal(signal.SIGINT)

    nowhere = replace(EXAMPLE, name="a: fits nowhere", inter_node_ms=((1.0, math.inf), (math.inf, 1.0)))
    result = solve([nowhere, HARD], report=press_at_once)
    assert (result.status, result.solutions) == (SolutionStatus.UNKNOWN, ())
    assert result.termination is TerminationReason.INTERRUPTED
    assert 0 < result.lower_bound_ms < math.inf


def test_the_search_kernel_lets_other_threads_run() -> None:
    arrays = search_arrays(HARD)
    graph = StageGraph(arrays)
    least = float(achievable(arrays, 0.0, math.inf)[0])
    thresholds = spread(least, achievable(arrays, least, math.inf), math.inf, 8)
    first = thresholds.first_allowed(arrays, math.inf)
    limits = limits_under(arrays, math.inf)
    tables = CompletionTables(graph, arrays, thresholds.low, thresholds.high, first, limits, 60_000_000)
    search = BranchAndBound(arrays, tables, math.inf, 1e-10)
    beats, stop = [0], threading.Event()

    def beat() -> None:
        while not stop.is_set():
            beats[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)  # no thread is made to give way: the heart beats only where the kernel lets it
    heart = threading.Thread(target=beat)
    try:
        heart.start()
        before = beats[0]
        search.run(2000)
        during = beats[0] - before
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        heart.join()
    assert search.num_search_nodes == 2000
    assert during > 10
