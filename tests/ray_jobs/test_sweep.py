"""A sweep on a real Ray cluster of this machine, started and ended by the command itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from tests import processes
from tests.processes import marked, ray_workers, wait_until

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 180
HUGE = {"model.num_layers": 64, "cluster.nodes.0.count": 4, "cluster.nodes.1.count": 4, "search.policy": "brute-force"}
"""No brute force ends here: a run takes its time limit."""
POINTS = [
    {"label": "first"},
    {"label": "refused", "set": {"training.global_batch_size": 0}},
    {"label": "larger", "set": {"training.global_batch_size": 32}},
    {"label": "slow", "set": HUGE | {"search.time_limit_s": 6}},
]
PLANS = ["axis.x", "status", "iteration_time_ms", "dp", "tp", "pp"]


@pytest.fixture
def ray_environment() -> Iterator[dict[str, str]]:
    """Keeps Ray on this machine and its files in a folder of their own (the path of a socket must be short)."""
    folder = tempfile.mkdtemp(prefix="ray")
    yield processes.ray_environment(folder)
    assert nothing_left_in(folder)
    processes.remove_folder(folder)


@pytest.fixture
def sweep_file(write_experiment: Callable[..., Path], tmp_path: Path) -> Path:
    write_experiment()
    return write_sweep(tmp_path / "small.yaml", POINTS)


def write_sweep(path: Path, points: list[dict[str, Any]]) -> Path:
    content = {"experiment": "example.yaml", "axes": {"x": {"points": points}}}
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def nothing_left_in(folder: str) -> bool:
    """Whether all processes of the Ray in `folder`, and those that use it, end."""
    return wait_until(lambda: not marked(f"RAY_TMPDIR={folder}"), TIMEOUT_S)


def worker_of_the_slow_run(folder: str, out: Path) -> int:
    """Waits until only the slow run, the last one, is left, and under way."""
    assert wait_until(lambda: len(list((out / "runs").glob("*.parquet"))) == 3, TIMEOUT_S)
    assert wait_until(lambda: ray_workers(folder, "_run"), TIMEOUT_S)
    [worker] = ray_workers(folder, "_run")
    return worker


def start(environment: dict[str, str], *arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "poseidon.cli", "sweep", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def rows(out: Path) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = pq.read_table(out / "runs.parquet").to_pylist()
    return table


@pytest.mark.ray
def test_a_killed_ray_worker_costs_nothing_but_its_run(
    ray_environment: dict[str, str], sweep_file: Path, tmp_path: Path
) -> None:
    quick = write_sweep(tmp_path / "quick.yaml", [point for point in POINTS if point["label"] != "slow"])
    here = start(ray_environment, quick, "--out", tmp_path / "here", "-q")
    here.communicate(timeout=TIMEOUT_S)
    assert here.returncode == 0

    folder = ray_environment["RAY_TMPDIR"]
    process = start(ray_environment, sweep_file, "--out", tmp_path / "ray", "--ray", "local")
    os.kill(worker_of_the_slow_run(folder, tmp_path / "ray"), signal.SIGKILL)
    printed, complaints = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, complaints
    assert printed.startswith("small: 4 runs (2 optimal, 1 refused, 1 feasible)\n")
    assert "A worker died" in complaints
    found = rows(tmp_path / "ray")
    assert {row["axis.x"]: row["attempts"] for row in found} == {"first": 1, "slow": 2, "refused": 1, "larger": 1}
    assert {row["backend"] for row in found} == {"ray"}
    proven = [{name: row[name] for name in PLANS} for row in found if row["axis.x"] != "slow"]
    assert proven == [{name: row[name] for name in PLANS} for row in rows(tmp_path / "here")]


@pytest.mark.ray
def test_ctrl_c_keeps_what_is_done_and_leaves_no_ray_process(
    ray_environment: dict[str, str], sweep_file: Path, tmp_path: Path
) -> None:
    process = start(ray_environment, sweep_file, "--out", tmp_path / "out", "--ray", "local")
    worker = worker_of_the_slow_run(ray_environment["RAY_TMPDIR"], tmp_path / "out")
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, complaints
    assert "interrupted: 3 of 4 runs are done and kept in " in complaints
    assert "Traceback" not in complaints
    assert nothing_left_in(ray_environment["RAY_TMPDIR"])
    assert wait_until(lambda: not Path(f"/proc/{worker}").exists(), TIMEOUT_S)


@pytest.mark.ray
def test_no_cluster_is_one_clear_line(ray_environment: dict[str, str], sweep_file: Path, tmp_path: Path) -> None:
    """Not with the address auto: that finds any Ray of this machine, also one that belongs to somebody else."""
    process = start(ray_environment, sweep_file, "--out", tmp_path / "out", "--ray", "127.0.0.1:1")
    _, complaints = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 2
    [line] = complaints.splitlines()
    assert line.startswith("command line: --ray 127.0.0.1:1: no Ray cluster answers at 127.0.0.1:1: ")
