"""Which framework a training command belongs to, and which version of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from poseidon.launch.arguments import Arguments

FrameworkName = Literal["megatron", "mindspeed", "mindspeed-llm"]
NAMES: tuple[FrameworkName, ...] = ("megatron", "mindspeed", "mindspeed-llm")
MOST_SCRIPT_BYTES = 4_000_000
_MINDSPEED_IMPORT = re.compile(r"^\s*(?:import|from)\s+(mindspeed(?:_llm)?)\b", re.MULTILINE)
_VERSION_PART = re.compile(r"^(MAJOR|MINOR)\s*=\s*(\d{1,4})\s*$", re.MULTILINE)
MINDSPEED_CORE = "0.12"
"""MindSpeed's branches 2.1 to 26.1 patch Megatron-LM core_v0.12.1 (their documentation)."""
MINDSPEED_LAYOUT = "26.1"
"""First MindSpeed with Megatron-LM's --pipeline-model-parallel-layout, which came with core 0.13."""


@dataclass(frozen=True)
class Framework:
    """What trains: Megatron-LM, Megatron-LM patched by MindSpeed, or MindSpeed-LLM."""

    name: FrameworkName
    version: str | None
    """As given or found; None: not known, so the newest that exports know."""
    evidence: str
    """How it was recognised."""

    @property
    def is_ascend(self) -> bool:
        """Whether MindSpeed takes part."""
        return self.name != "megatron"

    @property
    def export_name(self) -> str:
        """What `poseidon export --to` calls it."""
        return "mindspeed-llm" if self.name == "mindspeed-llm" else "megatron"

    @property
    def export_version(self) -> str | None:
        """The version that the export is for: of MindSpeed, the core that it patches."""
        if self.name != "mindspeed":
            return self.version
        return "0.13" if _numbers(self.version or "0") >= _numbers(MINDSPEED_LAYOUT) else MINDSPEED_CORE

    @property
    def title(self) -> str:
        """For people."""
        title = {"megatron": "Megatron-LM", "mindspeed": "MindSpeed", "mindspeed-llm": "MindSpeed-LLM"}[self.name]
        return f"{title} {self.version}" if self.version else title


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:4]))


def framework_of(
    script: str,
    is_module: bool,
    arguments: Arguments,
    environment: Mapping[str, str],
    name: FrameworkName | None = None,
    version: str | None = None,
) -> Framework:
    """The framework: what the user says, else what the script imports, else whose flags there are, else Megatron-LM.

    Files are read as text; nothing is imported.
    """
    path = None if is_module else Path(script)
    if name is None:
        name, evidence = _recognised(path, arguments)
    else:
        evidence = "--framework"
    if version is None and name == "megatron":
        version = _core_version(path, environment)
    return Framework(name, version, evidence)


def _recognised(path: Path | None, arguments: Arguments) -> tuple[FrameworkName, str]:
    imported = set(_MINDSPEED_IMPORT.findall(_text(path))) if path is not None else set()
    owners = {item.flag.owner: item.name for item in reversed(arguments.items) if item.flag is not None}
    if "mindspeed_llm" in imported:
        return "mindspeed-llm", f"{path} imports mindspeed_llm"
    if "llm" in owners:
        return "mindspeed-llm", f"{owners['llm']} is its flag"
    if imported:
        return "mindspeed", f"{path} imports mindspeed"
    if "core" in owners:
        return "mindspeed-llm", f"{owners['core']} is a flag of MindSpeed"
    return "megatron", "no flag and no import of another"


def _core_version(path: Path | None, environment: Mapping[str, str]) -> str | None:
    """The version that the Megatron-LM beside the script, or on PYTHONPATH, says it has."""
    for folder in _folders(path, environment):
        parts = dict(_VERSION_PART.findall(_text(folder / "megatron" / "core" / "package_info.py")))
        if {"MAJOR", "MINOR"} <= parts.keys():
            return f"{parts['MAJOR']}.{parts['MINOR']}"
    return None


def _folders(path: Path | None, environment: Mapping[str, str]) -> Iterator[Path]:
    if path is not None:
        yield path.parent
    yield from (Path(folder) for folder in environment.get("PYTHONPATH", "").split(os.pathsep) if folder)
    yield Path()


def _text(path: Path | None) -> str:
    try:
        if path is None or not path.is_file() or path.stat().st_size > MOST_SCRIPT_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
