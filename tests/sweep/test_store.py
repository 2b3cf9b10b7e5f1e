from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from poseidon.errors import InputError
from poseidon.sweep.conduct import SweepResult, conduct
from poseidon.sweep.executor import Finished, InProcess
from poseidon.sweep.grid import Run
from poseidon.sweep.outcome import RunStatus
from poseidon.sweep.row import row_of
from poseidon.sweep.run import do_run, failed_outcome
from poseidon.sweep.schema import row_schema
from poseidon.sweep.store import Store
from poseidon.sweep.sweep import Sweep
from poseidon.whole_file import write_whole

Build = Callable[..., tuple[Sweep, tuple[Run, ...]]]


class Counting:
    """An observer that counts."""

    def __init__(self) -> None:
        self.total = self.kept = 0
        self.names: list[str] = []

    def begin(self, total: int, kept: int) -> None:
        self.total, self.kept = total, kept

    def started(self, run: Run) -> None:
        pass

    def finished(self, finished: Finished) -> None:
        self.names.append(finished.run.name)


def swept(built: tuple[Sweep, tuple[Run, ...]], store: Store, **options: Any) -> tuple[SweepResult, Counting]:
    sweep, runs = built
    observer = Counting()
    return conduct(sweep, runs, store, InProcess(), observer, **options), observer


def test_a_kept_row_is_read_back_whole(sweep_of: Build, tmp_path: Path) -> None:
    _, (run, _) = sweep_of()
    store = Store(tmp_path / "out")
    row = row_of(Finished(run, do_run(run)), "in-process")
    with store.locked():
        store.put(row)
    read = store.rows([run.identity, "unknown"])
    assert read == {run.identity: dict.fromkeys(row_schema().names) | row}
    assert row["status"] == "optimal"
    assert sum(sum(stage["layers"]) for stage in row["stages"]) == 8


def test_a_file_gets_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "x.parquet"
    target.write_text("old")

    def half(path: str) -> None:
        Path(path).write_text("half of the new")
        assert target.read_text() == "old"
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match=r"x.parquet: cannot be written: No space left on device"):
        write_whole(target, half)
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]
    assert target.read_text() == "old"
    write_whole(target, lambda path: Path(path).write_text("new"))
    assert target.read_text() == "new"


def test_finished_runs_are_not_done_twice_and_added_points_are(sweep_of: Build, tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    first, observer = swept(sweep_of(axes={"training.global_batch_size": [16, 32]}), store)
    assert (observer.total, observer.kept, len(observer.names)) == (2, 0, 2)
    again, observer = swept(
        sweep_of(axes={"batch": {"field": "training.global_batch_size", "values": [8, 32, 16]}}), store
    )
    assert (observer.kept, observer.names) == (2, ["batch=8"])
    by_batch = {row["global_batch_size"]: row for row in again.rows}
    for row in first.rows:
        assert by_batch[row["global_batch_size"]]["started_at"] == row["started_at"]
    assert [row["axis.batch"] for row in again.rows] == [8, 32, 16]
    assert [row["run"] for row in again.rows] == [0, 1, 2]


def test_the_same_inputs_are_done_once_and_are_two_rows(sweep_of: Build, tmp_path: Path) -> None:
    points = [{"label": "as it is"}, {"label": "the same", "set": {"search.seed": 0}}]
    result, observer = swept(sweep_of(axes={"x": {"points": points}}), Store(tmp_path / "out"))
    assert observer.names == ["x=as it is"]
    assert [row["axis.x"] for row in result.rows] == ["as it is", "the same"]
    assert pq.read_table(result.file).num_rows == 2


def test_rows_of_changed_inputs_are_never_mixed_in(
    sweep_of: Build, write_experiment: Callable[..., Path], tmp_path: Path
) -> None:
    store = Store(tmp_path / "out")
    before, _ = swept(sweep_of(), store)
    write_experiment(training={"seq_length": 512})
    after, observer = swept(sweep_of(), store)
    assert observer.kept == 0
    assert {row["seq_length"] for row in after.rows} == {512}
    assert not {row["run_id"] for row in before.rows} & {row["run_id"] for row in after.rows}
    assert pq.read_table(after.file).column("seq_length").to_pylist() == [512, 512]


def test_results_of_all_rows_are_gone_while_some_are_missing(sweep_of: Build, tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    swept(sweep_of(), store)
    sweep, runs = sweep_of(axes={"training.global_batch_size": [16, 64]})

    class Interrupted(Counting):
        def started(self, run: Run) -> None:
            assert not store.runs_file.exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        conduct(sweep, runs, store, InProcess(), Interrupted())
    assert not store.runs_file.exists()
    assert len(store.rows(run.identity for run in runs)) == 1


def test_restart_does_everything_anew(sweep_of: Build, tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    swept(sweep_of(), store)
    _, observer = swept(sweep_of(), store, restart=True)
    assert (observer.kept, len(observer.names)) == (0, 2)


def test_what_cannot_be_read_and_what_failed_is_done_again(sweep_of: Build, tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    sweep, runs = sweep_of(axes={"training.global_batch_size": [16, 32, 64]})
    swept((sweep, runs), store)
    torn = tmp_path / "out" / "runs" / f"{runs[0].identity}.parquet"
    torn.write_bytes(torn.read_bytes()[:1000])
    failed = failed_outcome("killed", do_run(runs[1]).started_at, 1.0)
    store.put(row_of(Finished(runs[1], failed, 4), "processes"))
    result, observer = swept((sweep, runs), store)
    assert (observer.kept, len(observer.names)) == (1, 2)
    assert {row["status"] for row in result.rows} == {RunStatus.OPTIMAL}


def test_what_a_killed_sweep_was_writing_is_swept_away(tmp_path: Path) -> None:
    store = Store(tmp_path / "out")
    left = tmp_path / "out" / "runs" / ".abc.xyz.tmp"
    left.parent.mkdir(parents=True)
    left.write_text("half")
    with store.locked():
        assert not left.exists()


def _try_to_lock(directory: Path, answers: Any) -> None:
    try:
        with Store(directory).locked():
            answers.put("locked")
    except InputError as error:
        answers.put(str(error))


def test_two_sweeps_cannot_write_to_one_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "path", [*sys.path, str(Path(__file__).parents[2])]
    )  # the process unpacks a function of here
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    with Store(tmp_path).locked():
        other = context.Process(target=_try_to_lock, args=(tmp_path, answers))
        other.start()
        assert "another sweep is writing here" in answers.get(timeout=60)
        other.join()
    with Store(tmp_path).locked():
        pass
