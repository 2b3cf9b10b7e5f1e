"""Runs a program in a process group of its own: signals are passed to all of it, and its exit status comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import IO, Any

from poseidon.errors import InputError, Mistake

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""What users, terminals and schedulers send; those that this process was started to ignore stay ignored."""


def run_program(words: Sequence[str], environment: Mapping[str, str], output: IO[Any] | None = None) -> int:
    """The exit status; 128 + the signal's number where one ended the program, as shells have it.

    The program is not in the terminal's foreground and would be stopped if it read from there, so a terminal's input is
    closed for it. `output` takes the place of standard output. InputError where there is no such program.
    """
    waiting: list[int] = []
    group: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        if group:
            _send(group[0], number)
        else:
            waiting.append(number)

    with _handled(forward):
        child = _started(words, environment, output)
        group.append(child.pid)
        for number in waiting:
            _send(child.pid, number)
        status = child.wait()
    return status if status >= 0 else 128 - status


def _started(words: Sequence[str], environment: Mapping[str, str], output: IO[Any] | None) -> subprocess.Popen[bytes]:
    # The signals of a child begin as its parent's were: not with our handlers, but also not ignored by us.
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    try:
        return subprocess.Popen(
            words,
            env=dict(environment),
            stdin=subprocess.DEVNULL if terminal else None,
            stdout=output,
            process_group=0,
        )
    except OSError as error:
        raise InputError(Mistake(words[0], "", f"cannot be started: {error.strerror}")) from None


def _send(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return  # it has just ended


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in FORWARDED}
    for number, old in before.items():
        if old is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old if old is not None else signal.SIG_DFL)
