"""The machine that a run was done on: what is needed to judge its seconds."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@dataclass(frozen=True)
class Host:
    """A machine, as far as it matters for times."""

    name: str
    processor: str
    num_cpus: int
    """Logical processors that this process may use."""
    load: float
    """Processes that wanted to run in the last minute, on average."""
    python_version: str


def this_host() -> Host:
    """The machine that this process runs on, now."""
    affinity = getattr(os, "sched_getaffinity", None)
    num_cpus = len(affinity(0)) if affinity is not None else (os.cpu_count() or 1)
    return Host(platform.node(), processor(), num_cpus, os.getloadavg()[0], platform.python_version())


@cache
def processor() -> str:
    """The processor's model where the system tells it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(filter(None, models), "") or platform.processor() or platform.machine()


@cache
def poseidon_version() -> str:
    """The version of the installed package."""
    try:
        return version("poseidon-planner")
    except PackageNotFoundError:
        return "not installed"
