"""How far the evaluation is: a bar on a terminal, a plain line for everything that begins anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from poseidon.output.console import console_for, is_terminal
from poseidon.output.streams import write_error
from poseidon.paper.conduct import Observer
from poseidon.paper.study import Study


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


class _Silence:
    def begin(self, total: int) -> None:
        pass

    def started(self, study: Study) -> None:
        pass

    def tell(self, line: str) -> None:
        pass

    def finished(self, study: Study, *, kept: bool) -> None:
        pass

    def close(self) -> None:
        pass


class _Lines:
    """Job logs and pipes."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._total = self._done = 0
        self._study = ""

    def begin(self, total: int) -> None:
        self._total = total

    def started(self, study: Study) -> None:
        self._study = study.name
        self._write(study.title)

    def tell(self, line: str) -> None:
        self._write(line)

    def finished(self, study: Study, *, kept: bool) -> None:
        self._done += 1
        self._study = study.name
        self._write("its rows are there already" if kept else "done")

    def close(self) -> None:
        pass

    def _write(self, line: str) -> None:
        seconds = f"{time.perf_counter() - self._began:.1f} s"
        write_error(f"[{seconds:>9}] studies {self._done}/{self._total}  {self._study}: {line}")


class _Bar:
    """A terminal: studies done, and what is measured now."""

    def __init__(self) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("studies {task.completed}/{task.total}"),
            BarColumn(bar_width=16),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=console_for(sys.stderr, sys.stderr),
            refresh_per_second=4,
            transient=True,
        )
        self._task = self._progress.add_task("", total=0, start=False)
        self._study = ""

    def begin(self, total: int) -> None:
        self._progress.update(self._task, total=total)
        self._progress.start_task(self._task)
        self._progress.start()

    def started(self, study: Study) -> None:
        self._study = study.name
        self.tell(study.title)

    def tell(self, line: str) -> None:
        self._progress.update(self._task, description=f"{self._study}: {line}")

    def finished(self, study: Study, *, kept: bool) -> None:
        self._progress.advance(self._task)

    def close(self) -> None:
        self._progress.stop()
