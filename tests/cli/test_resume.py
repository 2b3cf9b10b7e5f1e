"""Real processes that are killed or interrupted, and what is left of their search."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.processes import wait_until

ROOT = Path(__file__).parents[2]
SHARED_MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path(tempfile.gettempdir())
EAGER = """
import sys
from poseidon.cli.entry import main_search
from poseidon.search import driver, journal

# As a search of hours, in small: parts come back soon, and their record is kept from the start.
journal.FIRST_WRITE_S = 0.0
driver.ENUMERATED_NODES = 30_000

if __name__ == "__main__":
    main_search()
"""


@pytest.fixture
def experiment(write_experiment: Callable[..., Path]) -> Path:
    """A few seconds of brute force: a million configurations."""
    nodes = [{"accelerator": accelerator, "count": 1, "devices": 4} for accelerator in ("fast", "slow")]
    return write_experiment(model={"num_layers": 24}, cluster={"nodes": nodes}, search={"policy": "brute-force"})


def start(folder: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    script = folder / "eager.py"
    script.write_text(EAGER)
    command = [sys.executable, script, *arguments, "--out", folder / "out"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
        start_new_session=True,
    )


def numbers(journal: Path) -> list[int]:
    """Of the shards whose outcome is recorded."""
    lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
    whole: list[dict[str, Any]] = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [record["outcome"]["number"] for record in whole if "outcome" in record]


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> bool:
    end = time.monotonic() + 60
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def of_session(leader: int) -> list[int]:
    """Processes of a session that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def ignores_ctrl_c(process: int) -> bool:
    status = Path(f"/proc/{process}/status").read_text()
    ignored = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored, 16) >> (signal.SIGINT - 1) & 1)


def are_up(driver: int, num_workers: int) -> bool:
    """Whether the workers run our code: while the interpreter starts, Ctrl-C still hits them."""
    others = [process for process in of_session(driver) if process != driver]
    return len(others) >= num_workers and all(map(ignores_ctrl_c, others))


def without_times(plan: dict[str, Any]) -> dict[str, Any]:
    """A plan without what differs from run to run."""
    search = {key: plan["search"][key] for key in ("policy", "outer_choices", "simulations", "termination")}
    return {**plan, "search": search}


def test_a_search_that_is_killed_again_and_again_is_gone_on_with(experiment: Path, tmp_path: Path) -> None:
    journal, seen = tmp_path / "out" / "search.journal", 0
    for workers in ("1", "2", "1"):
        process = start(tmp_path, experiment, "-q", "--workers", workers, *(["--resume"] if seen else []))
        assert wait_for(lambda seen=seen: len(numbers(journal)) > seen + 5, process), finished(process)
        process.kill()
        process.communicate()
        done = numbers(journal)
        assert len(done) == len(set(done)) > seen
        seen = len(done)
    status, out, err = finished(start(tmp_path, experiment, "-q", "--json", "--resume"))
    assert (status, err) == (0, "")
    plan = json.loads(out)
    assert not journal.exists()
    (tmp_path / "alone").mkdir()
    status, out, err = finished(start(tmp_path / "alone", experiment, "-q", "--json"))
    assert status == 0
    assert without_times(plan) == without_times(json.loads(out))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_ctrl_c_with_workers_keeps_the_plan_and_leaves_no_process(experiment: Path, tmp_path: Path) -> None:
    before = set(SHARED_MEMORY.iterdir())
    journal = tmp_path / "out" / "search.journal"
    process = start(tmp_path, experiment, "--json", "-q", "--workers", "2")
    assert wait_for(lambda: len(numbers(journal)) > 2 and are_up(process.pid, 2), process)
    os.killpg(process.pid, signal.SIGINT)
    status, out, err = finished(process)
    assert (status, err) == (130, "")
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert plan == json.loads(out)
    assert plan["search"]["termination"] == "interrupted"
    assert 0 < plan["lower_bound_ms"] <= plan["iteration_time_ms"]
    assert len(numbers(journal)) == len(set(numbers(journal)))
    assert wait_until(lambda: of_session(process.pid) == [])
    assert not [path for path in set(SHARED_MEMORY.iterdir()) - before if f"-{process.pid}-" in path.name]
    status, out, err = finished(start(tmp_path, experiment, "--json", "-q", "--resume"))
    assert (status, err) == (0, "")
    assert json.loads(out)["iteration_time_ms"] <= plan["iteration_time_ms"]
    assert not journal.exists()


def test_resume_without_a_folder_is_a_usage_error(cli: Any, write_experiment: Callable[..., Path]) -> None:
    ran = cli("search", write_experiment(), "--resume")
    assert ran.status == 2
    assert len(ran.mistakes) == 1
    assert "give --out" in ran.err


def test_resume_without_a_journal_begins_anew(cli: Any, write_experiment: Callable[..., Path], tmp_path: Path) -> None:
    ran = cli("search", write_experiment(), "--resume", "--out", tmp_path / "out", "--json", "-q")
    assert ran.data["status"] == "optimal"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["plan.json"]


@pytest.mark.parametrize("text", ["no journal", '{"schema": "poseidon.journal/1", "search": "of another one"}\n'])
def test_what_cannot_be_gone_on_with_is_one_clear_line(
    cli: Any, write_experiment: Callable[..., Path], tmp_path: Path, text: str
) -> None:
    journal = tmp_path / "search.journal"
    journal.write_text(text)
    ran = cli("search", write_experiment(), "--resume", "--out", tmp_path)
    assert (ran.status, ran.out) == (2, "")
    assert len(ran.mistakes) == 1
    assert ran.err.startswith(f"{journal}: ")
    assert journal.read_text() == text
    assert not (tmp_path / "plan.json").exists()
