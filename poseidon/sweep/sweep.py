"""A sweep as values: the base experiment, its axes and their points; and how to load it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.field_path import field_path
from poseidon.inputs.file_model import shown
from poseidon.inputs.limits import MAX_MISTAKES
from poseidon.inputs.model_file import default_name
from poseidon.inputs.reading import read_document
from poseidon.inputs.source_file import SourceFile
from poseidon.inputs.validation import validate
from poseidon.inputs.variant import REPLACEABLE_PARTS
from poseidon.sweep.field_change import Path, parse_path
from poseidon.sweep.sweep_file import AxisFile, PlotFile, SweepFile

EXPERIMENT: Path = ("experiment",)
"""The field that holds the path of the base experiment itself."""


@dataclass(frozen=True)
class Change:
    """A field, its new value, and where the sweep file says so."""

    path: Path
    value: Any
    place: str


@dataclass(frozen=True)
class Point:
    """One point of an axis."""

    label: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Axis:
    """One axis of the grid."""

    name: str
    title: str
    """What people see: of a field's path its last part, where no other axis has the same."""
    points: tuple[Point, ...]
    is_numeric: bool
    """Whether all labels are numbers."""

    @property
    def fields(self) -> frozenset[Path]:
        """The fields that its points change."""
        return frozenset(change.path for point in self.points for change in point.changes)


@dataclass(frozen=True)
class Sweep:
    """A sweep file, understood."""

    name: str
    source: SourceFile
    experiment: str
    """The path of the base experiment, relative to the sweep file."""
    changes: tuple[Change, ...]
    axes: tuple[Axis, ...]
    plot: PlotFile


def load_sweep(path: str | FilePath) -> Sweep:
    """Loads a sweep file; raises InputError with its mistakes. The experiments are not looked at yet."""
    source = SourceFile.first(path)
    data = {"name": default_name(source.path), **read_document(source.path).data}
    if isinstance(data.get("axes"), Mapping):
        data["axes"] = {
            name: {"values": axis} if isinstance(axis, list) else axis for name, axis in data["axes"].items()
        }
    content = validate(SweepFile, data, source.label)
    mistakes: list[Mistake] = []
    changes = tuple(_changes(content.set, ("set",), source.label, mistakes))
    titles = _titles(tuple(content.axes))
    axes = tuple(_axis(name, titles[name], axis, source.label, mistakes) for name, axis in content.axes.items())
    mistakes += _shared_fields(axes, source.label)
    if mistakes:
        raise InputError(mistakes[:MAX_MISTAKES])
    return Sweep(content.name, source, content.experiment, changes, axes, content.plot)


def _titles(names: Sequence[str]) -> dict[str, str]:
    paths = {name: parse_path(name) for name in names}
    last = {name: str(path[-1]) if path is not None else name for name, path in paths.items()}
    return {name: title if list(last.values()).count(title) == 1 else name for name, title in last.items()}


def _axis(name: str, title: str, axis: AxisFile, file: str, mistakes: list[Mistake]) -> Axis:
    place = ("axes", name)
    field = axis.field or name
    if axis.points is not None:
        labels = [point.label for point in axis.points]
        changes = [
            tuple(_changes(point.set, (*place, "points", index, "set"), file, mistakes))
            for index, point in enumerate(axis.points)
        ]
    else:
        values = axis.values or ()
        labels = list(axis.labels or (value_label(field, value) for value in values))
        where = (*place, "field") if axis.field else place
        changes = [tuple(_changes({field: value}, where, file, mistakes, at_key=False)) for value in values]
    texts = [label if isinstance(label, str) else number_text(label) for label in labels]
    for index, text in enumerate(texts):
        if text in texts[:index]:
            mistakes.append(Mistake(file, field_path(place), f"two points are called {shown(text)}; give them labels"))
    points = tuple(Point(text, change) for text, change in zip(texts, changes, strict=True))
    return Axis(name, title, points, all(not isinstance(label, str) for label in labels))


def _changes(
    fields: Mapping[str, Any], place: Path, file: str, mistakes: list[Mistake], *, at_key: bool = True
) -> Iterator[Change]:
    for text, value in fields.items():
        where = field_path((*place, text) if at_key else place)
        path = parse_path(text)
        if path is None:
            message = f"{shown(text)} is no field path; search.policy and cluster.nodes.0.count are some"
            if (mistake := Mistake(file, where, message)) not in mistakes:
                mistakes.append(mistake)
        else:
            yield Change(path, value, where)


def _shared_fields(axes: tuple[Axis, ...], file: str) -> Iterator[Mistake]:
    for index, axis in enumerate(axes):
        for other in axes[:index]:
            for path in sorted(axis.fields & other.fields, key=field_path):
                message = f"{field_path(path)} is also changed by the axis {shown(other.name)}"
                yield Mistake(file, field_path(("axes", axis.name)), message)


def value_label(field: str, value: Any) -> int | float | str:
    """What a value is called: a number stays one, a path is called as its file."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        is_file = field in (*REPLACEABLE_PARTS, *EXPERIMENT)
        text = default_name(FilePath(value)) if is_file else "".join(filter(str.isprintable, value))
        return text[:100] or "empty"
    if isinstance(value, list):
        return "+".join(str(value_label("", item)) for item in value)[:100] or "none"
    return json.dumps(value)[:100]


def number_text(value: float) -> str:
    """A number as a label."""
    whole = isinstance(value, int) or (math.isfinite(value) and value.is_integer() and abs(value) < 1e15)
    return str(int(value)) if whole else repr(value)
