"""A directory of shims for one run of a script, and what the caught launchers leave in it."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.launch import shim
from poseidon.launch.choices import Choices
from poseidon.whole_file import write_whole_text

CHOICES = "choices.json"
RUNNING = "running"
"""Every caught launcher holds this file while it runs."""
RESULT = "result-"


@dataclass(frozen=True)
class Shims:
    """The directory; nobody else can write to it."""

    directory: Path

    def environment(self, before: Mapping[str, str]) -> dict[str, str]:
        """An environment in which the shims are found first: by PATH, and by bash's functions.

        The functions stay when a script puts another directory before the shims', as activating an environment does.
        """
        path = f"{self.directory}{os.pathsep}{before.get('PATH', os.defpath)}"
        functions = {f"BASH_FUNC_{name}%%": _function(name) for name in shim.NAMES}
        return {**before, "PATH": path, shim.DIRECTORY: str(self.directory), **functions}

    def wait(self) -> None:
        """Until no caught launcher runs any more: a script that was ended by a signal leaves them behind."""
        with (self.directory / RUNNING).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)

    def results(self) -> list[dict[str, Any]]:
        """What the caught launchers left, in the order in which they were caught."""
        files = sorted(self.directory.glob(f"{RESULT}*.json"))
        return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def _function(name: str) -> str:
    """A bash function; what still runs when the directory is gone gets the real program."""
    file = f'"${shim.DIRECTORY}/{name}"'
    return f'() {{ if [ -x {file} ]; then {file} "$@"; else command {name} "$@"; fi; }}'


@contextmanager
def shims(choices: Choices) -> Iterator[Shims]:
    """Makes the directory, and removes it at the end."""
    directory = Path(tempfile.mkdtemp(prefix="poseidon-launch-"))
    try:
        (directory / CHOICES).write_text(choices.text(), encoding="utf-8")
        (directory / shim.INTERPRETER).write_text(sys.executable, encoding="utf-8")
        (directory / shim.ENTRY).write_text(_entry(directory), encoding="utf-8")
        (directory / RUNNING).touch()
        for name in (*shim.NAMES, *_other_pythons()):
            _write_shim(directory / name)
        yield Shims(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _other_pythons() -> set[str]:
    """``python3.11`` and its like, as far as they are on the PATH."""
    folders = [Path(folder) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    names = {file.name for folder in folders if folder.is_dir() for file in folder.glob("python3.*")}
    return {name for name in names if shim.is_python(name)}


def _write_shim(file: Path) -> None:
    program = (sys.executable, "-I", "-S", str(Path(shim.__file__)), file.name)
    file.write_text(f'#!/bin/sh\nexec {shlex.join(program)} "$@"\n', encoding="utf-8")
    file.chmod(0o700)
    if not os.access(file, os.X_OK):
        message = "nothing may be run from this directory; set TMPDIR to one without noexec"
        raise InputError(Mistake(str(file.parent), "", message))


def _entry(directory: Path) -> str:
    """The program that a shim starts for a launcher: `poseidon launch` for what it caught."""
    root, words = str(Path(__file__).parents[2]), ["launch", "--caught", str(directory), "--"]
    return f"import sys\nsys.path[0] = {root!r}\nsys.argv[1:1] = {words!r}\nfrom poseidon.cli import main\nmain()\n"


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """While a caught launcher runs."""
    with (directory / RUNNING).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def leave_result(directory: Path, result: Mapping[str, Any]) -> None:
    """Leaves what became of a caught launcher to the process that started the script; a later one replaces it."""
    pid = os.getpid()
    mine = sorted(directory.glob(f"{RESULT}*-{pid}.json"))
    number = len(list(directory.glob(f"{RESULT}*.json")))
    file = mine[0] if mine else directory / f"{RESULT}{number:04d}-{pid}.json"
    write_whole_text(file, json.dumps(result))
