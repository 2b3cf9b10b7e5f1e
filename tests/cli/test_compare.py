"""``poseidon compare`` and the policies behind it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Write = Callable[..., Path]


def test_the_command(cli: Any, write_experiment: Write, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = cli("compare", write_experiment(), "--policy", "exact", "--policy", "hexiscale", "--out", out, "--json")
    assert ran.status == 0
    assert [entry["entrant"] for entry in ran.data["entries"]] == ["exact", "hexiscale"]
    assert "hexiscale" in ran.err
    assert {path.name for path in out.iterdir()} == {"comparison.parquet", "exact", "hexiscale"}
    assert cli("verify", out / "hexiscale" / "plan.json").status == 0


def test_nothing_fits(cli: Any, write_experiment: Write) -> None:
    tiny = {name: {"peak_tflops": 100.0, "memory_gb": 0.01} for name in ("fast", "slow")}
    ran = cli("compare", write_experiment(cluster={"accelerators": tiny}), "--policy", "exact", "--policy", "metis")
    assert ran.status == 3
    assert "no plan" in ran.out


def test_a_limit_leaves_what_there_is(cli: Any, write_experiment: Write) -> None:
    ran = cli("compare", write_experiment(), "--policy", "metis", "--time-limit", "1e-9", "-q", "--json")
    assert ran.status == 4
    assert ran.data["entries"][0]["status"] == "unknown"
    assert ran.data["entries"][0]["termination"] == "time limit"


def test_search_with_a_rival_writes_a_plan_that_verifies(cli: Any, write_experiment: Write, tmp_path: Path) -> None:
    for policy in ("metis", "hexiscale"):
        ran = cli("search", write_experiment(), "--policy", policy, "--out", tmp_path / policy)
        assert ran.status == 0
        assert f"found by policy {policy}, nothing proven" in ran.out
        assert cli("verify", tmp_path / policy / "plan.json").status == 0


def test_the_static_formula_is_for_the_exact_policy(cli: Any, write_experiment: Write) -> None:
    for policy in ("paper", "metis"):
        ran = cli("search", write_experiment(), "--policy", policy, "--cost-model", "eq1")
        assert ran.status == 2
        assert f"for the policy exact, not for {policy}" in ran.err


def test_eq_1_and_chunks(cli: Any, write_experiment: Write) -> None:
    ran = cli("search", write_experiment(), "--cost-model", "eq1", "--schedule", "interleaved_1f1b")
    assert ran.status == 2
    assert "cost model eq1 knows no chunks and no depths of links" in ran.err


def test_solve_with_eq_1_and_without_rivals(cli: Any, write_experiment: Write, tmp_path: Path) -> None:
    lines = tmp_path / "costs.jsonl"
    assert cli("costs", write_experiment(), "--out", lines).status == 0
    ran = cli("solve", lines, "--cost-model", "eq1")
    assert ran.status == 0
    assert {line["status"] for line in ran.lines} <= {"optimal", "feasible", "infeasible"}
    assert cli("solve", lines, "--policy", "metis").status == 2
    assert cli("solve", lines, "--policy", "paper", "--cost-model", "eq1").status == 2
