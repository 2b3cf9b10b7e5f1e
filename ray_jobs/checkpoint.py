"""The files on the driver's node in which an actor keeps what it knows."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from poseidon.search.left_behind import left_behind, own_prefix

PREFIX = "poseidon-incumbent-"


def new_checkpoint() -> Path:
    """A path for the file of an actor of this process; removes the files of processes that were killed."""
    folder = Path(tempfile.gettempdir())
    for path in left_behind(folder, PREFIX):
        with suppress(OSError):
            path.unlink()
    return folder / f"{own_prefix(PREFIX)}{os.urandom(8).hex()}"
