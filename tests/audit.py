"""What this process does to the rest of the machine while a piece of code runs, as Python's own audit hooks tell it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

CHANGES = [
    "os.chmod",
    "os.link",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.symlink",
    "os.truncate",
    "shutil.copyfile",
    "shutil.move",
    "shutil.rmtree",
    "tempfile.mkdtemp",
    "tempfile.mkstemp",
]
"""Events whose first argument is a path that changes; the second one, too, where a file is moved."""
PROCESSES = [
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "os.system",
    "pty.spawn",
    "subprocess.Popen",
]
NETWORK = [
    "socket.bind",
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.sendmsg",
    "socket.sendto",
]
CODE = ["ctypes.dlopen", "pickle.find_class", "webbrowser.open"]
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass
class Deeds:
    """What was done."""

    changed: list[str] = field(default_factory=list)
    """Paths that were written to, made, moved or removed."""
    others: list[str] = field(default_factory=list)
    """Processes that were started, messages that were sent, code that was loaded for data."""

    def outside(self, *folders: os.PathLike[str]) -> list[str]:
        """Everything but changes below the folders."""
        inside = [os.path.realpath(folder) for folder in folders]
        strays = [path for path in self.changed if not any(_is_below(path, folder) for folder in inside)]
        return strays + self.others


def _is_below(path: str, folder: str) -> bool:
    real = os.path.join(os.path.realpath(os.path.dirname(path) or "."), os.path.basename(path))
    return real == folder or real.startswith(folder + os.sep)


_watching: list[Deeds] = []
_is_installed = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching:
        return
    deeds = _watching[-1]
    if event == "open":
        path, _, flags = arguments
        if isinstance(path, str | bytes) and flags & WRITING and os.fsdecode(path) != os.devnull:
            deeds.changed.append(os.fsdecode(path))
    elif event in CHANGES:
        pair = event in ("os.rename", "os.link", "shutil.move")
        paths = arguments[: 2 if pair else 1]
        deeds.changed += [os.fsdecode(path) for path in paths if isinstance(path, str | bytes | os.PathLike)]
    elif event in PROCESSES or event in NETWORK or event in CODE:
        deeds.others.append(f"{event} {arguments!r:.300}")


@contextmanager
def audited() -> Iterator[Deeds]:
    """Notes what is done inside; modules that are loaded on the way leave no compiled files."""
    global _is_installed
    if not _is_installed:
        sys.addaudithook(_hook)
        _is_installed = True
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    _watching.append(Deeds())
    try:
        yield _watching[-1]
    finally:
        _watching.pop()
        sys.dont_write_bytecode = before
