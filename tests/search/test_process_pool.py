from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.search.process_pool import Message, ProcessPool

ROOT = Path(__file__).parents[2]
START_S = 0.5


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the processes of a pool, which get this process's path."""
    monkeypatch.syspath_prepend(ROOT)


def slow_to_start(send: Callable[[Any], None], index: int) -> Callable[[Any], Any]:
    time.sleep(START_S)
    return lambda needs: (index, needs)


def test_jobs_come_back_with_their_answers() -> None:
    pool: ProcessPool[str] = ProcessPool(2, slow_to_start)
    try:
        given = {pool.give(job, len(job)): job for job in ("a", "bb")}
        answers: dict[str, Any] = {}
        while len(answers) < 2:
            answers |= {message.job: message.content for message in pool.wait(60.0) if isinstance(message, Message)}
    finally:
        pool.close()
    assert answers == {job: (index, len(job)) for index, job in given.items()}


def test_a_pool_that_is_closed_while_its_workers_start_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    pool: ProcessPool[str] = ProcessPool(2, slow_to_start)
    pool.close()
    assert pool.process_ids == []
    assert capfd.readouterr() == ("", "")


FIRST_START = """
from poseidon.search.process_pool import ProcessPool
from tests.search.test_process_pool import slow_to_start

pool = ProcessPool(2, slow_to_start)
for process in pool.process_ids:
    print(next(line.split()[1] for line in open(f"/proc/{process}/status") if line.startswith("SigBlk:")))
pool.close()
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads which signals a process blocks")
def test_no_worker_hears_ctrl_c_while_it_starts() -> None:
    """Not even the first of a process, before which multiprocessing starts what it needs itself."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-c", FIRST_START]
    ran = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")
    blocked = [int(mask, 16) for mask in ran.stdout.split()]
    assert len(blocked) == 2
    assert all(mask & 1 << signal.SIGINT - 1 for mask in blocked)
