"""The files on the driver's node in which an actor keeps what it knows."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "poseidon-incumbent-"


def new_checkpoint() -> Path:
    """A path for the file of an actor of this process; removes the files of processes that were killed."""
    folder = Path(tempfile.gettempdir())
    for path in folder.glob(f"{PREFIX}*"):
        owner = path.name.removeprefix(PREFIX).split("-")[0]
        if owner.isdigit() and not _is_running(int(owner)):
            with suppress(OSError):
                path.unlink()
    return folder / f"{PREFIX}{os.getpid()}-{os.urandom(8).hex()}"


def _is_running(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
