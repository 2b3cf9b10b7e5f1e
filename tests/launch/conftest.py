"""Clusters to launch on, programs that stand for launchers, and the recorder of what scripts start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Ran, cli

__all__ = ["Ran", "cli"]

ACCELERATORS = Path(__file__).parents[2] / "configs" / "accelerators"
LINKS = {
    "intra_node": {"bandwidth_gbps": 248, "latency_us": 10},
    "inter_node": {"bandwidth_gbps": 200, "latency_us": 20, "shared_by": "node"},
}
NODES: dict[str, list[tuple[str, int]]] = {
    "one-a100": [("a100-sxm-80gb", 8)],
    "two-a100": [("a100-sxm-80gb", 8)] * 2,
    "four-a100": [("a100-sxm-80gb", 8)] * 4,
    "one-a6000": [("rtx-a6000", 8)],
    "two-kinds": [("a100-sxm-80gb", 8), ("rtx-a6000", 8)],
    "small-first": [("rtx-a6000", 8), ("a100-sxm-80gb", 8)],
    "one-npu": [("ascend-910b2", 8)],
    "two-npus": [("ascend-910b3", 8), ("ascend-910b2", 8)],
}
"""Accelerator and devices of each node."""

RECORDER = """#!{python}
import json, os, sys
with open(os.environ["STARTED"], "a") as log:
    log.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of one test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in list(os.environ):
        if name.startswith("PET_"):
            monkeypatch.delenv(name)
    return tmp_path / "cache"


@pytest.fixture
def cluster_file(tmp_path: Path) -> Callable[..., Path]:
    """Writes one of the clusters above as a file; keyword arguments replace parts of it."""

    def write(name: str, **changes: Any) -> Path:
        nodes = NODES[name]
        data: dict[str, Any] = {
            "name": name,
            "accelerators": {accelerator: str(ACCELERATORS / f"{accelerator}.yaml") for accelerator, _ in nodes},
            "nodes": [{"accelerator": accelerator, "count": 1, "devices": count} for accelerator, count in nodes],
            "links": LINKS,
        }
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(data | changes), encoding="utf-8")
        return path

    return write


def write_program(path: Path, text: str) -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., list[list[str]]]:
    """Runs a script with launchers that only write down how they were called; their command lines, expanded."""

    def run(script: Path) -> list[list[str]]:
        programs, log = tmp_path / "recorders", tmp_path / "started.jsonl"
        for name in ("torchrun", "python", "python3"):
            write_program(programs / name, RECORDER.format(python=sys.executable))
        log.unlink(missing_ok=True)
        env = {"PATH": f"{programs}:{os.defpath}", "STARTED": str(log)}
        shell = "bash" if "bash" in script.read_text().splitlines()[0] else "sh"
        subprocess.run([shell, str(script)], env=env, check=True, timeout=60)
        return [json.loads(line) for line in log.read_text().splitlines()]

    return run
