"""Interruptions and closed pipes, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENDLESS = """
import os, signal, sys
from poseidon.cli import main
from poseidon.search.watch import Watch

number = getattr(signal, sys.argv.pop())

# The search would be over before a signal could reach it: here it interrupts itself, once it has a plan.
def tell(self, progress):
    if progress().best_ms < float("inf"):
        os.kill(os.getpid(), number)

Watch.tell = tell
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "poseidon.cli", *map(str, arguments)]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interruption_keeps_the_best_plan_with_its_gap(
    write_experiment: Callable[..., Path], tmp_path: Path, name: str
) -> None:
    path = write_experiment(training={"schedules": ["interleaved_1f1b"]}, model={"num_layers": 16})
    arguments = [
        sys.executable,
        "-c",
        ENDLESS,
        "search",
        path,
        "--warmup-samples",
        "0",
        "--out",
        tmp_path,
        "--json",
        name,
    ]
    ran = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, cwd=ROOT, check=False)
    assert ran.returncode == 130, ran.stderr
    assert "Traceback" not in ran.stderr
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan == json.loads(ran.stdout)
    assert plan["search"]["termination"] == "interrupted"
    assert 0 <= plan["gap"] < 1


@pytest.mark.parametrize(
    "arguments",
    [["count"], ["costs"], ["search"], ["search", "--json"]],
    ids=" ".join,
)
def test_a_reader_that_is_gone_is_no_error(write_experiment: Callable[..., Path], arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    first, *options = arguments
    try:
        ran = subprocess.run(
            command(first, write_experiment(), "-q" if first == "costs" else "--seq-length=1024", *options),
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            check=False,
        )
    finally:
        os.close(writing)
    assert ran.returncode == 0
    assert "Broken" not in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_exit_status_survives_a_closed_pipe(write_experiment: Callable[..., Path], tmp_path: Path) -> None:
    subprocess.run(command("search", write_experiment(), "-q", "--out", tmp_path), check=True, cwd=ROOT)
    plan = json.loads((tmp_path / "plan.json").read_text())
    (tmp_path / "plan.json").write_text(json.dumps({**plan, "mfu": 2 * plan["mfu"]}))
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(command("verify", tmp_path / "plan.json"), stdout=writing, cwd=ROOT, check=False)
    os.close(writing)
    assert ran.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_clear_line(write_experiment: Callable[..., Path]) -> None:
    with open("/dev/full", "w") as full:
        arguments = command("search", write_experiment())
        ran = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    assert ran.returncode == 2
    assert "standard output: cannot be written: No space left on device" in ran.stderr
    assert "Traceback" not in ran.stderr
