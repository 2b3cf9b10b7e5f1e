"""Outer choices of which a part could not be searched: said by name, with the problem kept for a report."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

from poseidon.cost.problem import Problem
from poseidon.cost.problem_file import problem_to_json
from poseidon.search.driver import Driver


def failure_warnings(driver: Driver) -> tuple[str, ...]:
    """A line for each outer choice with a shard that kept failing; writes its problem to a file."""
    return tuple(
        f"part of {choice.name} was not searched: {choice.failed[0]}; its bound is only the one known before; "
        f"`poseidon solve {_kept(driver.context.problems[choice.index])}` repeats it"
        for choice in driver.choices
        if choice.failed
    )


def _kept(problem: Problem) -> Path:
    """The file that the problem was written to."""
    name = re.sub(r"[^\w.-]+", "-", problem.name)[:100]
    handle, path = tempfile.mkstemp(prefix=f"poseidon-failed-{name}-", suffix=".jsonl")
    with open(handle, "w", encoding="utf-8") as file:
        file.write(json.dumps(problem_to_json(problem)) + "\n")
    return Path(path)
