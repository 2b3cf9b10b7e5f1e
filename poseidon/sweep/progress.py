"""How far a sweep is: a bar on a terminal, a plain line now and then anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from poseidon.output.console import console_for, is_terminal
from poseidon.output.numbers import milliseconds, plural
from poseidon.output.progress import Pace
from poseidon.output.streams import write_error
from poseidon.plan.plan import Plan
from poseidon.sweep.conduct import Observer
from poseidon.sweep.executor import Finished
from poseidon.sweep.grid import Run


class Display(Observer, Protocol):
    """An observer that shows what it is told."""

    def close(self) -> None:
        """Nothing more will come."""


@contextmanager
def display(quiet: bool) -> Iterator[Display]:
    """What suits standard error."""
    chosen: Display = _Silence() if quiet else _Bar() if is_terminal(sys.stderr) else _Lines()
    try:
        yield chosen
    finally:
        chosen.close()


def finished_text(finished: Finished) -> str:
    """One run in a few words."""
    answer, status = finished.outcome.answer, finished.outcome.status
    time_ms = f", {milliseconds(answer.pipeline.iteration_time_ms)} ms" if isinstance(answer, Plan) else ""
    return f"{finished.run.name}: {status}{time_ms}"


class _Silence:
    def begin(self, total: int, kept: int) -> None:
        pass

    def started(self, run: Run) -> None:
        pass

    def finished(self, finished: Finished) -> None:
        pass

    def close(self) -> None:
        pass


class _Lines:
    """Job logs and pipes."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._pace = Pace()
        self._total = self._done = 0

    def begin(self, total: int, kept: int) -> None:
        self._total, self._done = total, kept
        if kept:
            write_error(f"{plural(kept, 'run')} of {total:,} done before")

    def started(self, run: Run) -> None:
        pass

    def finished(self, finished: Finished) -> None:
        self._done += 1
        seconds = time.perf_counter() - self._began
        if self._pace.is_due(seconds):
            time_text = f"{seconds:.1f} s"
            write_error(f"[{time_text:>9}] runs {self._done:,}/{self._total:,}  {finished_text(finished)}")

    def close(self) -> None:
        pass


class _Bar:
    """A terminal: runs done, and the one begun last."""

    def __init__(self) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("runs {task.completed:,}/{task.total:,}"),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=console_for(sys.stderr, sys.stderr),
            refresh_per_second=4,
            transient=True,
        )
        self._task = self._progress.add_task("", total=0, start=False)

    def begin(self, total: int, kept: int) -> None:
        self._progress.update(self._task, total=total, completed=kept)
        self._progress.start_task(self._task)
        self._progress.start()

    def started(self, run: Run) -> None:
        self._progress.update(self._task, description=run.name)

    def finished(self, finished: Finished) -> None:
        self._progress.advance(self._task)

    def close(self) -> None:
        self._progress.stop()
