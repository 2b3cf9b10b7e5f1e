"""``poseidon paper`` from end to end, on small experiments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from poseidon.paper import registry
from poseidon.paper.study import Study
from tests.paper.conftest import EXHIBITS, STUDIES, Finished, write_experiments

ROOT = Path(__file__).parents[2]
KILLED = """
import os, signal, sys
from poseidon.cli import main
from poseidon.paper.rows_file import Parts

put, number, count = Parts.put, getattr(signal, sys.argv.pop()), [0]

def counted(self, key, rows):
    kept = put(self, key, rows)
    count[0] += 1
    if count[0] == 7:
        os.kill(os.getpid(), number)
    return kept

Parts.put = counted
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


def rows_file(out: Path, study: Study) -> Path:
    return out / "rows" / f"{study.name}.parquet"


def test_everything_is_written(finished_once: Finished) -> None:
    names = {path.name for path in finished_once.out.iterdir()}
    for exhibit in EXHIBITS:
        kinds = [".parquet"] + [".png", ".svg"] * (exhibit.draw is not None)
        assert {f"{exhibit.name}{kind}" for kind in kinds} <= names
        data = pq.read_table(finished_once.out / f"{exhibit.name}.parquet")
        assert data.num_rows > 0
        assert data.schema.metadata[b"reported"].decode() == exhibit.reported
    assert {path.name for path in (finished_once.out / "rows").iterdir()} == {f"{s.name}.parquet" for s in STUDIES}


def test_rows_say_when_and_on_what_they_were_measured(finished_once: Finished) -> None:
    for study in STUDIES:
        table = pq.read_table(rows_file(finished_once.out, study))
        assert table.schema.metadata[b"time_limit_s"] == b"60.0"
        for field in table.schema:
            assert field.metadata[b"description"]
        for row in table.to_pylist():
            assert row["processor"]
            assert row["num_cpus"] >= 1
            assert row["measured_at"] is not None


def test_the_table_says_what_the_paper_reports_and_what_is_found(cli: Any, finished_once: Finished) -> None:
    names = [exhibit.name for exhibit in EXHIBITS][::3]
    ran = cli("paper", *names[::-1], "--no-run", "--out", finished_once.out, "--json")
    assert ran.status == 0
    assert [item["name"] for item in ran.data["exhibits"]] == names
    people = " ".join(ran.err.split())
    for item in ran.data["exhibits"]:
        assert item["found"]
        assert item["name"] in people
    assert not any(item["measured_now"] for item in ran.data["studies"])


@pytest.mark.parametrize("width", [80, 160])
def test_the_table_keeps_the_line(
    cli: Any, finished_once: Finished, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    ran = cli("paper", "figure-7", "table-1", "--no-run", "--out", finished_once.out)
    text = ran.out.partition("\nFiles:")[0]
    assert max(map(len, text.splitlines())) <= width
    assert "1.94x and 1.15x in 3." in " ".join(text.split()) or width == 160


def test_nothing_is_measured_twice(cli: Any, finished: Finished) -> None:
    before = {study.name: rows_file(finished.out, study).stat().st_mtime_ns for study in STUDIES}
    arguments = ["--experiments", finished.experiments, "--out", finished.out, "--json"]
    ran = cli("paper", "table-1", "table-2", "figure-2", "figure-3", *arguments)
    assert ran.status == 0
    assert len(ran.data["studies"]) == len(STUDIES)
    assert not any(item["measured_now"] for item in ran.data["studies"])
    assert {study.name: rows_file(finished.out, study).stat().st_mtime_ns for study in STUDIES} == before


def test_other_inputs_are_measured_anew(cli: Any, finished: Finished) -> None:
    arguments = ["paper", "table-1", "--experiments", finished.experiments, "--out", finished.out, "--json", "-q"]
    assert [item["measured_now"] for item in cli(*arguments).data["studies"]] == [False, False]
    assert [item["measured_now"] for item in cli(*arguments, "--redo").data["studies"]] == [True, True]
    path = finished.experiments / "setting5.yaml"
    content = yaml.safe_load(path.read_text())
    content["training"]["global_batch_size"] = 16
    path.write_text(yaml.safe_dump(content))
    measured = {item["name"]: item["measured_now"] for item in cli(*arguments).data["studies"]}
    assert measured == {"comparisons": True, "paper-plans": False}
    measured = {item["name"]: item["measured_now"] for item in cli(*arguments, "--time-limit", "50").data["studies"]}
    assert measured == {"comparisons": True, "paper-plans": True}


@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_a_kill_costs_no_finished_part(cli: Any, tmp_path: Path, name: str) -> None:
    experiments, out = write_experiments(tmp_path / "experiments"), tmp_path / "out"
    arguments = ["paper", "figure-7", "--experiments", experiments, "--out", out]
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, *map(str, arguments), name],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert ran.returncode == (130 if name == "SIGINT" else -9), ran.stderr
    assert ("the same command goes on from there" in ran.stderr) == (name == "SIGINT")
    parts = list((out / "rows" / "comparisons-parts").glob("*.parquet"))
    kept = [row for path in parts for row in pq.read_table(path).to_pylist()]
    assert len(kept) == 7
    assert not (out / "rows" / "comparisons.parquet").exists()
    again = cli(*arguments, "--json")
    assert again.status == 0
    assert "setting1, hexiscale" not in again.err
    assert "setting2, hexiscale" in again.err
    rows = pq.read_table(out / "rows" / "comparisons.parquet").to_pylist()
    assert [row for row in rows if row in kept] == sorted(kept, key=lambda row: row["measured_at"])
    assert len(rows) == 30
    assert not (out / "rows" / "comparisons-parts").exists()


def test_the_page_is_made_of_the_rows_alone(cli: Any, finished_once: Finished, tmp_path: Path) -> None:
    direct = finished_once.out.parent / "docs"
    ran = cli("paper", "table-2", "--no-run", "--out", finished_once.out, "--page", tmp_path / "docs", "-q")
    assert ran.status == 0
    names = {path.relative_to(direct) for path in direct.rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path / "docs") for path in (tmp_path / "docs").rglob("*") if path.is_file()} == names
    for name in names:
        assert (tmp_path / "docs" / name).read_bytes() == (direct / name).read_bytes()


def test_exhibits_without_rows_are_left_out_and_said(cli: Any, finished: Finished, tmp_path: Path) -> None:
    rows_file(finished.out, next(study for study in STUDIES if study.name == "scale")).unlink()
    ran = cli(
        "paper", "table-1", "table-2", "figure-15", "--no-run", "--out", finished.out, "--page", tmp_path / "docs"
    )
    assert ran.status == 0
    assert "Not measured yet: figure-15, table-2" in ran.out
    page = (tmp_path / "docs" / "results.md").read_text()
    [absent] = [line for line in page.splitlines() if line.startswith("Not measured yet: ")]
    assert "figure-15" in absent
    assert "table-2" in absent
    assert "figure-7" not in absent
    assert "## Figure 15" not in page


def test_rows_that_this_version_cannot_read_are_measured_anew(cli: Any, finished: Finished) -> None:
    path = rows_file(finished.out, next(study for study in STUDIES if study.name == "paper-plans"))
    path.write_bytes(path.read_bytes()[:-20])
    ran = cli("paper", "table-1", "--experiments", finished.experiments, "--out", finished.out, "--json", "-q")
    measured = {item["name"]: item["measured_now"] for item in ran.data["studies"]}
    assert measured == {"comparisons": False, "paper-plans": True}


def test_the_list_measures_nothing(cli: Any) -> None:
    ran = cli("paper", "--list")
    assert ran.status == 0
    assert all(f"{exhibit.name} " in ran.out for exhibit in registry.EXHIBITS)
    listed = cli("paper", "--list", "--json", "-q", "table-2", "figure-2").data["exhibits"]
    assert [item["name"] for item in listed] == ["figure-2", "table-2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure-99", "--out", "x"], "there is no exhibit 'figure-99'; there are figure-2, figure-3, "),
        ([], "missing option '--out'"),
        (["--out", "x", "--no-run", "--redo"], "either --no-run or --redo"),
    ],
)
def test_bad_usage_is_one_line(cli: Any, arguments: list[str], message: str) -> None:
    ran = cli("paper", *arguments)
    assert ran.status == 2
    [line] = ran.mistakes
    assert message in line


def test_a_missing_folder_says_what_to_give(cli: Any, tmp_path: Path) -> None:
    ran = cli("paper", "--experiments", tmp_path / "none", "--out", tmp_path / "out")
    assert ran.status == 2
    [line] = ran.mistakes
    assert line.startswith(f"{tmp_path / 'none'}: no such folder of experiments; give --experiments the folder")


def test_missing_experiments_are_named_before_anything_is_measured(cli: Any, tmp_path: Path) -> None:
    folder = write_experiments(tmp_path / "experiments", ["setting1", "setting3", "setting4", "setting5"])
    ran = cli("paper", "table-1", "--experiments", folder, "--out", tmp_path / "out")
    assert ran.status == 2
    [line] = ran.mistakes
    assert f"{folder}: has no setting2.yaml; " in line
    assert not (tmp_path / "out" / "rows").exists()


def test_nothing_to_show_is_an_error(cli: Any, tmp_path: Path) -> None:
    ran = cli("paper", "--no-run", "--out", tmp_path)
    assert ran.status == 2
    assert "has no rows of these exhibits" in ran.err
