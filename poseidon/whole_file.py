"""Writes a file in one go: a reader finds the old content or the new one, never half of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from poseidon.errors import InputError, Mistake

TEMPORARY = ".tmp"
"""How the names of files end that a killed process may leave behind; they begin with a dot."""


def write_whole(target: Path, write: Callable[[str], object]) -> None:
    """Lets `write` make a file beside `target`, brings it to the disk, and gives it its name in one step.

    Makes the directory where there is none. Raises InputError where any of that fails.
    """
    temporary: str | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=TEMPORARY)
        os.close(handle)
        write(temporary)
        os.chmod(temporary, 0o644)
        _to_disk(temporary)
        os.replace(temporary, target)
        _to_disk(target.parent)
    except OSError as error:
        raise InputError(Mistake(str(target), "", f"cannot be written: {error.strerror or error}")) from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def refuse_link(place: Path) -> None:
    """InputError where a file or folder of ours, inside of the folder that the user named, leads somewhere else.

    A folder that somebody sent along may hold links to other files of the user.
    """
    if place.is_symlink():
        raise InputError(Mistake(str(place), "", "is a link to another place; remove it, or give another folder"))


def write_whole_text(target: Path, text: str) -> None:
    """The same for text."""
    write_whole(target, lambda path: Path(path).write_text(text, encoding="utf-8"))


def _to_disk(path: str | Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
