from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def plan(cli: Any, write_experiment: Callable[..., Path], tmp_path: Path) -> Path:
    assert cli("search", write_experiment(), "--out", tmp_path, "-q").status == 0
    return tmp_path / "plan.json"


@pytest.fixture
def other(cli: Any, write_experiment: Callable[..., Path], tmp_path: Path) -> Path:
    assert cli("search", write_experiment(), "--out", tmp_path / "other", "-q", "--fixed-dp", "1").status == 0
    return tmp_path / "other" / "plan.json"


def test_a_plan_is_explained(cli: Any, plan: Path) -> None:
    ran = cli("explain", plan)
    assert (ran.status, ran.err) == (0, "")
    for part in ("What limits it", "Limited by stage", "What is proven", "Other outer choices: their best plans"):
        assert part in ran.out


def test_the_explanation_as_json(cli: Any, plan: Path) -> None:
    ran = cli("explain", plan, "--json", "--all")
    data, stored = ran.data, json.loads(plan.read_text())
    assert data["iteration_time_ms"] == stored["iteration_time_ms"]
    time = data["time"]
    parts = [time[f"{name}_ms"] for name in ("compute", "transfers", "bubble", "all_reduce")]
    assert math.fsum(parts) == stored["iteration_time_ms"]
    assert data["outer_choices"][0]["name"] == stored["outer_choice"]
    assert len(data["outer_choices"]) == stored["search"]["outer_choices"]
    assert "What limits it" in ran.err
    assert cli("explain", plan, "--json", "-q").err == ""


def test_two_plans_are_set_side_by_side(cli: Any, plan: Path, other: Path) -> None:
    ran = cli("explain", plan, "--against", other, "--json")
    times = [json.loads(path.read_text())["iteration_time_ms"] for path in (plan, other)]
    difference = ran.data["difference"]
    assert difference["iteration_time_ms"] == pytest.approx(times[1] - times[0], abs=1e-6)
    parts = [difference[f"{name}_ms"] for name in ("compute", "transfers", "bubble", "all_reduce")]
    assert sum(parts) == difference["iteration_time_ms"]
    assert "Where the time goes, ms" in ran.err
    backwards = cli("explain", other, "--against", plan, "--json", "-q").data["difference"]
    assert backwards["iteration_time_ms"] == -difference["iteration_time_ms"]


def test_with_is_the_search_with_that_setting(cli: Any, plan: Path, other: Path) -> None:
    ran = cli("explain", plan, "--with", "dp=1", "--json", "-q")
    fixed = json.loads(other.read_text())
    assert ran.data["other"]["iteration_time_ms"] == pytest.approx(fixed["iteration_time_ms"], rel=1e-9)
    assert ran.data["different_inputs"] == []
    names = [item["setting"] for item in ran.data["different_settings"]]
    assert ("DP" in names) == (ran.data["this"]["dp"] != 1)


def test_with_what_cannot_be_says_what_can(cli: Any, plan: Path) -> None:
    ran = cli("explain", plan, "--with", "pp=3", "--json")
    assert (ran.status, ran.out) == (3, "")
    assert ran.err == (
        "no plan with pp=3: 3 stages do not use every device of the cluster; numbers of stages that do: 2, 4; or let "
        "devices stay idle with search: {allow_idle: true}. A plan is possible with pp=2.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--with", "foo=3"), "--with: unknown key 'foo'; accepted: dp, tp, pp, "),
        (("--with", "pp=2", "--against", "x.json"), "give either --against or --with, not both"),
        (("--against", "nothing.json"), "nothing.json: no such file"),
        (("--time-limit", "0"), "--time-limit"),
    ],
)
def test_bad_usage_is_one_line(cli: Any, plan: Path, arguments: tuple[str, ...], reason: str) -> None:
    ran = cli("explain", plan, *arguments)
    assert (ran.status, ran.out, len(ran.mistakes)) == (2, "", 1)
    assert reason in ran.err


def test_another_job_is_refused(cli: Any, plan: Path, tmp_path: Path, write_experiment: Callable[..., Path]) -> None:
    longer = write_experiment("longer.yaml", training={"seq_length": 2048})
    cli("search", longer, "--out", tmp_path / "longer", "-q")
    ran = cli("explain", plan, "--against", tmp_path / "longer" / "plan.json")
    assert (ran.status, ran.out, len(ran.mistakes)) == (2, "", 1)
    assert "inputs.training.seq_length: is 2048, but 1024 in " in ran.err


Change = Callable[[dict[str, Any]], None]


def _set(*path: Any, value: Any) -> Change:
    def change(data: dict[str, Any]) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


HOSTILE = [
    (_set("schema", value="poseidon.plan/99"), "schema"),
    (_set("stages", 0, "nodes", value=[99]), "devices"),
    (_set("stages", 0, "forward_ms", value=1e300), "forward_ms"),
    (_set("iteration_time_ms", value=1.0), "iteration time"),
    (_set("schedule", value="$(reboot)"), "schedule"),
    (_set("num_micro_batches", value=10_000_000), "settings"),
    (_set("inputs", "profile", value="/etc/passwd"), "/etc/passwd"),
    (_set("inputs", "model", "num_layers", value=10**9), "num_layers"),
    (_set("stages", value=[]), "stages"),
]


@pytest.mark.parametrize(("change", "reason"), HOSTILE)
@pytest.mark.parametrize("command", [("explain",), ("explain", "--with", "pp=2"), ("replan", "--lost", "node0")])
def test_a_damaged_plan_is_refused_in_one_line_each(
    cli: Any, plan: Path, tmp_path: Path, change: Change, reason: str, command: tuple[str, ...]
) -> None:
    data = json.loads(plan.read_text())
    change(data)
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(data))
    before = sorted(tmp_path.rglob("*"))
    ran = cli(command[0], path, *command[1:])
    assert ran.status in (2, 3)
    assert ran.out == ""
    assert reason in ran.err
    assert "Traceback" not in ran.err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_that_is_no_plan(cli: Any, tmp_path: Path) -> None:
    for text in ("{}", "[]", "", "{", '{"schema": 3}'):
        path = tmp_path / "x.json"
        path.write_text(text)
        for command in (("explain", path), ("replan", path, "--lost", "node0")):
            ran = cli(*command)
            assert (ran.status, ran.out, len(ran.mistakes)) == (2, "", 1)
            assert ran.err.startswith(f"{path}: ")


@pytest.mark.parametrize("columns", [80, 109, 110, 160])
def test_lines_fit(cli: Any, plan: Path, other: Path, monkeypatch: Any, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for command in (("explain", plan), ("explain", plan, "--against", other)):
        lines = cli(*command).out.splitlines()
        assert max(len(line) for line in lines) <= columns
