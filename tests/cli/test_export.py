from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.cli.export import FRAMEWORK_NAMES
from poseidon.output.export import FRAMEWORKS

QUICKSTART = Path(__file__).parents[2] / "configs" / "experiments" / "quickstart.yaml"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quickstart's plan."""
    directory = tmp_path_factory.mktemp("plan")
    command = [sys.executable, "-m", "poseidon.cli", "search", str(QUICKSTART), "--out", str(directory), "-q"]
    subprocess.run(command, check=True, timeout=120)
    return directory / "plan.json"


def test_the_command_knows_every_framework() -> None:
    assert tuple(FRAMEWORKS) == FRAMEWORK_NAMES


@pytest.mark.parametrize("framework", [name for name in FRAMEWORK_NAMES if name != "mindspeed-llm"])
def test_files_are_written_and_named(cli: Callable[..., Any], plan: Path, tmp_path: Path, framework: str) -> None:
    ran = cli("export", plan, "--to", framework, "--out", tmp_path / "deep" / "out")
    assert (ran.status, ran.err) == (0, "")
    written = [path for path in (tmp_path / "deep" / "out").rglob("*") if path.is_file()]
    assert written
    flat = "".join(ran.out.split())
    for path in written:
        assert "".join(str(path).split()) in flat
    for node in ("node3", "node1", "node2", "node0"):
        assert node in ran.out


def test_nodes_are_listed_in_the_plans_order(cli: Callable[..., Any], plan: Path, tmp_path: Path) -> None:
    ran = cli("export", plan, "--to", "megatron", "--out", tmp_path, "--hosts", "a,b,c,d")
    commands = [line.strip() for line in ran.out.splitlines() if "bash launch.sh" in line]
    assert commands == [
        f"{host}: bash launch.sh {place} pretrain_gpt.py YOUR_FLAGS" for place, host in enumerate(("d", "b", "c", "a"))
    ]


def test_a_single_file_is_printed(cli: Callable[..., Any], plan: Path, tmp_path: Path) -> None:
    printed = cli("export", plan, "--to", "megatron")
    cli("export", plan, "--to", "megatron", "--out", tmp_path, "-q")
    assert printed.out == (tmp_path / "launch.sh").read_text()
    assert printed.err == ""


def test_several_files_need_a_directory(cli: Callable[..., Any], plan: Path) -> None:
    ran = cli("export", plan, "--to", "flagscale")
    assert ran.status == 2
    assert "several files (experiment.yaml, train/plan.yaml, hostfile): give --out DIR (or --json)" in ran.err


def test_json_alone_on_standard_output(cli: Callable[..., Any], plan: Path, tmp_path: Path) -> None:
    ran = cli("export", plan, "--to", "torchtitan", "--out", tmp_path, "--json")
    assert ran.data["files"] == [
        {"path": str(tmp_path / name)} for name in ("launch.sh", "poseidon_plan.py", "schedule.csv")
    ]
    assert [place["node"] for place in ran.data["places"]] == [3, 1, 2, 0]
    assert [rank for place in ran.data["places"] for rank in place["ranks"]] == list(range(28))
    assert "Nodes in the plan's order" in ran.err
    texts = cli("export", plan, "--to", "torchtitan", "--json").data["files"]
    assert [file["text"] for file in texts] == [(tmp_path / file["name"]).read_text() for file in texts]


def test_quiet_says_nothing(cli: Callable[..., Any], plan: Path, tmp_path: Path) -> None:
    ran = cli("export", plan, "--to", "hexiscale", "--out", tmp_path, "-q")
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hetero_configs.json", "launch.sh"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--to", "mindspeed-llm"), "stages: MindSpeed-LLM runs on Ascend"),
        (("--to", "megatron", "--framework-version", "new"), "--framework-version: 'new' is not a version"),
        (("--to", "megatron", "--hosts", "a"), "--hosts: 1 hosts are given"),
        (("--to", "megatrom"), "'megatrom' is not one of"),
        ((), "missing option '--to'"),
    ],
)
def test_refusals_are_one_line(cli: Callable[..., Any], plan: Path, arguments: tuple[str, ...], reason: str) -> None:
    ran = cli("export", plan, *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert len(ran.mistakes) == 1
    assert reason in ran.err


def test_a_damaged_plan_is_refused(cli: Callable[..., Any], plan: Path, tmp_path: Path) -> None:
    data = json.loads(plan.read_text())
    data["stages"][0]["ranks"] = [99, 100, 101, 102]
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(data))
    ran = cli("export", path, "--to", "megatron", "--out", tmp_path / "out")
    assert ran.status == 2
    assert ran.err.startswith(f"{path}: devices: stage 0 has ranks out of order")
    assert not (tmp_path / "out").exists()


def test_a_directory_that_cannot_be_made(cli: Callable[..., Any], plan: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = cli("export", plan, "--to", "megatron", "--out", tmp_path / "file")
    assert ran.status == 2
    assert "cannot be written" in ran.err


@pytest.mark.parametrize("columns", [80, 160])
def test_lines_fit(cli: Callable[..., Any], plan: Path, tmp_path: Path, monkeypatch: Any, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    ran = cli("export", plan, "--to", "torchtitan", "--out", tmp_path)
    commands = [line for line in ran.out.splitlines() if "bash launch.sh" in line]
    assert [line.rpartition(" ")[2] for line in commands] == ["planned"] * 4, "a command is on one line"
    paths = ran.out.splitlines()[:4]
    assert max(len(line) for line in ran.out.splitlines() if line not in (*commands, *paths)) <= columns
