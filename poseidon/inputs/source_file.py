"""A file of an experiment, and the files that it refers to."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SourceFile:
    """Where a file is opened and what it is called.

    `path` can be opened from the working directory. `key` is relative to the folder of the file that loading started
    from, so that it is the same wherever the command runs.
    """

    path: Path
    key: str

    @classmethod
    def first(cls, path: str | Path) -> SourceFile:
        """The file that loading starts from."""
        return cls(Path(path), Path(path).name)

    def refer(self, reference: str) -> SourceFile:
        """The file that this one calls `reference`."""
        key = posixpath.normpath(posixpath.join(posixpath.dirname(self.key), reference))
        return SourceFile(self.path.parent / reference, key)

    @property
    def label(self) -> str:
        """The file's name in errors."""
        return file_label(self.path)


def file_label(path: str | Path) -> str:
    """The name of a file as errors show it: printable, and cut when it is absurdly long."""
    name = os.path.normpath(path)
    name = name if name.isprintable() else ascii(name)
    return name if len(name) <= 300 else f"...{name[-297:]}"
