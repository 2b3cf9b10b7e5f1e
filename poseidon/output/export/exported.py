"""What an export consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from poseidon.output.export.places import Place


@dataclass(frozen=True)
class ExportedFile:
    """A file: `name` is one of the exporter's own, never taken from a plan."""

    name: str
    text: str


@dataclass(frozen=True)
class Start:
    """One command line, to be run on one node. `place` is None where the framework starts all nodes itself."""

    place: Place | None
    command: str


@dataclass(frozen=True)
class Export:
    """Everything that one framework needs to run a plan."""

    files: tuple[ExportedFile, ...]
    places: tuple[Place, ...]
    starts: tuple[Start, ...]
    """In the order of the places."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """What the files tell the framework, for programs."""
    notes: tuple[str, ...] = ()
    """What could not be carried over and what is left to the user, a sentence each."""
