"""A sweep that is killed or interrupted, in a real process, and goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

SIZES = [16, 32, 48, 64, 80, 96, 112, 128]
TIMEOUT_S = 120
Start = Callable[..., "subprocess.Popen[str]"]


def row_files(out: Path) -> dict[str, int]:
    """Finished runs, with the time at which their file was written."""
    return {path.name: path.stat().st_mtime_ns for path in (out / "runs").glob("*.parquet")}


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + TIMEOUT_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)


def children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found.append(int(path.parent.name))
    return found


def end(process: subprocess.Popen[str]) -> str:
    """What a command wrote to standard error, when it has ended well."""
    _, complaints = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, complaints
    return complaints


def plans(out: Path) -> list[tuple[Any, ...]]:
    names = ["axis.training.global_batch_size", "run", "run_id", "status", "iteration_time_ms", "dp", "tp", "pp"]
    table = pq.read_table(out / "runs.parquet", columns=names)
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.fixture
def slow_sweep(write_sweep: Callable[..., Path]) -> Path:
    """Runs long enough (some tenths of a second each) for a kill to come between."""
    wide = {"model.num_layers": 48, "search.tp": "per-stage", "search.assignment": "stage", "cluster.nodes.0.count": 2}
    return write_sweep(axes={"training.global_batch_size": SIZES}, set=wide)


@pytest.fixture(scope="module")
def undisturbed() -> list[tuple[Any, ...]]:
    """Empty before the first test that asks for `reference`: every test writes the same sweep."""
    return []


@pytest.fixture
def reference(
    slow_sweep: Path, start: Start, tmp_path: Path, undisturbed: list[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """What the sweep gives when nobody kills it."""
    if not undisturbed:
        end(start("sweep", slow_sweep, "--out", tmp_path / "reference", "-q"))
        undisturbed += plans(tmp_path / "reference")
    return undisturbed


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["in-process", "workers"])
def test_a_killed_sweep_goes_on_and_no_run_is_lost_or_repeated(
    slow_sweep: Path, reference: list[tuple[Any, ...]], start: Start, tmp_path: Path, workers: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    killed = start("sweep", slow_sweep, "--out", out, "-q", *workers)
    wait_for(lambda: len(row_files(out)) >= 3, killed)
    helpers = children(killed.pid)
    killed.kill()
    killed.communicate(timeout=TIMEOUT_S)
    assert killed.returncode == -signal.SIGKILL
    assert not (out / "runs.parquet").exists()
    deadline = time.monotonic() + TIMEOUT_S
    while any(Path(f"/proc/{pid}").exists() for pid in helpers):  # they end by themselves
        assert time.monotonic() < deadline
        time.sleep(0.05)
    before = row_files(out)
    assert 3 <= len(before) < len(SIZES)

    complaints = end(start("sweep", slow_sweep, "--out", out, *workers))
    assert f"{len(before)} runs of {len(SIZES)} done before" in complaints
    after = row_files(out)
    assert len(after) == len(SIZES)
    assert {name: after[name] for name in before} == before
    assert plans(out) == reference


def test_a_sweep_that_is_killed_at_random_moments_comes_to_the_same_end(
    slow_sweep: Path, reference: list[tuple[Any, ...]], start: Start, tmp_path: Path
) -> None:
    out, moments = tmp_path / "out", random.Random(4)
    seen: dict[str, int] = {}
    for _ in range(6):
        process = start("sweep", slow_sweep, "--out", out, "-q")
        try:
            process.wait(timeout=moments.uniform(0.8, 3.0))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate(timeout=TIMEOUT_S)
        files = row_files(out) if out.exists() else {}
        assert {name: files[name] for name in seen} == seen
        seen = files
    end(start("sweep", slow_sweep, "--out", out, "-q"))
    assert plans(out) == reference
    assert [path.name for path in (out / "runs").iterdir() if path.suffix != ".parquet"] == []


@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["in-process", "workers"])
def test_ctrl_c_keeps_finished_runs_and_says_how_to_go_on(
    slow_sweep: Path, start: Start, tmp_path: Path, workers: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    process = start("sweep", slow_sweep, "--out", out, *workers)
    wait_for(lambda: len(row_files(out)) >= 2, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers, too
    printed, complaints = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, complaints
    assert "Traceback" not in complaints
    done = len(row_files(out))
    last = complaints.splitlines()[-1]
    assert last == f"interrupted: {done} of 8 runs are done and kept in {out}; the same command goes on from there"
    assert printed == ""
    assert f"{done} runs of 8 done before" in end(start("sweep", slow_sweep, "--out", out, *workers))
