"""The journal beside the output: every finished cell at once, so that an interrupted run goes on where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.profile.measure.cells import Cell
from poseidon.profile.measure.results import Result, result_from_json, result_to_json
from poseidon.whole_file import write_whole_text

SCHEMA = "poseidon.profile-journal/1"


def now() -> str:
    """UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass
class Journal:
    """Finished cells by name, on disk and in memory.

    The first line says what is measured and on what (`identity`), each further line is one cell. A line is written with
    one call and forced to disk; a last line without its end (a crash in between) is dropped.
    """

    path: Path
    identity: Mapping[str, Any]
    results: dict[str, Result] = field(default_factory=dict)
    started: str = field(default_factory=now)
    """When the first cell was begun: UTC, ISO 8601."""

    @classmethod
    def read(cls, path: Path, identity: Mapping[str, Any]) -> Journal:
        """What is there, or an empty journal; writes nothing.

        Raises InputError for a journal of something else, naming what differs.
        """
        journal = cls(path, identity)
        lines = _whole_lines(path)
        if not lines:
            return journal
        try:
            first, *cells = (json.loads(line) for line in lines)
            known = dict(first["identity"]) if first["schema"] == SCHEMA else None
            journal.started = str(first["started"])
            journal.results = {cell["cell"]: result_from_json(cell["result"]) for cell in cells}
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(Mistake(str(path), "", f"is not a journal of this command ({error}); remove it")) from None
        if known is None:
            raise InputError(Mistake(str(path), "schema", f"is not a journal: schema {SCHEMA!r} is expected"))
        differing = [
            Mistake(str(path), key, f"was begun with {known.get(key)!r}, not {value!r}; give another --out, or --fresh")
            for key, value in identity.items()
            if known.get(key) != value
        ]
        if differing:
            raise InputError(differing)
        return journal

    def begin(self, fresh: bool = False) -> None:
        """Prepares the file for new cells: the first line where it is missing, no half line at the end."""
        lines = [] if fresh else _whole_lines(self.path)
        kept = lines or [json.dumps({"schema": SCHEMA, "started": self.started, "identity": dict(self.identity)})]
        write_whole_text(self.path, "\n".join(kept) + "\n")

    def add(self, cell: Cell, result: Result, write: bool = True) -> None:
        """A finished cell; `write` is for one process alone."""
        self.results[str(cell)] = result
        if not write:
            return
        line = json.dumps({"cell": str(cell), "result": result_to_json(result)}) + "\n"
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InputError(Mistake(str(self.path), "", f"cannot be written: {error.strerror}")) from None


def _whole_lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    try:
        return path.read_text(encoding="utf-8").split("\n")[:-1]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not text"
        raise InputError(Mistake(str(path), "", f"cannot be read: {reason}")) from None
