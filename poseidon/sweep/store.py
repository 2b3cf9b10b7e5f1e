"""What a sweep has done so far, on disk: one small Parquet file a finished run, and all rows in one file at the end.

A run's file appears under its name in one step, after its content is on the disk, so that a kill at any moment loses at
most the runs that were under way. Its name is the run's identity: rows of changed inputs are never mixed in.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from poseidon.errors import InputError, Mistake
from poseidon.output.plan_file import prepare_directory
from poseidon.sweep.grid import Run
from poseidon.sweep.outcome import RunStatus
from poseidon.sweep.row import Row
from poseidon.sweep.schema import AXIS_PREFIX, row_schema, sweep_schema
from poseidon.sweep.sweep import Axis
from poseidon.whole_file import TEMPORARY, refuse_link, write_whole

RUNS_FOLDER = "runs"
RUNS_FILE = "runs.parquet"
PLOT_FILES = ("plot.png", "plot.svg")
RESULT_FILES = (RUNS_FILE, *PLOT_FILES)
LOCK_FILE = ".lock"
SUFFIX = ".parquet"


class Store:
    """The rows of a sweep in a directory."""

    def __init__(self, directory: Path) -> None:
        """The directory need not be there before something is written."""
        self.directory = directory
        self._runs = directory / RUNS_FOLDER

    @property
    def runs_file(self) -> Path:
        """All rows in one file."""
        return self.directory / RUNS_FILE

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Makes the directory and keeps other sweeps out; the system ends that with the process, however it ends.

        Raises InputError where the directory can't be made, leads elsewhere or another sweep writes to it.
        """
        for place in (self._runs, self.directory / LOCK_FILE):
            refuse_link(place)
        prepare_directory(self._runs)
        with (self.directory / LOCK_FILE).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                message = "another sweep is writing here; wait for it, or give another directory"
                raise InputError(Mistake(str(self.directory), "", message)) from None
            for folder in (self.directory, self._runs):
                for left in folder.glob(f".*{TEMPORARY}"):  # of a sweep that was killed
                    left.unlink(missing_ok=True)
            yield

    def clear(self) -> None:
        """Forgets all rows."""
        for path in self._runs.glob(f"*{SUFFIX}"):
            path.unlink(missing_ok=True)
        self.drop_results()

    def drop_results(self) -> None:
        """Removes what is made of all rows, before some are done anew: it must not be taken for the new result."""
        for name in RESULT_FILES:
            (self.directory / name).unlink(missing_ok=True)

    def put(self, row: Row) -> None:
        """Keeps the row of a finished run."""
        table = pa.Table.from_pylist([row], schema=row_schema())
        write_whole(self._runs / f"{row['run_id']}{SUFFIX}", lambda path: pq.write_table(table, path))

    def rows(self, identities: Iterable[str]) -> dict[str, Row]:
        """The rows that are there, by identity. Runs that failed are left out: they are to be done again."""
        found = {}
        for identity in identities:
            row = self._row(identity)
            if row is not None and row["status"] != RunStatus.ERROR:
                found[identity] = row
        return found

    def _row(self, identity: str) -> Row | None:
        """A row; None where there is none, or none that can be read (a disk may lose what it had promised to keep)."""
        path = self._runs / f"{identity}{SUFFIX}"
        if not path.exists():
            return None
        try:
            table = pq.read_table(path, partitioning=None)
        except (pa.ArrowInvalid, OSError):
            return None
        if table.schema != row_schema() or table.num_rows != 1:
            return None
        row: Row = table.to_pylist()[0]
        return row if row["run_id"] == identity else None

    def merge(self, runs: Sequence[Run], axes: Sequence[Axis], rows: Mapping[str, Row]) -> Path:
        """Writes all rows into one file, in the order of the grid; returns its path."""
        table = pa.Table.from_pylist([whole_row(run, axes, rows[run.identity]) for run in runs], sweep_schema(axes))
        write_whole(self.runs_file, lambda path: pq.write_table(table, path))
        return self.runs_file


def whole_row(run: Run, axes: Sequence[Axis], row: Row) -> Row:
    """A row of the sweep: where the run stands in the grid now, and its kept row."""
    labels = {
        AXIS_PREFIX + axis.name: float(label) if axis.is_numeric else label
        for axis, label in zip(axes, run.labels, strict=True)
    }
    return {**labels, **row, "run": run.number, "name": run.name}
