"""Accelerator, TP degree and micro-batch size of a file: from its name, else from the options."""

from __future__ import annotations

import re
from pathlib import Path

from poseidon.profile.importers.numbers import MOST_COUNT, Checked
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.profile import RowKey

TP = re.compile(r"(?:^|_|-)(?:tp|tmp)[_-]?(\d{1,7})(?=[_.-]|$)")
MICRO_BATCH = re.compile(r"(?:^|_|-)(?:mbs|bs)[_-]?(\d{1,7})(?=[_.-]|$)")
DEVICE = re.compile(r"DeviceType\.(\w+?)_")


def accelerator_of(path: Path, options: ImportOptions, checked: Checked, in_name: str | None = None) -> str:
    """The accelerator that a file was measured on, as the cluster calls it."""
    found = DEVICE.search(path.name)
    name = options.accelerator or in_name or (found[1] if found else None)
    if name is None:
        checked.say("", "neither the file's name nor its content says the accelerator: give --accelerator NAME")
        return "unknown"
    return options.rename.get(name, name)


def key_of(path: Path, options: ImportOptions, checked: Checked) -> RowKey:
    """The key of a file that holds one configuration, e.g. ``DeviceType.A100_tp2_bs4.json``."""
    tp = _from_name(TP, path, options.tp, "TP degree", "--tp N", checked)
    given = options.micro_batch_sizes[0] if len(options.micro_batch_sizes) == 1 else None
    size = _from_name(MICRO_BATCH, path, given, "micro-batch size", "one --micro-batch-size N", checked)
    return RowKey(accelerator_of(path, options, checked), tp, size)


def _from_name(
    pattern: re.Pattern[str], path: Path, given: int | None, what: str, option: str, checked: Checked
) -> int:
    found = pattern.search(path.name)
    if found and 1 <= int(found[1]) <= MOST_COUNT:
        return int(found[1])
    if given is None:
        checked.say("", f"the file's name doesn't say the {what} (as in _tp2_ or mbs4): rename it or give {option}")
    return given or 1
