"""Reads exports back, with code that shares nothing with the exporters."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poseidon.output.export import Export, write_files
from poseidon.plan.plan import Plan

VISIBLE = ("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
STAND_IN = """#!{python}
import json, os, sys
with open(os.environ["STARTED"], "a") as log:
    call = {{"program": os.path.basename(sys.argv[0]), "argv": sys.argv[1:], "env": dict(os.environ)}}
    log.write(json.dumps(call) + "\\n")
"""


@dataclass(frozen=True)
class Started:
    """A program that a script started."""

    program: str
    argv: list[str]
    env: dict[str, str]

    def value(self, flag: str) -> str:
        """The value of a flag."""
        assert self.argv.count(flag) == 1, (flag, self.argv)
        return self.argv[self.argv.index(flag) + 1]

    @property
    def visible(self) -> list[int] | None:
        """The devices that it may use; None: all."""
        values = [self.env[name] for name in VISIBLE if name in self.env]
        assert len(values) <= 1
        return [int(device) for device in values[0].split(",")] if values else None


def started_by(
    export: Export, directory: Path, place: str, arguments: Sequence[str] = (), *, master: str | None = "10.0.0.1"
) -> list[Started]:
    """Runs launch.sh for one place, with programs that only write down how they were called."""
    programs, log = directory / "programs", directory / "started.jsonl"
    programs.mkdir(exist_ok=True)
    for name in ("torchrun", "python", "python3", "megatron"):
        (programs / name).write_text(STAND_IN.format(python=sys.executable))
        (programs / name).chmod(0o755)
    log.unlink(missing_ok=True)
    write_files(export.files, directory / "out")
    env = {"PATH": f"{programs}:{os.defpath}", "STARTED": str(log)} | ({"MASTER_ADDR": master} if master else {})
    command = ["bash", str(directory / "out" / "launch.sh"), place, *arguments]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    return [Started(**json.loads(line)) for line in log.read_text().splitlines()]


def devices_by_rank(export: Export, directory: Path, nnodes: str, node_rank: str, nproc: str) -> list[tuple[int, int]]:
    """(node, device) of each rank, from what the script starts at every place; the arguments name the flags."""
    devices: list[tuple[int, int]] = []
    for place in export.places:
        [started] = started_by(export, directory, str(place.number))
        assert started.value(nnodes) == str(len(export.places))
        assert started.value(node_rank) == str(place.number)
        count = int(started.value(nproc))
        visible = started.visible or list(range(count))
        assert len(visible) == count
        devices += [(place.node, device) for device in visible]
    return devices


def planned_devices(plan: Plan) -> list[tuple[int, int]]:
    """(node, device) of each rank, as the plan says."""
    return [(part.node, device) for stage in plan.pipeline.stages for part in stage.devices for device in part.devices]


def planned_layers(plan: Plan) -> list[list[int]]:
    """Layers of each stage's chunks."""
    return [list(stage.layers) for stage in plan.pipeline.stages]


def layers_of_layout(layout: str, num_stages: int) -> list[list[int]]:
    """Layers of each stage's chunks in a layout string."""
    assert re.fullmatch(r"Et[t*0-9|]*L", layout), layout
    chunks = layout.replace("E", "").replace("L", "").split("|")
    counts = []
    for chunk in chunks:
        match = re.fullmatch(r"t(?:\*(\d+))?", chunk)
        assert match, chunk
        counts.append(int(match[1] or 1))
    assert len(counts) % num_stages == 0
    return [counts[stage::num_stages] for stage in range(num_stages)]


def file_text(export: Export, name: str) -> str:
    """The text of one file."""
    return next(file.text for file in export.files if file.name == name)


def module_values(text: str) -> dict[str, Any]:
    """The values that an exported Python module sets; its functions are defined and not run."""
    values: dict[str, Any] = {"__file__": "/somewhere/module.py", "__name__": "module"}
    exec(compile(text, "module.py", "exec"), values)
    return values


def flags_in(text: str) -> list[list[str]]:
    """The lines of a script's ``flags=( ... )``, split as the shell does."""
    inside = text.split("flags=(\n", 1)[1].split("\n)\n", 1)[0]
    return [shlex.split(line) for line in inside.splitlines()]
