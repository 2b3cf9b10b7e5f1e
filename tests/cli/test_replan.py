from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NODES = [{"accelerator": "fast", "count": 2, "devices": 2}, {"accelerator": "slow", "count": 1, "devices": 2}]


@pytest.fixture
def plan(cli: Any, write_experiment: Callable[..., Path], tmp_path: Path) -> Path:
    assert cli("search", write_experiment(cluster={"nodes": NODES}), "--out", tmp_path, "-q").status == 0
    return tmp_path / "plan.json"


def test_plan_and_moves_are_written_and_the_plan_is_right(cli: Any, plan: Path, tmp_path: Path) -> None:
    out = tmp_path / "new"
    ran = cli("replan", plan, "--lost", "node1", "--out", out)
    assert (ran.status, ran.err) == (0, "")
    assert "2 devices lost (1 whole node)" in ran.out
    assert f"Plan: {out / 'plan.json'}\nMoves: {out / 'moves.json'}" in ran.out
    assert sorted(path.name for path in out.iterdir()) == ["moves.json", "plan.json"]
    assert cli("verify", out / "plan.json").status == 0
    moves = json.loads((out / "moves.json").read_text())
    assert moves["schema"] == "poseidon.moves/1"
    assert [node["old_node"] for node in moves["nodes"]] == [0, 2]


def test_the_result_as_json(cli: Any, plan: Path, tmp_path: Path) -> None:
    ran = cli("replan", plan, "--added", "fast,2xslow", "--json", "--out", tmp_path / "new")
    assert ran.data["plan"] == json.loads((tmp_path / "new" / "plan.json").read_text())
    assert ran.data["moves"] == json.loads((tmp_path / "new" / "moves.json").read_text())
    assert ran.data["moves"]["loaded_bytes"] == 0
    assert "3 nodes added" in ran.err
    quiet = cli("replan", plan, "--added", "fast", "-q")
    assert (quiet.status, quiet.out, quiet.err) == (0, "", "")


def test_the_same_command_writes_the_same_moves(cli: Any, plan: Path) -> None:
    command = ("replan", plan, "--lost", "node0/1", "--allow-idle", "--json", "-q")
    one, two = (cli(*command).data for _ in range(2))
    for data in (one, two):
        del data["moves"]["planning_seconds"], data["moves"]["placing_seconds"], data["plan"]["search"]
    assert one == two


def test_a_batch_that_no_longer_divides_says_which_one_would(
    cli: Any, write_experiment: Callable[..., Path], tmp_path: Path
) -> None:
    nodes = [{"accelerator": "fast", "count": 4, "devices": 2}]
    fixed = write_experiment(
        cluster={"nodes": nodes}, search={"fixed_pp": 1, "fixed_tp": 2}, training={"micro_batch_sizes": [1]}
    )
    assert cli("search", fixed, "--out", tmp_path, "-q").status == 0
    ran = cli("replan", tmp_path / "plan.json", "--lost", "node2", "--out", tmp_path / "new")
    assert (ran.status, ran.out) == (3, "")
    assert ran.mistakes == [
        "16 is not divisible by any DP x micro-batch: DP can be 3 here, and micro_batch_sizes are 1. There is a plan "
        "with --allow-idle (devices may stay unused), or a plan without search.fixed_pp, or --global-batch-size 15."
    ]
    for option in (("--allow-idle",), ("--global-batch-size", "15")):
        assert cli("replan", tmp_path / "plan.json", "--lost", "node2", *option).status == 0


def test_memory_that_no_longer_suffices_says_what_would_help(
    cli: Any, write_experiment: Callable[..., Path], tmp_path: Path
) -> None:
    accelerators = {name: {"peak_tflops": 100.0, "memory_gb": 1.2} for name in ("fast", "slow")}
    small = write_experiment(cluster={"nodes": NODES, "accelerators": accelerators})
    assert cli("search", small, "--out", tmp_path, "-q").status == 0
    ran = cli("replan", tmp_path / "plan.json", "--lost", "node1,node2")
    assert (ran.status, ran.out, len(ran.mistakes)) == (3, "", 1)
    assert "no plan fits in memory: " in ran.err
    assert "is short of" in ran.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "say what has changed: --lost node3, --added 2xTYPE"),
        (("--lost", "gpu3"), "--lost: 'gpu3' is not a node; accepted: node3 "),
        (("--added", "2xA100"), "--added: 'A100' is no accelerator of the cluster"),
        (("--lost", "node0", "--tolerance", "x"), "'x' is not a fraction from 0 to below 1, such as 0.01 or 1%"),
        (("--lost", "node0", "--tolerance", "nan"), "'nan' is not a fraction"),
        (("--lost", "node0", "--tolerance", "100%"), "'100%' is not a fraction"),
        (("--added", "x", "--accelerator", "nothing.yaml"), "nothing.yaml: no such file"),
    ],
)
def test_bad_usage_is_one_line(cli: Any, plan: Path, arguments: tuple[str, ...], reason: str) -> None:
    ran = cli("replan", plan, *arguments)
    assert (ran.status, ran.out, len(ran.mistakes)) == (2, "", 1)
    assert reason in ran.err


def test_hostile_names_reach_no_file(cli: Any, plan: Path, tmp_path: Path) -> None:
    text = plan.read_text().replace('"two-types"', '"../../../../PWNED"').replace('"fast"', '"../PWNED"')
    path = tmp_path / "hostile.json"
    path.write_text(text.replace('"fast/', '"../PWNED/'))
    out = tmp_path / "out"
    ran = cli("replan", path, "--lost", "node2", "--out", out)
    assert ran.status == 0
    assert sorted(file.name for file in out.iterdir()) == ["moves.json", "plan.json"]
    assert not list(tmp_path.rglob("*PWNED*"))


@pytest.mark.parametrize("columns", [80, 160])
def test_lines_fit(cli: Any, plan: Path, monkeypatch: Any, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = cli("replan", plan, "--lost", "node2").out.splitlines()
    assert max(len(line) for line in lines) <= columns
