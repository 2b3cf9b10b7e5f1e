from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

AXES = {"training.global_batch_size": [16, 32], "search.policy": ["exact", "brute-force"]}


@pytest.fixture
def sweep_file(write_experiment: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    def write(**keys: Any) -> Path:
        write_experiment()
        path = tmp_path / "small.yaml"
        path.write_text(yaml.safe_dump({"experiment": "example.yaml", "axes": AXES} | keys, sort_keys=False))
        return path

    return write


def test_a_sweep_writes_rows_and_plots_and_shows_them(
    cli: Any, sweep_file: Callable[..., Path], tmp_path: Path
) -> None:
    ran = cli("sweep", sweep_file(), "--out", tmp_path / "out")
    assert ran.status == 0
    assert ran.out.startswith("small: 4 runs (4 optimal)\n")
    assert f"Rows: {tmp_path / 'out' / 'runs.parquet'}" in ran.out
    table = pq.read_table(tmp_path / "out" / "runs.parquet").to_pylist()
    assert [(row["axis.training.global_batch_size"], row["axis.search.policy"]) for row in table] == [
        (16, "exact"),
        (16, "brute-force"),
        (32, "exact"),
        (32, "brute-force"),
    ]
    assert table[0]["iteration_time_ms"] == table[1]["iteration_time_ms"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        ".lock",
        "plot.png",
        "plot.svg",
        "runs",
        "runs.parquet",
    }


def test_a_row_is_the_plan_of_the_search(
    cli: Any, sweep_file: Callable[..., Path], write_experiment: Callable[..., Path], tmp_path: Path
) -> None:
    cli("sweep", sweep_file(axes={"training.global_batch_size": [32]}), "--out", tmp_path / "out", "-q")
    plan = cli("search", tmp_path / "example.yaml", "--global-batch-size", "32", "--json", "-q").data
    [row] = pq.read_table(tmp_path / "out" / "runs.parquet").to_pylist()
    names = ("iteration_time_ms", "lower_bound_ms", "gap", "mfu", "bubble_fraction", "dp", "pp", "schedule")
    assert {name: row[name] for name in names} == {name: plan[name] for name in names}
    assert [stage["layers"] for stage in row["stages"]] == [[stage["layers"]] for stage in plan["stages"]]
    assert [stage["memory_bytes"] for stage in row["stages"]] == [stage["memory_bytes"] for stage in plan["stages"]]


def test_the_same_command_again_does_nothing_twice(cli: Any, sweep_file: Callable[..., Path], tmp_path: Path) -> None:
    path = sweep_file()
    first = cli("sweep", path, "--out", tmp_path / "out", "--json", "-q").data
    again = cli("sweep", path, "--out", tmp_path / "out", "--json", "-q", "--workers", "2").data
    assert (first["done_before"], again["done_before"]) == (0, 4)
    assert again["runs"] == first["runs"]
    restarted = cli("sweep", path, "--out", tmp_path / "out", "--json", "-q", "--restart").data
    assert restarted["done_before"] == 0
    assert [row["run_id"] for row in restarted["runs"]] == [row["run_id"] for row in first["runs"]]


def test_runs_without_a_plan_do_not_stop_the_sweep(cli: Any, sweep_file: Callable[..., Path], tmp_path: Path) -> None:
    points = [
        {"label": "refused", "set": {"training.global_batch_size": -1}},
        {"label": "infeasible", "set": {"model.num_layers": 4000}},
        {"label": "time-limit", "set": {"search.time_limit_s": 1e-9, "search.policy": "brute-force"}},
        {"label": "optimal"},
    ]
    common = {"search.warmup_samples": 0}
    ran = cli("sweep", sweep_file(axes={"x": {"points": points}}, set=common), "--out", tmp_path / "out", "--json")
    assert ran.status == 0
    rows = ran.data["runs"]
    assert [row["status"] for row in rows] == [row["axis.x"] for row in rows]
    assert [bool(row["reason"]) for row in rows] == [True, True, True, False]
    assert "-1 is too small: at least 1 is accepted" in rows[0]["reason"]
    assert rows[2]["termination"] == "time limit"


@pytest.mark.parametrize("option", ["--list", "--dry-run"])
def test_a_list_does_nothing(cli: Any, sweep_file: Callable[..., Path], tmp_path: Path, option: str) -> None:
    path = sweep_file()
    ran = cli("sweep", path, option)
    assert ran.status == 0
    assert ran.out.startswith("small: 4 runs\n")
    assert cli("sweep", path, option, "--out", tmp_path / "out").status == 0
    assert not (tmp_path / "out").exists()
    cli("sweep", sweep_file(axes={"training.global_batch_size": [16]}), "--out", tmp_path / "out", "-q")
    listed = cli("sweep", sweep_file(), option, "--out", tmp_path / "out", "--json").data["runs"]
    assert [run["done"] for run in listed] == [True, False, False, False]


def test_a_path_that_is_no_field_is_one_line(cli: Any, sweep_file: Callable[..., Path], tmp_path: Path) -> None:
    path = sweep_file(axes={"cluster.links.inter_nod.bandwidth_gbps": [1, 2]})
    ran = cli("sweep", path, "--out", tmp_path / "out")
    assert ran.status == 2
    [line] = ran.mistakes
    assert line.startswith(f"{path}: axes['cluster.links.inter_nod.bandwidth_gbps']: ")
    assert line.endswith("unknown field 'inter_nod' of cluster.links; did you mean 'inter_node'?")
    assert not (tmp_path / "out").exists()


def test_without_matplotlib_there_is_everything_but_the_plot(
    cli: Any, sweep_file: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = cli("sweep", sweep_file(), "--out", tmp_path / "out")
    assert ran.status == 0
    assert "no plot: matplotlib can't be loaded here" in ran.err
    assert (tmp_path / "out" / "runs.parquet").exists()
    assert "Plot:" not in ran.out


def test_without_ray_there_is_one_clear_line(
    cli: Any, sweep_file: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "ray_jobs.sweep", raising=False)
    ran = cli("sweep", sweep_file(), "--out", tmp_path / "out", "--ray")
    assert ran.status == 2
    [line] = ran.mistakes
    assert "--ray auto: Ray is not installed" in line
    assert "--workers N needs no Ray" in line


def test_a_directory_that_cannot_be_made_is_one_line(cli: Any, sweep_file: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    ran = cli("sweep", sweep_file(), "--out", tmp_path / "taken")
    assert ran.status == 2
    [line] = ran.mistakes
    assert "cannot be made" in line
