from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SMALL_MEMORY = {
    "accelerators": {
        "fast": {"peak_tflops": 200.0, "memory_gb": 1.0},
        "slow": {"peak_tflops": 100.0, "memory_gb": 0.5},
    }
}
CONTRACT_FIELDS = {
    "schema",
    "status",
    "iteration_time_ms",
    "lower_bound_ms",
    "gap",
    "dp",
    "pp",
    "micro_batch_size",
    "num_micro_batches",
    "schedule",
    "num_chunks",
    "tokens_per_second",
    "mfu",
    "bubble_fraction",
    "stages",
    "inputs",
    "search",
    "alternatives",
}
STAGE_FIELDS = {
    "kind",
    "accelerator",
    "tp",
    "layers",
    "layer_range",
    "nodes",
    "ranks",
    "forward_ms",
    "backward_ms",
    "send_forward_ms",
    "send_backward_ms",
    "all_reduce_ms",
    "memory_bytes",
    "memory_limit_bytes",
    "in_flight",
}
SEARCH_FIELDS = {
    "policy",
    "seconds",
    "outer_choices",
    "nodes",
    "simulations",
    "pruned",
    "workers",
    "backend",
    "warnings",
}


def test_the_plan_is_written_and_shown(cli: Any, write_experiment: Callable[..., Path], tmp_path: Path) -> None:
    ran = cli("search", write_experiment(), "--out", tmp_path / "runs" / "one")
    assert ran.status == 0
    assert "proven optimal" in ran.out
    assert f"Plan: {tmp_path / 'runs' / 'one' / 'plan.json'}" in ran.out
    plan = json.loads((tmp_path / "runs" / "one" / "plan.json").read_text())
    assert plan.keys() >= CONTRACT_FIELDS
    assert plan["stages"][0].keys() >= STAGE_FIELDS
    assert plan["search"].keys() >= SEARCH_FIELDS
    assert plan["status"] == "optimal"
    assert list((tmp_path / "runs" / "one").iterdir()) == [tmp_path / "runs" / "one" / "plan.json"]


def test_without_out_no_file_is_written_and_that_is_said(
    cli: Any, write_experiment: Callable[..., Path], tmp_path: Path
) -> None:
    path = write_experiment()
    ran = cli("search", path)
    assert ran.status == 0
    assert "add --out DIR" in ran.out
    assert list(tmp_path.iterdir()) == [path]


def test_json_is_the_plan_alone_on_standard_output(
    cli: Any, write_experiment: Callable[..., Path], tmp_path: Path
) -> None:
    ran = cli("search", write_experiment(), "--json", "--out", tmp_path)
    assert ran.status == 0
    assert ran.data == json.loads((tmp_path / "plan.json").read_text())
    assert "proven optimal" in ran.err


def test_quiet_says_nothing(cli: Any, write_experiment: Callable[..., Path]) -> None:
    ran = cli("search", write_experiment(), "-q")
    assert (ran.status, ran.out, ran.err) == (0, "", "")


def test_quiet_json_is_json(cli: Any, write_experiment: Callable[..., Path]) -> None:
    ran = cli("search", write_experiment(), "-q", "--json")
    assert ran.data["status"] == "optimal"
    assert ran.err == ""


def test_chunks_make_lists(cli: Any, write_experiment: Callable[..., Path]) -> None:
    ran = cli("search", write_experiment(), "-q", "--json", "--schedule", "interleaved_1f1b", "--fixed-tp", "2")
    assert ran.data["num_chunks"] == 2
    for stage in ran.data["stages"]:
        assert [end - first for first, end in stage["layer_range"]] == stage["layers"]
        assert len(stage["forward_ms"]) == len(stage["backward_ms"]) == 2


def test_top_plans_are_listed(cli: Any, write_experiment: Callable[..., Path]) -> None:
    shown = cli("search", write_experiment(), "--top", "3")
    assert "Next best" in shown.out
    plan = cli("search", write_experiment(), "--top", "3", "--json", "-q").data
    times = [plan["iteration_time_ms"], *(other["iteration_time_ms"] for other in plan["alternatives"])]
    assert len(times) == 3
    assert times == sorted(times)


def test_idle_devices_are_listed(cli: Any, write_experiment: Callable[..., Path]) -> None:
    options = ("--allow-idle", "--fixed-dp", "1", "--fixed-tp", "1", "--fixed-pp", "2")
    ran = cli("search", write_experiment(), *options)
    assert "Idle: 2 devices" in ran.out
    plan = cli("search", write_experiment(), *options, "--json", "-q").data
    assert sum(len(part["devices"]) for part in plan["idle"]) == 2


def test_no_plan_fits_says_what_binds_and_what_would_help(
    cli: Any, write_experiment: Callable[..., Path], tmp_path: Path
) -> None:
    ran = cli("search", write_experiment(cluster=SMALL_MEMORY), "--out", tmp_path / "runs")
    assert ran.status == 3
    assert ran.out == ""
    assert "no plan fits in memory" in ran.err
    assert "is short of" in ran.err
    assert "GB" in ran.err
    assert "stage" in ran.err
    assert not (tmp_path / "runs" / "plan.json").exists()


def test_a_time_limit_before_any_plan(cli: Any, write_experiment: Callable[..., Path]) -> None:
    ran = cli("search", write_experiment(), "--time-limit", "1e-9")
    assert ran.status == 4
    assert "time limit" in ran.err
    assert ran.out == ""


def test_an_older_plan_is_replaced(cli: Any, write_experiment: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("old")
    cli("search", write_experiment(), "-q", "--out", tmp_path)
    assert json.loads((tmp_path / "plan.json").read_text())["status"] == "optimal"


@pytest.mark.parametrize(
    "option", [["--gap", "0.5"], ["--node-limit", "1"], ["--seed", "7"], ["--warmup-samples", "0"]]
)
def test_effort_options_still_give_a_right_plan(
    cli: Any, write_experiment: Callable[..., Path], tmp_path: Path, option: list[str]
) -> None:
    ran = cli("search", write_experiment(), "-q", "--json", "--out", tmp_path, *option)
    assert ran.status == 0
    assert ran.data["lower_bound_ms"] <= ran.data["iteration_time_ms"]
    assert cli("verify", tmp_path / "plan.json", "-q").status == 0
