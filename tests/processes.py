"""Finds the processes that a test or benchmark has started, and nobody else's, however they were started."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

LONGEST_S = 60.0


def ray_environment(folder: str) -> dict[str, str]:
    """An environment in which Ray stays on this machine, with its files in a folder (its path must be short)."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    own_address = socket.gethostbyname(socket.gethostname())
    return kept | {
        "HOME": folder,
        "TMPDIR": folder,
        "HTTP_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": f"127.0.0.1,localhost,::1,{own_address}",
        "RAY_AUTH_MODE": "disabled",
        "RAY_TMPDIR": folder,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        "RAY_USAGE_STATS_REPORT_URL": "http://127.0.0.1:9/",
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }


def ray_processes(folder: str, *words: str) -> list[int]:
    """Ids of the Ray processes whose files are in a folder and whose command line holds all the words.

    The title of a worker hides its environment and its arguments, but not where it writes its output.
    """
    return [pid for pid in with_words(*words) if _writes_to(pid, folder)]


def ray_workers(folder: str, title: str = "") -> list[int]:
    """Ids of the workers of that Ray that do a task: those with this title, or with any but that of the actor."""
    found = ray_processes(folder, f"ray::{title}")
    idle = ("ray::IDLE", "ray::IncumbentActor", "ray::DashboardAgent", "ray::RuntimeEnvAgent")
    return found if title else [pid for pid in found if not _line(pid).startswith(idle)]


def with_words(*words: str) -> list[int]:
    """Ids of all processes of this machine whose command line holds all the words."""
    return [pid for pid in _all() if all(word in _line(pid) for word in words)]


def marked(mark: str) -> list[int]:
    """Ids of the processes that have this text in their environment (what a process starts inherits it)."""
    return [pid for pid in _all() if mark.encode() in _read(pid, "environ")]


def kill_all(find: Callable[[], list[int]]) -> None:
    """Kills processes until there are none."""

    def none_left() -> bool:
        ids = find()
        for pid in ids:
            kill(pid)
        return not ids

    assert wait_until(none_left), f"{find()} do not die"


def remove_folder(folder: str) -> None:
    """Removes the folder of a Ray whose processes were told to end: the last of them may still write to it."""

    def is_gone() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not Path(folder).exists()

    assert wait_until(is_gone), f"{folder} is written to again and again"


def kill(pid: int) -> bool:
    """Kills a process; whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def wait_until(holds: Callable[[], object], seconds: float = LONGEST_S) -> bool:
    """Whether something comes true in time."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _all() -> list[int]:
    return sorted(int(path.name) for path in Path("/proc").glob("[0-9]*") if int(path.name) != os.getpid())


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _line(pid: int) -> str:
    return _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")


def _parent(pid: int) -> int:
    after_name = _read(pid, "stat").rpartition(b")")[2].split()
    return int(after_name[1]) if after_name and after_name[0] != b"Z" else -1


def _writes_to(pid: int, folder: str) -> bool:
    if folder in _line(pid):
        return "ray" in _line(pid) and _parent(pid) != -1
    try:
        return any(os.readlink(f"/proc/{pid}/fd/{number}").startswith(folder + "/") for number in (1, 2))
    except OSError:
        return False
