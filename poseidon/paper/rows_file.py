"""The rows of a study on disk: a Parquet file that is whole or not there."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from poseidon.paper.identity import SCHEMA, Effort
from poseidon.paper.provenance import PROVENANCE, stamped
from poseidon.paper.study import Row, Study
from poseidon.whole_file import write_whole

ROWS_FOLDER = "rows"
SUFFIX = ".parquet"


@dataclass(frozen=True)
class StudyRows:
    """A finished study as it is on disk."""

    study: Study
    identity: str
    """Of what it was measured from (`study_identity`)."""
    effort: Effort
    rows: tuple[Row, ...]


def rows_path(directory: Path, study: Study) -> Path:
    """Where the rows of a study are kept."""
    return directory / ROWS_FOLDER / f"{study.name}{SUFFIX}"


def write_rows(directory: Path, found: StudyRows) -> Path:
    """Writes the rows of a finished study; returns the file's path."""
    path, effort = rows_path(directory, found.study), found.effort
    metadata = {
        "identity": found.identity,
        "time_limit_s": repr(effort.time_limit_s),
        "backend": effort.backend,
        "num_workers": str(effort.num_workers),
    }
    _write(path, found.study, found.rows, metadata)
    return path


def read_rows(directory: Path, study: Study) -> StudyRows | None:
    """The rows of a finished study; None where there are none, or none that this version can read."""
    found = _read(rows_path(directory, study), study)
    if found is None:
        return None
    rows, metadata = found
    try:
        effort = Effort(float(metadata["time_limit_s"]), metadata["backend"], int(metadata["num_workers"]))
        return StudyRows(study, metadata["identity"], effort, rows)
    except (KeyError, ValueError):
        return None


def forget(directory: Path, study: Study) -> None:
    """Removes the rows of a study and its finished parts: they must not be taken for those that are measured anew."""
    rows_path(directory, study).unlink(missing_ok=True)
    shutil.rmtree(_parts_folder(directory, study), ignore_errors=True)


class Parts:
    """The finished parts of a study that is not over, each in a file of its own beside the study's."""

    def __init__(self, directory: Path, study: Study, identity: str) -> None:
        """Parts of another identity are not looked at."""
        self._folder = _parts_folder(directory, study)
        self._study = study
        self._identity = identity

    def get(self, key: str) -> tuple[Row, ...] | None:
        """See `PartStore`."""
        found = _read(self._path(key), self._study)
        if found is None or (found[1].get("identity"), found[1].get("part")) != (self._identity, key):
            return None
        return found[0]

    def put(self, key: str, rows: Sequence[Row]) -> tuple[Row, ...]:
        """See `PartStore`."""
        _write(self._path(key), self._study, rows, {"identity": self._identity, "part": key})
        kept = self.get(key)
        assert kept is not None, f"the part {key} can't be read back"
        return kept

    def clear(self) -> None:
        """The study is over."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:20]}{SUFFIX}"


def _parts_folder(directory: Path, study: Study) -> Path:
    return directory / ROWS_FOLDER / f"{study.name}-parts"


def _schema(study: Study) -> pa.Schema:
    return pa.schema([column.field for column in (*study.columns, *PROVENANCE)])


def _write(path: Path, study: Study, rows: Sequence[Row], metadata: Mapping[str, str]) -> None:
    known = {column.name for column in (*study.columns, *PROVENANCE)}
    filled = [stamped(row) for row in rows]
    unknown = {name for row in filled for name in row} - known
    assert not unknown, f"{study.name} has no columns {sorted(unknown)}"
    schema = _schema(study).with_metadata({"schema": SCHEMA, "study": study.name, **metadata})
    table = pa.Table.from_pylist(filled, schema=schema)
    write_whole(path, lambda temporary: pq.write_table(table, temporary))


def _read(path: Path, study: Study) -> tuple[tuple[Row, ...], dict[str, str]] | None:
    """Rows and metadata of a file; None where there is none, or it is not of this study as it is now."""
    if not path.exists():
        return None
    try:
        table = pq.read_table(path, partitioning=None)
    except (pa.ArrowInvalid, OSError):
        return None
    metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    if not table.schema.equals(_schema(study)) or metadata.get("schema") != SCHEMA:
        return None
    return tuple(table.to_pylist()), metadata
