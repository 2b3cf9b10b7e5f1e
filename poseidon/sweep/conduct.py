"""Conducts a sweep: what is done already, what is left, every row kept as it comes, all rows in one file at the end."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from poseidon.sweep.executor import Executor, Finished
from poseidon.sweep.grid import Run
from poseidon.sweep.row import Row, row_of
from poseidon.sweep.store import Store, whole_row
from poseidon.sweep.sweep import Axis, Sweep


class Observer(Protocol):
    """Is told how far a sweep is."""

    def begin(self, total: int, kept: int) -> None:
        """`kept` of `total` different runs were done before."""

    def started(self, run: Run) -> None:
        """A run begins."""

    def finished(self, finished: Finished) -> None:
        """A run has ended and its row is kept."""


@dataclass(frozen=True)
class SweepResult:
    """All rows of a sweep, in the order of the grid, and the file that holds them."""

    name: str
    axes: tuple[Axis, ...]
    rows: tuple[Row, ...]
    file: Path
    num_kept: int
    """Different runs that had been done before."""


def conduct(
    sweep: Sweep, runs: Sequence[Run], store: Store, executor: Executor, observer: Observer, *, restart: bool = False
) -> SweepResult:
    """Does the runs that the store does not hold yet; `restart` forgets those that it does.

    Raises InputError when another sweep writes to the same store or the disk is full. An interruption passes through;
    all finished runs are kept by then.
    """
    with store.locked():
        if restart:
            store.clear()
        different = {run.identity: run for run in reversed(runs)}
        rows = store.rows(different)
        num_kept = len(rows)
        missing = [run for run in runs if run is different[run.identity] and run.identity not in rows]
        if missing:
            store.drop_results()
        observer.begin(len(different), num_kept)
        with closing(executor.finished(missing, observer.started)) as results:
            for finished in results:
                row = row_of(finished, executor.backend)
                store.put(row)
                rows[finished.run.identity] = row
                observer.finished(finished)
        file = store.merge(runs, sweep.axes, rows)
    whole = tuple(whole_row(run, sweep.axes, rows[run.identity]) for run in runs)
    return SweepResult(sweep.name, sweep.axes, whole, file, num_kept)
