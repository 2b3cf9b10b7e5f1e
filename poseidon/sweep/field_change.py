"""Changes of single fields of an experiment, named by their path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.field_path import field_path
from poseidon.inputs.file_model import nearest, shown

Path = tuple[str | int, ...]

_PART = re.compile(r"(?P<dot>\.)?(?P<key>[^.\[\]]+)|\[(?:(?P<index>\d+)|'(?P<single>[^']+)'|\"(?P<double>[^\"]+)\")\]")
_OPEN = (("cluster", "accelerators"),)
"""Mappings whose keys are the user's own names: new ones may be added."""


class UnknownFieldError(InputError):
    """A path that is no field of the experiment: a mistake of the sweep file, not of one run."""


def parse_path(text: str) -> Path | None:
    """The parts of a path as `field_path` writes it (``nodes[0].count``), or with indices as keys (``nodes.0.count``).

    None when it is not a path.
    """
    parts: list[str | int] = []
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None or (match["key"] and bool(match["dot"]) != bool(parts)):
            return None
        name = match["key"] or match["single"] or match["double"]
        parts.append(int(match["index"]) if match["index"] else name)
        position = match.end()
    return tuple(parts) or None


def set_field(data: dict[str, Any], path: Path, value: Any, file: str, place: str) -> None:
    """Sets a field of resolved experiment data in place.

    A single value for a field that holds a list becomes a list of one; an index one past the end of a list, and a new
    name of an accelerator, add an entry. Raises UnknownFieldError, at `place` of `file`, with the nearest field where
    there is none of that name.
    """
    holder: Any = data
    for depth, part in enumerate(path):
        last = depth == len(path) - 1
        try:
            key = _key(holder, part, path[:depth], may_add=last)
        except LookupError as error:
            raise UnknownFieldError(Mistake(file, place, f"{field_path(path)}: {error.args[0]}")) from None
        if not last:
            holder = holder[key]
        elif isinstance(holder, list):
            holder[key : key + 1] = [value]
        else:
            wrap = isinstance(holder.get(key), list) and isinstance(value, str | int | float)
            holder[key] = [value] if wrap else value


def _key(holder: Any, part: str | int, above: Path, *, may_add: bool) -> Any:
    """The key or index that `part` means in `holder`; LookupError with one plain sentence when there is none."""
    where = field_path(above) or "the experiment"
    if isinstance(holder, list):
        if not str(part).isdecimal():
            raise LookupError(f"{shown(part)} is no index; {where} is a list of {len(holder)} entries, counted from 0")
        index = int(part)
        if index > len(holder) - (0 if may_add else 1):
            raise LookupError(f"{where} has no entry {index}; it has {len(holder)}, counted from 0")
        return index
    if not isinstance(holder, Mapping):
        raise LookupError(f"{where} is {'not set' if holder is None else 'a single value'}: it has no fields")
    key = str(part)
    if key in holder or (may_add and above in _OPEN):
        return key
    suggestion = nearest(key, holder)
    hint = f"did you mean {suggestion!r}?" if suggestion else f"the fields are {', '.join(map(str, holder))}"
    raise LookupError(f"unknown field {shown(key)} of {where}; {hint}")
