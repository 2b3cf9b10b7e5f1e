"""What an export printed: for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from poseidon.output.console import Columns, rendered
from poseidon.output.export.exported import Export
from poseidon.output.export.places import Place
from poseidon.output.numbers import plural, ranges


def export_text(title: str, export: Export, written: Sequence[Path], stream: TextIO) -> str:
    """The files, where everything starts and with which command, and what is left to the user.

    Commands are never broken into lines, so that they can be copied.
    """
    heading = (
        "Start" if export.starts[0].place is None else "Start, one command on each node, which all need these files"
    )
    before: list[RenderableType] = [
        Text(f"{plural(len(written), 'file')} for {title}: {', '.join(map(str, written))}", style="bold"),
        Text(""),
        _places(export.places, stream),
        Text(""),
        Text(heading, style="bold"),
    ]
    commands = [f"  {_start(start.place, start.command)}" for start in export.starts]
    after: list[RenderableType] = [Text(""), Text("To know", style="bold"), _notes(export.notes)]
    return "\n".join([rendered(before, stream), *commands, rendered(after, stream)])


def _start(place: Place | None, command: str) -> str:
    return command if place is None else f"{place.host}: {command}"


def _notes(notes: Sequence[str]) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    for note in notes:
        table.add_row(" -", Text(note))
    return table


def _places(places: Sequence[Place], stream: TextIO) -> RenderableType:
    columns = Columns(stream, title="Nodes in the plan's order")
    columns.number("Place", "Node")
    columns.name("Host", "Accelerator")
    columns.number("Devices", "Ranks", "Stages")
    for place in places:
        shown = (ranges(place.devices), ranges(place.ranks), ranges(place.stages))
        columns.row(str(place.number), str(place.node), place.host, place.accelerator, *shown)
    return columns.table()


def export_to_json(framework: str, export: Export, written: Sequence[Path]) -> dict[str, Any]:
    """The same for programs; the files' texts where they were not written."""
    names: list[dict[str, str]] = (
        [{"path": str(path)} for path in written]
        if written
        else [{"name": file.name, "text": file.text} for file in export.files]
    )
    return {
        "framework": framework,
        "files": names,
        "places": [_place_to_json(place) for place in export.places],
        "start": [
            {"place": None if start.place is None else start.place.number, "command": start.command}
            for start in export.starts
        ],
        "settings": dict(export.settings),
        "notes": list(export.notes),
    }


def _place_to_json(place: Place) -> dict[str, Any]:
    return {
        "number": place.number,
        "node": place.node,
        "host": place.host,
        "accelerator": place.accelerator,
        "devices": list(place.devices),
        "ranks": list(place.ranks),
        "stages": list(place.stages),
    }
