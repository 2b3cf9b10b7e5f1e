"""Checks of the numbers of peers' files; every importer reads its numbers through here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.field_path import field_path
from poseidon.inputs.file_model import shown
from poseidon.inputs.limits import MAX_MISTAKES

MIB = float(2**20)
"""What most peers call a MB."""
MOST = 1e15
"""Larger numbers are no time and no size of anything."""
MOST_COUNT = 10_000_000


class Checked:
    """The numbers of one file; collects mistakes, so that a person sees all of them at once."""

    def __init__(self, file: str) -> None:
        """No mistakes yet."""
        self.file = file
        self.mistakes: list[Mistake] = []

    def say(self, field: str, message: str) -> None:
        """Notes a mistake."""
        self.mistakes.append(Mistake(self.file, field, message))

    def number(self, value: Any, field: str, unit: str) -> float:
        """A finite number of at least 0 (text of a number counts); otherwise 0.0 and a mistake."""
        number = _parsed(value)
        if number is None:
            self.say(field, f"expected a number of {unit}, got {shown(value)}")
        elif not math.isfinite(number):
            self.say(field, f"is {shown(value)}: a finite number of {unit} is expected")
        elif not 0 <= number <= MOST:
            self.say(field, f"{shown(value)} is out of range: 0 to {MOST:g} {unit} is accepted")
        else:
            return number
        return 0.0

    def count(self, value: Any, field: str, what: str) -> int:
        """A whole number of at least 1 (text of digits counts); otherwise 1 and a mistake."""
        text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
        number = whole(text)
        if number is not None and 1 <= number <= MOST_COUNT:
            return number
        self.say(field, f"{shown(value)} is no {what}: a whole number from 1 to {MOST_COUNT:,} is accepted")
        return 1

    def counted_keys(self, data: Any, path: Sequence[str | int], what: str) -> Iterable[tuple[int, Any]]:
        """The entries of a mapping whose keys are whole numbers in text."""
        mapping = self.mapping(data, path)
        for key, value in mapping.items():
            yield self.count(key, field_path([*path, key]), what), value

    def mapping(self, data: Any, path: Sequence[str | int]) -> Mapping[str, Any]:
        """A mapping; otherwise an empty one and a mistake."""
        if isinstance(data, Mapping):
            return data
        self.say(field_path(path), f"expected a mapping of keys to values, got {shown(data)}")
        return {}

    def finish(self) -> None:
        """Raises InputError if there were mistakes."""
        if not self.mistakes:
            return
        kept = self.mistakes[:MAX_MISTAKES]
        if len(self.mistakes) > MAX_MISTAKES:
            kept.append(Mistake(self.file, "", f"and {len(self.mistakes) - MAX_MISTAKES} more mistakes"))
        raise InputError(kept)


def whole(text: str) -> int | None:
    """A whole number of 1 to 8 plain digits, else None: no huge or odd number of a file gets through."""
    return int(text) if re.fullmatch(r"[0-9]{1,8}", text) else None


def _parsed(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e300 or value != value else math.inf
    if not isinstance(value, str) or len(value) > 100:
        return None
    try:
        return float(value.strip())
    except ValueError:
        return None


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean of at least one value; exact where all are equal."""
    return values[0] if min(values) == max(values) else fsum(values) / len(values)
