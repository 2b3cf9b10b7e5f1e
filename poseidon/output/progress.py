"""How far a search is: a live table on a terminal, a plain line every few seconds anywhere else."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.live import Live
from rich.table import Table

from poseidon.output.console import Columns, console_for, is_terminal
from poseidon.output.numbers import milliseconds, percent
from poseidon.output.streams import write_error
from poseidon.search.tolerance import relative_gap
from poseidon.search.watch import Progress

FIRST_TABLE_S = 0.4
"""A search that ends sooner shows no table: it would only flicker."""
FIRST_LINE_S = 2.0
LONGEST_WAIT_S = 10.0
"""Between two lines; the wait grows from `FIRST_LINE_S` to this."""


class Display(Protocol):
    """Takes the progress of a search, a few times a second."""

    def show(self, progress: Progress) -> None:
        """Shows it, now or later."""

    def close(self) -> None:
        """Nothing more will come."""


@contextmanager
def display(quiet: bool) -> Iterator[Display]:
    """What suits standard error."""
    chosen: Display = _Silence() if quiet else _LiveTable() if is_terminal(sys.stderr) else _Lines()
    try:
        yield chosen
    finally:
        chosen.close()


class _Silence:
    def show(self, progress: Progress) -> None:
        pass

    def close(self) -> None:
        pass


class Pace:
    """When the next plain line is due: after 2 seconds, then ever less often."""

    def __init__(self) -> None:
        """Nothing was written yet."""
        self._next_s = self._wait_s = FIRST_LINE_S

    def is_due(self, seconds: float) -> bool:
        """Whether to write a line now, so many seconds after the beginning; the next one is due later then."""
        if seconds < self._next_s:
            return False
        self._wait_s = min(LONGEST_WAIT_S, 1.5 * self._wait_s)
        self._next_s = seconds + self._wait_s
        return True


class _Lines:
    """Job logs and pipes: one plain line now and then."""

    def __init__(self) -> None:
        self._pace = Pace()

    def show(self, progress: Progress) -> None:
        if self._pace.is_due(progress.seconds):
            write_error(progress_line(progress))

    def close(self) -> None:
        pass


class _LiveTable:
    """A terminal: one table, redrawn four times a second."""

    def __init__(self) -> None:
        self._live: Live | None = None

    def show(self, progress: Progress) -> None:
        if self._live is None:
            if progress.seconds < FIRST_TABLE_S:
                return
            console = console_for(sys.stderr, sys.stderr)
            self._live = Live(console=console, refresh_per_second=4, transient=True)
            self._live.start()
        self._live.update(progress_table(progress))

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()


def _cells(progress: Progress) -> dict[str, str]:
    """What is shown, under the names that users of such solvers know."""
    known = math.isfinite(progress.best_ms)
    gap = relative_gap(progress.best_ms, progress.lower_bound_ms) if known else math.inf
    return {
        "time": f"{progress.seconds:.1f} s",
        "bound": f"{milliseconds(progress.lower_bound_ms)} ms" if math.isfinite(progress.lower_bound_ms) else "-",
        "incumbent": f"{milliseconds(progress.best_ms)} ms" if known else "-",
        "gap": percent(gap) if known else "-",
        "search nodes": f"{progress.search_nodes:,}",
        "outer choices": f"{progress.problems_done}/{progress.problems}",
    }


def progress_line(progress: Progress) -> str:
    """One plain line."""
    cells = _cells(progress)
    time = cells.pop("time")
    return f"[{time:>9}] " + "  ".join(f"{name} {value}" for name, value in cells.items())


def progress_table(progress: Progress) -> Table:
    """One row under fixed headings."""
    cells = _cells(progress)
    columns = Columns(sys.stderr)
    columns.number(*cells)
    columns.row(*cells.values())
    return columns.table()
