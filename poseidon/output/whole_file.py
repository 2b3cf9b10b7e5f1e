"""Writes a file in one go: a reader finds the old content or the new one, never half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from poseidon.errors import InputError, Mistake


def write_whole(target: Path, text: str) -> None:
    """Replaces a file's content; InputError where it can't be written."""
    temporary: str | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(Mistake(str(target), "", f"cannot be written: {error.strerror}")) from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
