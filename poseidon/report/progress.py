"""Which search of a report runs: a line that is overwritten on a terminal, a plain line now and then anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.markup import escape

from poseidon.output.console import console_for, is_terminal
from poseidon.output.progress import Pace
from poseidon.output.streams import write_error
from poseidon.report.sensitivity import Announce


@contextmanager
def announcer(quiet: bool) -> Iterator[Announce]:
    """What suits standard error."""
    if quiet:
        yield lambda number, total, label: None
    elif is_terminal(sys.stderr):
        with console_for(sys.stderr, sys.stderr).status("") as status:
            yield lambda number, total, label: status.update(escape(_line(number, total, label)))
    else:
        yield _Lines().announce


def _line(number: int, total: int, label: str) -> str:
    return f"search {number}/{total}: {label}"


class _Lines:
    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._pace = Pace()

    def announce(self, number: int, total: int, label: str) -> None:
        seconds = time.perf_counter() - self._began
        if self._pace.is_due(seconds):
            write_error(f"[{seconds:>7.1f} s] {_line(number, total, label)}")
