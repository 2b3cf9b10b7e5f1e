"""What a newcomer does first: the shipped quickstart, found, verified and simulated through the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def poseidon(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "poseidon.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_the_quickstart_is_proven_verified_and_simulated(tmp_path: Path) -> None:
    found = poseidon("search", "configs/experiments/quickstart.yaml", "--out", tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    assert "proven optimal" in found.stdout
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["status"] == "optimal"
    assert plan["gap"] == 0
    assert len({stage["accelerator"] for stage in plan["stages"]}) > 1
    verified = poseidon("verify", tmp_path / "plan.json")
    assert verified.returncode == 0, verified.stdout
    assert "all right" in verified.stdout
    simulated = json.loads(poseidon("simulate", tmp_path / "plan.json", "--json", "-q").stdout)
    assert simulated["iteration_time_ms"] == plan["iteration_time_ms"]


def test_the_help_is_the_first_thing_that_works() -> None:
    shown = poseidon("search", "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "configs/experiments/quickstart.yaml" in shown.stdout
