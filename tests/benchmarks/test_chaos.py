"""Three seeded runs of the chaos benchmark in processes of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUNS = 3
MOST_BLOWS = 3
"""In each: every one costs seconds, most of them to start a process."""
LONGEST_S = 900


@pytest.mark.parametrize("where", ["local", pytest.param("ray", marks=pytest.mark.ray)])
def test_searches_that_are_killed_at_end_with_the_reference_plan(where: str) -> None:
    """The program checks plan, bound, counters and what is left behind; here: that it dealt blows at all."""
    line = [sys.executable, "-m", "tests.benchmarks.chaos", where, "1", str(RUNS), str(MOST_BLOWS)]
    ran = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_S)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    *_, last = ran.stdout.splitlines()
    assert last.startswith(f"{RUNS} of {RUNS} runs ended with the reference plan; blows: ")
    assert sum(map(int, re.findall(r": (\d+)", last.partition("blows: ")[2]))) >= RUNS, ran.stdout
