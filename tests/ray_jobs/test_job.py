"""`ray job submit` end to end, on a head with dashboard and job server that the test starts."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import kill, kill_all, ray_environment, ray_processes, ray_workers, remove_folder, wait_until
from tests.ray_jobs.head import Head, head, wait_for_job
from tests.ray_jobs.searches import EXPERIMENTS

pytestmark = pytest.mark.ray
_INSTALLED = Path(sys.executable).with_name("poseidon-search")
SEARCH = str(_INSTALLED) if _INSTALLED.exists() else f"{sys.executable} -m poseidon.cli search"
STOP_WAIT_S = "30"
"""Ray's own 3 s between a request to stop and the kill are too few on a machine with much else to do."""


@pytest.fixture(scope="module")
def head_folder() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")
    yield folder
    kill_all(lambda: ray_processes(folder))
    remove_folder(folder)


@pytest.fixture(scope="module")
def started(head_folder: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    environment = ray_environment(head_folder) | {"RAY_JOB_STOP_WAIT_TIME_S": STOP_WAIT_S}
    with head(environment, tmp_path_factory.mktemp("head")) as started:
        yield started


def submit(head: Head, *arguments: str | Path) -> str:
    job: str = head.jobs.submit_job(entrypoint=" ".join((SEARCH, *map(str, arguments))))
    return job


def test_a_job_writes_its_plan_and_plain_lines(started: Head, tmp_path: Path) -> None:
    experiment = EXPERIMENTS / "setting1.yaml"
    options = ("--policy", "brute-force", "--fixed-dp", "2", "--fixed-tp", "1")
    job = submit(started, experiment, *options, "--out", tmp_path / "out")
    assert wait_for_job(started, job) == "SUCCEEDED", started.jobs.get_job_logs(job)
    assert started.jobs.get_job_info(job).driver_exit_code == 0
    log = started.jobs.get_job_logs(job)
    assert "\x1b" not in log
    assert "\r" not in log
    assert "proven optimal" in log
    assert [line for line in log.splitlines() if line.startswith("[") and "search nodes" in line]
    assert f"Plan: {tmp_path / 'out' / 'plan.json'}" in log
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert (plan["status"], plan["search"]["backend"], plan["search"]["workers"]) == ("optimal", "ray", 2)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["plan.json"]


def test_a_stopped_job_leaves_the_best_plan_and_its_journal(started: Head, tmp_path: Path) -> None:
    job = submit(started, EXPERIMENTS / "setting1.yaml", "--policy", "brute-force", "--out", tmp_path)
    assert wait_until(lambda: (tmp_path / "search.journal").exists(), 120), started.jobs.get_job_logs(job)
    assert wait_until(lambda: b'"found"' in (tmp_path / "search.journal").read_bytes())
    before = time.monotonic()
    started.jobs.stop_job(job)
    assert wait_for_job(started, job) == "STOPPED"
    print(f"a stopped job was over after {time.monotonic() - before:.1f} s")
    assert wait_until(lambda: (tmp_path / "plan.json").exists(), 30), started.jobs.get_job_logs(job)
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert (plan["status"], plan["search"]["termination"]) == ("feasible", "interrupted")
    assert 0 < plan["gap"] < 1
    assert (tmp_path / "search.journal").stat().st_size > 0


def test_no_plan_fits_is_the_exit_status_of_the_job(started: Head) -> None:
    job = submit(started, EXPERIMENTS / "setting1.yaml", "--max-memory-fraction", "0.01")
    assert wait_for_job(started, job) == "FAILED"
    assert started.jobs.get_job_info(job).driver_exit_code == 3, started.jobs.get_job_logs(job)


def test_the_answer_stays_pure_json_when_workers_die(started: Head, head_folder: str, tmp_path: Path) -> None:
    options = ["--policy", "brute-force", "--fixed-dp", "2", "--fixed-tp", "1", "--json", "--ray", started.address]
    line = [sys.executable, "-m", "poseidon.cli", "search", str(EXPERIMENTS / "setting1.yaml"), *options]
    process = subprocess.Popen(
        line, env=ray_environment(head_folder), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    killed = 0
    while killed < 2 and process.poll() is None:
        if wait_until(lambda: ray_workers(head_folder, "search") or process.poll() is not None):
            killed += any(kill(pid) for pid in ray_workers(head_folder, "search")[:1])
            time.sleep(0.3)
    answer, complaints = process.communicate(timeout=180)
    assert process.returncode == 0, complaints
    assert killed
    plan = json.loads(answer)
    assert (plan["status"], plan["search"]["simulations"]) == ("optimal", 4_238_574)
    assert "A worker died" in complaints
