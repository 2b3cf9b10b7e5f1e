"""Files and folders named after the process that made them, and those whose process is gone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def own_prefix(prefix: str) -> str:
    """How the name of what this process makes begins."""
    return f"{prefix}{os.getpid()}-"


def left_behind(folder: Path, prefix: str) -> Iterator[Path]:
    """What processes that no longer run have left in a folder under `own_prefix(prefix)`."""
    for path in folder.glob(f"{prefix}*"):
        owner = path.name.removeprefix(prefix).split("-")[0]
        if owner.isdigit() and not _is_running(int(owner)):
            yield path


def _is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
