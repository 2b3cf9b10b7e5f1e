"""The lines of a Megatron-LM log that matter here: arguments and the two compute timers (forms: `megatron`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Literal

from poseidon.profile.importers.numbers import Checked
from poseidon.profile.importers.text import lines_of

Option = Literal["minmax", "max", "all", "last"]
Pass = Literal["forward", "backward"]
_ARGUMENT = re.compile(r"(?:^|\s)([a-z][a-z0-9_]*) \.{2,} (\S.*?)\s*$")
_NUMBER = r"([-+0-9.eEinfaN]+)"
_RANGE = re.compile(rf"\b(forward|backward)-compute \.+: \({_NUMBER}, {_NUMBER}\)")
_SINGLE = re.compile(rf"\b(forward|backward)-compute \.+: {_NUMBER}\s*$")
_NAME = re.compile(r"^\s*(?:\[[^]]*\]:?)?\s*([a-z0-9/-]+):\s*$")
_RANK = re.compile(rf"\brank\s+(\d{{1,7}}): {_NUMBER}\s*$")
_LINE = re.compile(r"time \(ms\) \|(.*)")
_TIMER = re.compile(rf"(forward|backward)-compute: {_NUMBER}")


@dataclass
class Block:
    """The timers of one logged interval: ms by rank; rank -1 where there is one value for all (or the last) ranks."""

    option: Option
    line: int
    times: dict[Pass, dict[int, float]] = field(default_factory=dict)

    @property
    def is_compute(self) -> bool:
        """Whether both compute timers are in it (others: set-up, checkpoints)."""
        return len(self.times) == 2


@dataclass(frozen=True)
class TrainingLog:
    """A log's arguments and its blocks with compute times."""

    arguments: Mapping[str, str]
    blocks: tuple[Block, ...]


def read_log(path: Path, checked: Checked) -> TrainingLog:
    """Reads a log; lines that are none of the forms are passed over."""
    arguments: dict[str, str] = {}
    blocks: list[Block] = []
    timer: str | None = None
    for number, line in enumerate(lines_of(path, stray_bytes=True), 1):
        opened = _opened(line, number)
        if opened is not None:
            blocks.append(opened)
            timer = None
        if blocks:
            timer = _collect(line, number, blocks[-1], timer, checked)
        if argument := _ARGUMENT.search(line):
            arguments.setdefault(argument[1], argument[2])
    computing = tuple(block for block in blocks if block.is_compute)
    if not computing:
        found = "its timer blocks have no forward-compute and backward-compute" if blocks else "has no timer blocks"
        checked.say("", f"{found}: train with --timing-log-level 2 --log-interval 1")
    return TrainingLog(arguments, computing)


def _opened(line: str, number: int) -> Block | None:
    """The block that a line begins."""
    if "(min, max) time across ranks (ms):" in line:
        return Block("minmax", number)
    if "max time across ranks (ms):" in line:
        return Block("max", number)
    if "times across ranks (ms):" in line:
        return Block("all", number)
    if "time (ms) |" in line:
        return Block("last", number)
    return None


def _collect(line: str, number: int, block: Block, timer: str | None, checked: Checked) -> str | None:
    """Puts a line's times into the block; returns the timer whose ranks follow."""
    match block.option:
        case "minmax":
            if found := _RANGE.search(line):
                _put(block, found[1], -1, found[3], number, checked)
        case "max":
            if found := _SINGLE.search(line):
                _put(block, found[1], -1, found[2], number, checked)
        case "last":
            if whole := _LINE.search(line):
                for name, value in _TIMER.findall(whole[1]):
                    _put(block, name, -1, value, number, checked)
        case "all":
            if named := _NAME.match(line):
                return named[1].removesuffix("-compute") if named[1].endswith("-compute") else None
            if timer is not None and (ranked := _RANK.search(line)):
                _put(block, timer, int(ranked[1]), ranked[2], number, checked)
    return timer


def _put(block: Block, name: str, rank: int, text: str, number: int, checked: Checked) -> None:
    key: Pass = "forward" if name == "forward" else "backward"
    if name not in ("forward", "backward"):
        return
    value = checked.number(text, f"line {number}, {name}-compute", "ms")
    if isfinite(value):
        block.times.setdefault(key, {}).setdefault(rank, value)
