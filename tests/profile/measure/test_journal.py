from __future__ import annotations

from pathlib import Path

import pytest

from poseidon.errors import InputError
from poseidon.profile.measure.cells import ComputeCell, TransferCell
from poseidon.profile.measure.journal import Journal
from poseidon.profile.measure.repeats import Timing
from poseidon.profile.measure.results import ComputeResult, MessageResult, NoRoom

IDENTITY = {"model": "tiny", "device": "cpu", "seq_length": 64}
TIMING = Timing(1.25, 0.01, 7)
RESULTS = {
    ComputeCell("dense", 2, 1, "full"): ComputeResult(TIMING, Timing(2.5, 0.02, 7), 10, 20, 5, 40, "measured"),
    TransferCell(1024): MessageResult(TIMING),
    ComputeCell("head", 1, 4): NoRoom("out of memory"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal with three finished cells."""
    path = tmp_path / "out.json.journal"
    journal = Journal.read(path, IDENTITY)
    journal.begin()
    for cell, result in RESULTS.items():
        journal.add(cell, result)
    return path


def test_finished_cells_come_back(path: Path) -> None:
    assert Journal.read(path, IDENTITY).results == {str(cell): result for cell, result in RESULTS.items()}


def test_reading_writes_nothing(tmp_path: Path) -> None:
    assert Journal.read(tmp_path / "none", IDENTITY).results == {}
    assert list(tmp_path.iterdir()) == []


def test_half_a_line_is_dropped_and_the_next_cell_starts_a_new_one(path: Path) -> None:
    text = path.read_text()
    path.write_text(text[:-10])
    journal = Journal.read(path, IDENTITY)
    assert len(journal.results) == 2
    journal.begin()
    journal.add(TransferCell(2048), MessageResult(TIMING))
    assert len(Journal.read(path, IDENTITY).results) == 3


def test_the_start_is_that_of_the_first_run(path: Path) -> None:
    path.write_text(path.read_text().replace('"started": "2', '"started": "1'))
    assert Journal.read(path, IDENTITY).started.startswith("1")


def test_other_processes_write_nothing(path: Path) -> None:
    journal = Journal.read(path, IDENTITY)
    journal.add(TransferCell(2048), MessageResult(TIMING), write=False)
    assert len(journal.results) == 4
    assert len(Journal.read(path, IDENTITY).results) == 3


def test_a_journal_of_something_else_is_refused_with_what_differs(path: Path) -> None:
    with pytest.raises(InputError) as error:
        Journal.read(path, IDENTITY | {"device": "cuda", "seq_length": 128})
    assert [mistake.field for mistake in error.value.mistakes] == ["device", "seq_length"]
    assert "was begun with 'cpu', not 'cuda'" in str(error.value)


@pytest.mark.parametrize("text", ["not json\n", '{"schema": "poseidon.plan/1", "identity": {}}\n', "[1]\n", "{}\n"])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "journal").write_text(text)
    with pytest.raises(InputError, match="is not a journal"):
        Journal.read(tmp_path / "journal", IDENTITY)
