"""The files on the driver's node in which an actor keeps what it knows, each in a folder that nobody else may enter:
they hold pickles.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from poseidon.search.left_behind import left_behind, own_prefix

PREFIX = "poseidon-incumbent-"


def new_checkpoint() -> Path:
    """A path for the file of an actor of this process; removes the folders of processes that were killed."""
    for path in left_behind(Path(tempfile.gettempdir()), PREFIX):
        shutil.rmtree(path, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=own_prefix(PREFIX))) / "incumbent"


def remove_checkpoint(path: Path) -> None:
    """Removes the file with its folder."""
    shutil.rmtree(path.parent, ignore_errors=True)
