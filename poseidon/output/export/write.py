"""Writes an export's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from poseidon.output.export.exported import ExportedFile
from poseidon.whole_file import refuse_link, write_whole_text


def write_files(files: Sequence[ExportedFile], directory: Path) -> tuple[Path, ...]:
    """Writes each file in one go, replacing an older one; InputError where that can't be. Returns the paths."""
    written = []
    for file in files:
        parts = PurePosixPath(file.name).parts
        assert parts, "a file needs a name"
        assert not file.name.startswith("/"), f"{file.name} leaves the directory"
        assert ".." not in parts, f"{file.name} leaves the directory"
        target = directory.joinpath(*parts)
        for depth in range(1, len(parts)):
            refuse_link(directory.joinpath(*parts[:depth]))
        write_whole_text(target, file.text)
        written.append(target)
    return tuple(written)
