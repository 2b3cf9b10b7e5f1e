"""What is measured, what is kept, and what a study is held to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from poseidon.paper.conduct import conduct
from poseidon.paper.request import Request
from poseidon.paper.rows_file import read_rows
from poseidon.paper.study import Row, Study
from poseidon.sweep.schema import Column
from tests.paper.conftest import write_experiments

COLUMNS = (Column("key", pa.string(), "the part"), Column("value", pa.int64(), "the layers"))


@dataclass
class Watcher:
    """Notes what it is told."""

    told: list[str] = field(default_factory=list)

    def begin(self, total: int) -> None:
        self.told.append(f"{total} in all")

    def started(self, study: Study) -> None:
        self.told.append(f"{study.name} begins")

    def tell(self, line: str) -> None:
        self.told.append(line)

    def finished(self, study: Study, *, kept: bool) -> None:
        self.told.append(f"{study.name} {'kept' if kept else 'done'}")


def measuring(request: Request) -> Iterator[Row]:
    """Two parts, the second of which is interrupted until a file is there."""
    for key in ("one", "two"):

        def measure(key: str = key) -> list[Row]:
            request.tell(key)
            assert request.progress is not None
            if key == "two" and not (request.progress.parent / "go").exists():
                raise KeyboardInterrupt
            return [{"key": key, "value": request.experiment("setting1").model.num_layers}]

        yield from request.part(key, measure)


STUDY = Study("small", "a study", COLUMNS, measuring, ("setting1",))


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    return Request(write_experiments(tmp_path / "experiments", ["setting1", "setting2"]), 60.0, None, print)


def test_a_finished_part_is_not_measured_again(request_: Request, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(KeyboardInterrupt):
        conduct([STUDY], request_, out, Watcher())
    assert read_rows(out, STUDY) is None
    (out / "go").touch()
    watcher = Watcher()
    evaluation = conduct([STUDY], request_, out, watcher)
    assert watcher.told == ["1 in all", "small begins", "two", "small done"]
    assert [(row["key"], row["value"]) for row in evaluation.found["small"].rows] == [("one", 6), ("two", 6)]
    assert evaluation.measured == {"small"}
    again = Watcher()
    assert conduct([STUDY], request_, out, again).measured == frozenset()
    assert again.told == ["1 in all", "small kept"]


def test_parts_of_other_inputs_are_not_taken(request_: Request, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        conduct([STUDY], request_, out, Watcher())
    (out / "go").touch()
    watcher = Watcher()
    conduct([STUDY], replace(request_, time_limit_s=50.0), out, watcher)
    assert "one" in watcher.told


def test_redo_forgets_rows_and_parts_but_not_the_progress_of_long_searches(request_: Request, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "progress").mkdir(parents=True)
    (out / "progress" / "journal").touch()
    (out / "go").touch()
    conduct([STUDY], request_, out, Watcher())
    (out / "go").unlink()
    with pytest.raises(KeyboardInterrupt):
        conduct([STUDY], request_, out, Watcher(), redo=True)
    assert read_rows(out, STUDY) is None
    assert (out / "progress" / "journal").exists()


def test_a_study_is_held_to_the_experiments_and_columns_that_it_names(request_: Request, tmp_path: Path) -> None:
    def loads_another(request: Request) -> Iterator[Row]:
        yield {"key": request.experiment("setting2").name}

    def has_another_column(request: Request) -> Iterator[Row]:
        yield {"key": "one", "price": 1}

    with pytest.raises(AssertionError, match="does not name the experiment setting2"):
        conduct([replace(STUDY, run=loads_another)], request_, tmp_path / "a", Watcher())
    with pytest.raises(AssertionError, match="has no columns"):
        conduct([replace(STUDY, run=has_another_column)], request_, tmp_path / "b", Watcher())


def test_rows_of_another_schema_are_not_read(request_: Request, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    conduct([STUDY], request_, tmp_path, Watcher())
    assert read_rows(tmp_path, STUDY) is not None
    assert read_rows(tmp_path, replace(STUDY, columns=COLUMNS[:1])) is None


def test_without_a_runner_parts_are_just_measured(request_: Request, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    rows = list(measuring(replace(request_, progress=tmp_path / "progress")))
    assert [row["key"] for row in rows] == ["one", "two"]
