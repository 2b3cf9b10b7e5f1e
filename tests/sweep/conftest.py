"""A sweep over the small example: an experiment and a sweep file, in folders of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.sweep.grid import Run, expand
from poseidon.sweep.sweep import Sweep, load_sweep

ROOT = Path(__file__).parents[2]
AXES: dict[str, Any] = {"batch": {"field": "training.global_batch_size", "values": [16, 32]}}


@pytest.fixture
def write_sweep(write_experiment: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """Writes the example experiment and a sweep over it; keyword arguments are keys of the sweep file."""

    def write(name: str = "small.yaml", **keys: Any) -> Path:
        if not (tmp_path / "example.yaml").exists():
            write_experiment()
        path = tmp_path / "sweeps" / name
        path.parent.mkdir(exist_ok=True)
        content = {"experiment": "../example.yaml", "axes": AXES} | keys
        path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        return path

    return write


@pytest.fixture
def sweep_of(write_sweep: Callable[..., Path]) -> Callable[..., tuple[Sweep, tuple[Run, ...]]]:
    """The sweep with these keys, and its runs."""

    def build(**keys: Any) -> tuple[Sweep, tuple[Run, ...]]:
        sweep = load_sweep(write_sweep(**keys))
        return sweep, expand(sweep)

    return build


def command(*arguments: str | Path) -> list[str]:
    """``poseidon`` in a process of its own."""
    return [sys.executable, "-m", "poseidon.cli", *map(str, arguments)]


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[str]]:
    """Starts ``poseidon`` with arguments in a process group of its own."""

    def begin(*arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command(*arguments),
            cwd=ROOT,
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return begin
