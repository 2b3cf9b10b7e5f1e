from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SEQ1F1B = ROOT / "configs" / "stages" / "seq1f1b.json"


@pytest.fixture
def plan(cli: Any, write_experiment: Callable[..., Path], tmp_path: Path) -> Path:
    """The example's plan, in a folder of its own."""
    cli("search", write_experiment(), "--top", "3", "--out", tmp_path / "plan", "-q")
    return tmp_path / "plan" / "plan.json"


def files_below(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ([], {"report.html"}),
        (["--trace"], {"report.html", "trace.json"}),
        (["--plot"], {"report.html", "timeline.png", "timeline.svg"}),
        (["--all"], {"report.html", "trace.json", "timeline.png", "timeline.svg"}),
    ],
    ids=["page", "trace", "plot", "all"],
)
def test_the_page_comes_by_itself_and_the_rest_when_asked_for(
    cli: Any, plan: Path, tmp_path: Path, options: list[str], files: set[str]
) -> None:
    ran = cli("report", plan, "--out", tmp_path / "out", "--no-sensitivity", *options)
    assert ran.status == 0
    assert files_below(tmp_path / "out") == files
    assert all(f"Written: {tmp_path / 'out' / name}" in ran.out for name in files)


def test_the_json_has_breakdown_sensitivity_and_files(cli: Any, plan: Path, tmp_path: Path) -> None:
    ran = cli("report", plan, "--out", tmp_path / "out", "--json", "-q", "--time-limit", "20")
    data, written = ran.data, json.loads(plan.read_text())
    assert (ran.status, ran.err) == (0, "")
    assert data["schema"] == "poseidon.report/1"
    assert data["files"] == [str(tmp_path / "out" / "report.html")]
    whole = data["iteration_time_ms"]
    assert whole == written["iteration_time_ms"]
    for parts in (*data["stages"], data["devices"]):
        assert sum(parts.values()) == pytest.approx(whole)
    path = data["critical_path"]
    assert path["compute_ms"] + path["exposed_transfer_ms"] + path["all_reduce_ms"] == pytest.approx(whole)
    assert path["exposed_transfer_ms"] == pytest.approx(written["critical_path"]["transfers"] * whole)
    for parts, stage in zip(data["stages"], written["stages"], strict=True):
        assert parts["exposed_transfer_ms"] + parts["bubble_ms"] == pytest.approx(stage["bubble_ms"])
    sensitivity = data["sensitivity"]
    assert sensitivity["base_iteration_time_ms"] == whole
    assert {change["kind"] for change in sensitivity["changes"]} == {"link", "node", "accelerator"}
    for change in sensitivity["changes"]:
        if change["kind"] != "node":
            assert change["status"] == "optimal"
            assert change["iteration_time_ms"] <= whole * (1 + 1e-9)
            assert change["throughput_gain"] == pytest.approx(whole / change["iteration_time_ms"] - 1)


def test_json_alone_writes_nothing(cli: Any, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    ran = cli("report", plan, "--json", "-q", "--no-sensitivity")
    assert ran.status == 0
    assert ran.data["files"] == []
    assert ran.data["sensitivity"] is None
    assert files_below(tmp_path / "empty") == set()


def test_people_see_where_the_time_goes_and_what_changes_give(cli: Any, plan: Path, tmp_path: Path) -> None:
    ran = cli("report", plan, "--out", tmp_path / "out")
    assert ran.status == 0
    assert ran.out.startswith("eight-layers on two-types: ")
    for words in ("Critical path: ", "Exposed transfer", "all devices", "What a change would give", "10 % faster fast"):
        assert words in ran.out
    quiet = cli("report", plan, "--out", tmp_path / "out", "-q", "--no-sensitivity")
    assert (quiet.out, quiet.err) == ("", "")


@pytest.mark.parametrize("options", [[], ["--all"]], ids=str)
def test_a_stages_file_has_a_timeline(cli: Any, tmp_path: Path, options: list[str]) -> None:
    ran = cli("report", SEQ1F1B, "--out", tmp_path / "out", "--json", "-q", *options)
    assert ran.status == 0
    assert ran.data["sensitivity"] is None
    assert ran.data["iteration_time_ms"] == cli("simulate", SEQ1F1B, "--json", "-q").data["iteration_time_ms"]
    assert "seq1f1b.json" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing option '--out'"),
        (["--json", "--trace"], "give --out DIR"),
        (["--out", "x", "--time-limit", "0"], "0<x<=100000000"),
    ],
    ids=str,
)
def test_bad_usage_is_one_line(cli: Any, plan: Path, arguments: list[str], message: str) -> None:
    ran = cli("report", plan, *arguments)
    assert ran.status == 2
    [line] = ran.mistakes
    assert message in line


def test_a_file_of_another_kind_and_a_directory_that_is_a_file_are_one_line(
    cli: Any, plan: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"schema": "poseidon.profile/1"}')
    for arguments in ((other, "--out", tmp_path / "out"), (plan, "--out", other)):
        ran = cli("report", *arguments)
        assert ran.status == 2
        assert "Traceback" not in ran.err
        assert str(other) in ran.mistakes[0]
    assert not (tmp_path / "out").exists()


def test_a_plan_of_endless_micro_batches_is_refused(cli: Any, plan: Path, tmp_path: Path) -> None:
    data = json.loads(plan.read_text())
    plan.write_text(json.dumps({**data, "num_micro_batches": 9_999_999}))
    ran = cli("report", plan, "--out", tmp_path / "out")
    assert ran.status == 2
    [line] = ran.mistakes
    assert "num_micro_batches: makes" in line


def test_nothing_is_written_outside_of_the_folder(cli: Any, plan: Path, tmp_path: Path) -> None:
    """Neither through names in the plan, nor through the plan's own name, nor through links in the folder."""
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    for name in ("report.html", "trace.json", "timeline.png", "timeline.svg"):
        (out / name).symlink_to(outside)
    data = json.loads(plan.read_text())
    data["inputs"]["name"] = data["inputs"]["model"]["name"] = data["inputs"]["cluster"]["name"] = "../../escaped"
    data["inputs"]["files"] = {"../../escaped": "0"}
    hostile = plan.with_name("..%2f..%2fescaped.json")
    hostile.write_text(json.dumps(data))
    before = files_below(tmp_path)
    assert cli("report", hostile, "--out", out, "--all", "--no-sensitivity", "-q").status == 0
    assert files_below(tmp_path) == before
    assert outside.read_text() == "mine"
    assert not any(path.is_symlink() for path in out.iterdir())


def test_a_profile_that_is_gone_leaves_the_sensitivity_out_and_the_page_there(
    cli: Any, write_experiment: Callable[..., Path], plan: Path, tmp_path: Path
) -> None:
    data = json.loads(plan.read_text())
    data["inputs"]["profile"] = str(tmp_path / "gone.json")
    data["status"], data["lower_bound_ms"], data["gap"] = "feasible", 0.0, 1.0
    plan.write_text(json.dumps(data))
    ran = cli("report", plan, "--out", tmp_path / "out", "--json", "-q")
    assert ran.status == 0
    assert "no such file" in ran.data["sensitivity"]["left_out"]
    assert "no such file" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_an_interruption_keeps_the_page(plan: Path, tmp_path: Path) -> None:
    """A search that takes long: the sensitivity of a space of many schedules and chunks, interrupted on its way."""
    data = json.loads(plan.read_text())
    data["inputs"]["cluster"]["nodes"][0]["count"] = 40
    data["inputs"]["cluster"]["nodes"][1]["count"] = 40
    data["inputs"]["model"]["num_layers"] = 200
    data["inputs"]["training"] |= {"global_batch_size": 4096, "schedules": ["interleaved_1f1b", "adaptive_1f1b"]}
    data["inputs"]["search"] |= {"tp": "per-stage", "assignment": "stage", "allow_idle": True}
    plan.write_text(json.dumps(data))
    command = [sys.executable, "-m", "poseidon.cli", "report", str(plan), "--out", str(tmp_path / "out")]
    process = subprocess.Popen([*command, "--json", "-q", "--time-limit", "600"], stdout=subprocess.PIPE, cwd=ROOT)
    try:
        wait_until((tmp_path / "out").is_dir)  # it is made right before the first search
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert json.loads(out)["sensitivity"]["interrupted"] is True
    assert (tmp_path / "out" / "report.html").is_file()


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)
