"""Plans, clusters, profiles, kept plans and names are data: nothing in them runs, and nothing leaves its folder."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.launch.cache import cache_directory
from tests.launch.conftest import Ran
from tests.output.export.test_hostile import NAMES

TEXT = (
    "torchrun --nproc-per-node 8 t.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 512 "
    "--max-position-embeddings 512 --micro-batch-size 1 --global-batch-size 32 --bf16 --vocab-size 1000"
)
TAGS = (
    "!!python/object/apply:os.system ['touch PWNED']",
    "!!python/object/new:subprocess.Popen [['touch', 'PWNED']]",
    "!!python/name:os.system ''",
    "!!python/module:antigravity ''",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: what is run by mistake leaves PWNED there."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


@pytest.fixture
def launch(cli: Callable[..., Ran]) -> Callable[..., Ran]:
    def call(*options: str | Path) -> Ran:
        return cli("launch", "--dry-run", "--json", "--schedule", "1f1b", *options, "--", *TEXT.split())

    return call


def untouched(folder: Path) -> bool:
    return not list(folder.rglob("PWNED")) and not Path("/PWNED").exists()


@pytest.mark.parametrize("option", ["--plan", "--cluster", "--profile"])
@pytest.mark.parametrize("tag", TAGS)
def test_tags_of_yaml_are_refused_and_never_obeyed(
    launch: Callable[..., Ran], cluster_file: Callable[..., Path], folder: Path, option: str, tag: str
) -> None:
    file = folder / "hostile.yaml"
    file.write_text(f"name: {tag}\n")
    cluster = () if option == "--cluster" else ("--cluster", cluster_file("one-a100"))
    ran = launch(option, file, *cluster)
    assert (ran.status, ran.out) == (2, "")
    assert "hostile.yaml" in ran.err
    assert "Traceback" not in ran.err
    assert untouched(folder)


@pytest.mark.parametrize("name", [name for name in NAMES if name.isprintable()])
def test_names_of_a_cluster_are_names(
    launch: Callable[..., Ran], cluster_file: Callable[..., Path], folder: Path, name: str
) -> None:
    usual = launch("--cluster", cluster_file("one-a100")).data["launches"][0]
    data = yaml.safe_load(cluster_file("one-a100").read_text())
    [accelerator] = data["accelerators"].values()
    data |= {"name": name, "accelerators": {name: accelerator}}
    data["nodes"] = [{"accelerator": name, "count": 1, "devices": 8}]
    file = folder / "named.yaml"
    file.write_text(yaml.safe_dump(data))
    ran = launch("--cluster", file)
    assert ran.status == 0, ran.err
    assert ran.data["launches"][0]["command"] == usual["command"]
    assert untouched(folder)


@pytest.mark.parametrize("name", [*(name for name in NAMES if not name.isprintable()), "a\x1b[2Jb", "a\x00b", ""])
def test_names_that_can_not_be_printed_are_refused(
    launch: Callable[..., Ran], cluster_file: Callable[..., Path], folder: Path, name: str
) -> None:
    data = yaml.safe_load(cluster_file("one-a100").read_text()) | {"name": name}
    file = folder / "cluster.json"
    file.write_text(json.dumps(data))
    ran = launch("--cluster", file)
    assert ran.status == 2
    assert "\x1b" not in ran.err


def test_a_hostile_plan_changes_no_more_than_its_own_flags(
    launch: Callable[..., Ran], cluster_file: Callable[..., Path], folder: Path
) -> None:
    launch("--cluster", cluster_file("one-a100"), "--out", folder / "runs")
    file = folder / "runs" / "plan.json"
    data = json.loads(file.read_text())
    data["inputs"]["name"] = data["inputs"]["model"]["name"] = "$(touch PWNED)"
    data["inputs"]["profile"] = "../../../etc/passwd"
    data["outer_choice"] = "--load /etc; touch PWNED"
    file.write_text(json.dumps(data))
    ran = launch("--plan", file)
    assert ran.status == 0, ran.err
    assert "/etc" not in " ".join(ran.data["launches"][0]["command"])
    for key, value in (
        ("schedule", "1f1b; touch PWNED"),
        ("recompute", "full --load /etc"),
        ("micro_batch_size", "1;x"),
    ):
        file.write_text(json.dumps(data | {key: value}))
        assert launch("--plan", file).status == 2, key
    assert untouched(folder)


def test_what_a_plan_may_not_set_it_does_not(
    launch: Callable[..., Ran], cluster_file: Callable[..., Path], folder: Path
) -> None:
    """A plan whose inputs were changed to another precision is refused: a name of its own would become a flag."""
    launch("--cluster", cluster_file("one-a100"), "--out", folder)
    file = folder / "plan.json"
    data = json.loads(file.read_text())
    data["inputs"]["training"]["precision"] = "use-tp-pp-dp-mapping"
    file.write_text(json.dumps(data))
    assert launch("--plan", file).status == 2


@pytest.mark.parametrize("kind", ["link out", "link to itself", "tags", "huge", "pipe"])
def test_a_hostile_cache_is_ignored(
    launch: Callable[..., Ran], cluster_file: Callable[..., Path], folder: Path, kind: str
) -> None:
    cluster = cluster_file("one-a100")
    first = launch("--cluster", cluster).data["launches"][0]
    [kept] = cache_directory().glob("*.json")
    kept.unlink()
    secret = folder / "secret"
    secret.write_text("not to be changed")
    if kind == "link out":
        kept.symlink_to(secret)
    elif kind == "link to itself":
        kept.symlink_to(kept)
    elif kind == "tags":
        kept.write_text(f"schema: {TAGS[0]}\n")
    elif kind == "huge":
        kept.write_text("[" * 200_000)
    else:
        os.mkfifo(kept)
    again = launch("--cluster", cluster).data["launches"][0]
    assert (again["plan_from"], again["command"]) == ("search", first["command"])
    assert secret.read_text() == "not to be changed"
    assert untouched(folder)
    assert launch("--cluster", cluster).data["launches"][0]["plan_from"] == "cache"


def test_the_cache_lies_where_it_should(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/../..")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "poseidon" / "launch"


@pytest.mark.parametrize("value", ["a b", "$(touch PWNED)", "x'; touch PWNED; '", "`touch PWNED`", "line\nbreak", "*"])
def test_a_printed_command_is_quoted(
    cli: Callable[..., Ran], cluster_file: Callable[..., Path], folder: Path, value: str
) -> None:
    command: list[Any] = [*TEXT.split(), "--data-path", value, f"--note={value}"]
    ran = cli("launch", "--dry-run", "-q", "--cluster", cluster_file("one-a100"), "--", *command)
    program = folder / "torchrun"
    program.write_text('#!/bin/sh\nprintf "%s\\0" "$@"\n')
    program.chmod(0o755)
    env = {"PATH": f"{folder}:{os.defpath}"}
    pasted = subprocess.run(["bash", "-c", ran.out], env=env, capture_output=True, timeout=60, check=True)
    words = pasted.stdout.decode().split("\0")
    assert words[words.index("--data-path") + 1] == value
    assert f"--note={value}" in words
    assert untouched(folder)
