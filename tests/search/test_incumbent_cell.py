"""The time to beat that processes share: read whole, ever falling, and heeded by kernels while they run."""

from __future__ import annotations

import math
import mmap
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from poseidon.search._branch_and_bound import BranchAndBound
from poseidon.search._incumbent_cell import NOBODY, SIZE, IncumbentCell
from poseidon.search._stage_graph import StageGraph
from poseidon.search._tables import CompletionTables
from poseidon.search.arrays import search_arrays
from poseidon.search.space import space_of
from poseidon.search.thresholds import achievable, limits_under, spread
from poseidon.search.tolerance import PRUNE, TIE
from tests.search.example import BEST_MS, EXAMPLE, HARD

ROOT = Path(__file__).parents[2]
FIRST_MS = 1e9
WRITER = f"""
import mmap, sys, time
from poseidon.search._incumbent_cell import IncumbentCell

with open(sys.argv[1], "r+b") as file:
    cell = IncumbentCell(memoryview(mmap.mmap(file.fileno(), 0)))
end, time_ms = time.monotonic() + 0.6, int({FIRST_MS})
while time.monotonic() < end:
    for _ in range(1000):
        time_ms -= 1
        cell.publish(time_ms, time_ms ^ 0x2A)
        cell.publish(time_ms + 7, 0)  # slower: changes nothing
cell.stop = True
"""


def fresh_cell() -> IncumbentCell:
    cell = IncumbentCell(bytearray(SIZE))
    cell.reset()
    return cell


def test_a_fresh_cell_holds_no_time() -> None:
    cell = fresh_cell()
    assert cell.read() == (math.inf, NOBODY)
    assert (cell.stop, cell.hungry) == (False, False)


def test_a_buffer_that_is_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="accepted: 32 or more"):
        IncumbentCell(bytearray(SIZE - 1))


def test_the_time_only_falls_and_the_first_of_equals_stays() -> None:
    cell = fresh_cell()
    for time_ms, rank, expected in ((9.0, 4, (9.0, 4)), (10.0, 1, (9.0, 4)), (9.0, 5, (9.0, 4)), (9.0, 2, (9.0, 2))):
        cell.publish(time_ms, rank)
        assert cell.read() == expected


def test_flags_do_not_touch_each_other_or_the_time() -> None:
    cell = fresh_cell()
    cell.publish(3.0, 1)
    cell.stop = cell.hungry = True
    cell.stop = False
    assert (cell.stop, cell.hungry, cell.read()) == (False, True, (3.0, 1))
    cell.reset()
    assert (cell.hungry, cell.read()) == (False, (math.inf, NOBODY))


def test_a_reader_never_sees_half_of_what_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "cell"
    path.write_bytes(bytes(SIZE))
    with path.open("r+b") as file:
        cell = IncumbentCell(memoryview(mmap.mmap(file.fileno(), 0)))
    cell.reset()
    seen_ms, changes = math.inf, 0
    with subprocess.Popen([sys.executable, "-c", WRITER, path], cwd=ROOT) as writer:
        while not cell.stop and writer.poll() is None:
            time_ms, rank = cell.read()
            assert time_ms <= seen_ms
            assert math.isinf(time_ms) or rank == int(time_ms) ^ 0x2A
            changes += time_ms < seen_ms
            seen_ms = time_ms
    assert writer.returncode == 0
    assert changes > 5  # as often as the two processes take turns


def search_of(problem, num_thresholds=1, best_ms=math.inf):
    arrays = search_arrays(problem)
    least = float(achievable(arrays, 0.0, math.inf)[0])
    thresholds = spread(least, achievable(arrays, least, math.inf), math.inf, num_thresholds)
    first = thresholds.first_allowed(arrays, math.inf)
    limits = limits_under(arrays, math.inf)
    graph = StageGraph(arrays)
    tables = CompletionTables(graph, arrays, thresholds.low, thresholds.high, first, limits, 60_000_000)
    return BranchAndBound(arrays, tables, best_ms, PRUNE)


def test_a_search_with_the_optimum_in_its_cell_explores_less() -> None:
    def nodes(best_ms: float) -> int:
        cell = fresh_cell()
        search = search_of(EXAMPLE)
        search.watch(cell, 0, 0.0)
        cell.publish(best_ms, 0)
        assert search.run(10**9)
        assert search.best_plan is None or search.best_ms < best_ms
        return search.num_search_nodes + search.num_simulations

    assert nodes(BEST_MS) < nodes(math.inf)


@pytest.mark.parametrize("is_enumeration", [False, True], ids=["exact", "paper"])
def test_a_kernel_that_runs_heeds_a_time_that_falls(is_enumeration: bool) -> None:
    cell = fresh_cell()
    if is_enumeration:
        search = space_of(HARD).search(True, True, math.inf)
        search.watch(cell)
    else:
        search = search_of(HARD, 8)
        search.watch(cell, 0, 0.0)
    ended = []

    def run() -> None:
        while not search.run(10**15):
            pass
        ended.append(time.perf_counter())

    kernel = threading.Thread(target=run, daemon=True)
    kernel.start()
    time.sleep(0.1)
    assert not ended
    published = time.perf_counter()
    cell.publish(1e-3, NOBODY)
    kernel.join(20)
    assert ended
    assert ended[0] - published < 5
    assert search.num_search_nodes > 1000


@pytest.mark.parametrize(("rank", "finds"), [(0, True), (1, False), (2, False)])
def test_a_tie_of_a_later_outer_choice_hides_none_of_an_earlier_one(rank: int, finds: bool) -> None:
    cell = fresh_cell()
    cell.publish(BEST_MS, 1)
    search = search_of(EXAMPLE)
    search.watch(cell, rank, TIE)
    search.run(10**9)
    assert search.improved is finds
    if finds:
        assert search.best_ms == BEST_MS
    else:
        assert search.bound_ms >= BEST_MS * (1 - PRUNE)


def test_without_slack_an_equal_time_is_none_to_look_for() -> None:
    cell = fresh_cell()
    cell.publish(BEST_MS, 1)
    search = search_of(EXAMPLE)
    search.watch(cell, 0, 0.0)
    search.run(10**9)
    assert not search.improved


def test_of_its_own_plan_a_better_time_of_others_makes_nothing() -> None:
    cell = fresh_cell()
    search = search_of(EXAMPLE)
    search.watch(cell, 0, TIE)
    search.run(10**9)
    assert search.best_plan is not None
    # After the end nothing is looked at any more: what was found stays.
    cell.publish(1.0, 1)
    search.run(1)
    assert np.array_equal(search.best_plan[0], [1, 0])
