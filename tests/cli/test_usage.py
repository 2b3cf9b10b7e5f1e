from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.cli.entry import poseidon

COMMANDS = sorted(poseidon.commands)
USAGE = 2


def test_the_commands() -> None:
    expected = (
        "calibrate compare costs count explain export import launch paper profile replan report search simulate solve "
        "sweep validate verify"
    )
    assert " ".join(COMMANDS) == expected


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_json_and_quiet(cli: Any, command: str) -> None:
    ran = cli(command, "--help")
    assert ran.status == 0
    assert f"{command} " in ran.out.partition("Example")[2]
    assert "--json" in ran.out
    assert "-q, --quiet" in ran.out


def test_the_umbrella_lists_the_commands(cli: Any) -> None:
    ran = cli("--help")
    assert ran.status == 0
    assert all(f"\n  {command} " in ran.out for command in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["searc"], "did you mean 'search'"),
        (["search", "x.yaml", "--polcy", "exact"], "'--policy'"),
        (["search", "x.yaml", "--policy", "best"], "'exact', 'paper', 'brute-force'"),
        (["search", "x.yaml", "--gap", "2"], "0<=x<1"),
        (["search", "x.yaml", "--top", "0"], "1<=x<=1000"),
        (["search", "x.yaml", "--time-limit", "-1"], "x>0"),
        (["search", "x.yaml", "--schedule", "2f2b"], "'1f1b'"),
        (["search", "x.yaml", "y.yaml"], "unexpected extra argument"),
        (["search"], "give EXPERIMENT.yaml, or --model, --cluster, --global-batch-size and --seq-length"),
        (["search", "--model", "m.yaml"], "--cluster, --global-batch-size, --seq-length"),
        (["search", "x.yaml", "--model", "m.yaml"], "either EXPERIMENT or --model"),
        (["solve"], "missing argument"),
        (["verify"], "missing argument"),
        (["sweep"], "missing argument"),
        (["sweep", "x.yaml"], "missing option '--out'"),
        (["search", "quickstart.yaml", "--resume"], "give --out"),
    ],
)
def test_bad_usage_is_one_line(cli: Any, arguments: list[str], message: str) -> None:
    ran = cli(*arguments)
    assert ran.status == USAGE
    assert ran.out == ""
    [line] = ran.mistakes
    assert line.startswith("poseidon")
    assert message in line.replace("Did", "did")
    assert line.endswith("--help)")


def test_no_command_shows_the_help(cli: Any) -> None:
    ran = cli()
    assert ran.status == USAGE
    assert "Commands:" in ran.err


def test_an_output_directory_that_cannot_be_made_is_refused_before_the_search(
    cli: Any, write_experiment: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("")
    ran = cli("search", write_experiment(), "--out", tmp_path / "taken" / "deeper")
    assert ran.status == USAGE
    [line] = ran.mistakes
    assert "cannot be made" in line


@pytest.mark.parametrize("command", ["costs", "solve"])
def test_an_output_file_that_cannot_be_written_is_one_line(
    cli: Any, write_experiment: Callable[..., Path], tmp_path: Path, command: str
) -> None:
    source = write_experiment()
    if command == "solve":
        cli("costs", source, "--out", tmp_path / "costs.jsonl")
        source = tmp_path / "costs.jsonl"
    ran = cli(command, source, "--out", tmp_path / "nowhere" / "out.jsonl")
    assert ran.status == USAGE
    [line] = ran.mistakes
    assert "cannot be written" in line


def test_the_module_is_the_command() -> None:
    root = Path(__file__).parents[2]
    arguments = [sys.executable, "-m", "poseidon.cli", "search", "missing.yaml"]
    ran = subprocess.run(arguments, capture_output=True, text=True, cwd=root, check=False)
    assert ran.returncode == USAGE
    assert ran.stderr == "missing.yaml: no such file\n"
