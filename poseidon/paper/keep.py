"""What a long study has done, on disk: finished rows, and journals of searches that are not over."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from poseidon.paper.study import Row
from poseidon.whole_file import write_whole_text


@dataclass(frozen=True)
class Keep:
    """Rows and journals by key, in a folder; with no folder nothing is kept."""

    folder: Path | None

    @classmethod
    def of(cls, progress: Path | None, study: str) -> Keep:
        """The folder of a study inside `Request.progress`."""
        return cls(None if progress is None else progress / study)

    def row(self, key: str) -> Row | None:
        """A finished row; None where it has to be measured."""
        path = self._row_path(key)
        if path is None or not path.exists():
            return None
        row: Row = json.loads(path.read_text(encoding="utf-8"))
        return row

    def put(self, key: str, row: Row) -> None:
        """Keeps a finished row; raises InputError where the folder can't be written."""
        if (path := self._row_path(key)) is not None:
            write_whole_text(path, json.dumps(row, allow_nan=False) + "\n")

    def journal(self, key: str) -> Path | None:
        """Where the search with this key keeps its journal."""
        if self.folder is None:
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"{key}.journal"

    def _row_path(self, key: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{key}.json"
