from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.search.process_pool import Message, ProcessPool

START_S = 0.5


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the processes of a pool, which get this process's path."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])


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
