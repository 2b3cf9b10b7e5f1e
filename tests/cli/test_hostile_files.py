"""A file that somebody else wrote runs no code, sends nothing, leaves no folder and tells nothing of other files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib.font_manager  # noqa: F401  (writes its cache when it is loaded for the first time)
import pytest
import yaml

from poseidon.profile import analytic_profile, write_profile
from tests.audit import audited
from tests.calibrate.conftest import FILE as RUNS

SECRET = "S3CRET"
READERS: Mapping[str, tuple[str, ...]] = {
    "search": ("search", "FILE"),
    "count": ("count", "FILE"),
    "costs": ("costs", "FILE"),
    "compare": ("compare", "FILE"),
    "sweep": ("sweep", "FILE", "--list"),
    "calibrate": ("calibrate", "FILE"),
    "simulate": ("simulate", "FILE"),
    "verify": ("verify", "FILE"),
    "export": ("export", "FILE", "--to", "megatron"),
    "merge": ("profile", "--merge", "FILE", "--out", "merged.json"),
    "model": ("count", "--model", "FILE", "--cluster", "FILE", "--global-batch-size", "8", "--seq-length", "64"),
    "import": ("import", "metis", "FILE", "--model", "FILE", "--out", "profile.json"),
}
"""Every command that reads a mapping, with its arguments."""
BOMB = b"a: &a [x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (98 + i, 98 + i, b", ".join([b"*%c" % (97 + i)] * 9)) for i in range(20)
)
YAML: Mapping[str, bytes] = {
    "apply": b"model: !!python/object/apply:os.system ['touch PWNED']\n",
    "new": b"!!python/object/new:os.system ['touch PWNED']\n",
    "name": b"model: !!python/name:os.system\n",
    "module": b"model: !!python/module:antigravity\n",
    "own tag": b"model: !!poseidon.Plan {}\n",
    "bomb": BOMB,
    "merge": b"base: &b {a: 1}\nx: {<<: *b}\n",
    "cycle": b"a: &a {b: *a}\n",
    "deep": b"a: " + b"[" * 100_000,
    "deep blocks": b"".join(b" " * depth + b"a:\n" for depth in range(1000)),
    "huge number": b"a: " + b"9" * 1_000_000 + b"\n",
    "huge exponent": b"training: {global_batch_size: 1e99999999}\n",
    "not a number": b"training: {global_batch_size: .nan}\n",
    "twice": b"model: a\nmodel: b\n",
    "zero bytes": b"model: a\0b\n",
    "no text": b"model: \xff\xfe\n",
    "a long line": b"model: " + b"x" * 17_000_000,
    "documents": b"a: 1\n" + b"---\na: 1\n" * 1000,
    "long key": b"? " + b"k" * 1_000_000 + b"\n: 1\n",
}
JSON: Mapping[str, bytes] = {
    "deep": b'{"a": ' + b"[" * 1_000_000,
    "deep objects": b'{"a": ' * 100_000,
    "huge number": b'{"a": ' + b"9" * 1_000_000 + b"}",
    "huge exponent": b'{"a": 1e99999999}',
    "not a number": b'{"a": [NaN, Infinity, -Infinity]}',
    "twice": b'{"schema": "poseidon.plan/1", "schema": "poseidon.plan/1"}',
    "zero bytes": b'{"model": "\0"}',
    "half a character": b'{"schema": "\\ud800", "\\ud800": 1}',
    "escape codes": b'{"schema": "\\u001b[2J", "\\u001b]0;x\\u0007": 1, "\\u009b2J": 1}',
    "a long line": b'{"model": "' + b"x" * 17_000_000 + b'"}',
    "a list": b"[" + b"1," * 400_000 + b"1]",
    "wrong types": b'{"schema": {}, "model": [], "cluster": 1, "training": "x", "axes": {"a": 1}, "stages": null}',
}
FILES = [
    (f"file{suffix}", kind, text) for suffix, all_ in ((".yaml", YAML), (".json", JSON)) for kind, text in all_.items()
]
Write = Callable[..., Path]


def assert_plain(lines: list[str]) -> None:
    """Lines for people: nothing that a terminal would obey, no traceback, no page of data."""
    assert lines
    assert len(lines) <= 60
    for line in lines:
        assert line.isprintable()
        assert len(line) < 1_000
        assert "Traceback" not in line


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, _, text in FILES], ids=[f"{n} {k}" for n, k, _ in FILES]
)
def test_every_command_refuses_it_and_does_nothing(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(text)
    for command, arguments in READERS.items():
        with audited() as deeds:
            ran = cli(*(name if argument == "FILE" else argument for argument in arguments))
        assert (ran.status, ran.out) == (2, ""), (command, ran.err)
        assert_plain(ran.mistakes)
        assert deeds.outside() == [], command
    assert os.listdir() == [name]


@pytest.mark.parametrize("text", [*JSON.values(), BOMB], ids=[*JSON, "bomb"])
def test_problem_lines_are_refused_alike(cli: Any, tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "problems.jsonl"
    path.write_bytes(text + b"\n")
    with audited() as deeds:
        ran = cli("solve", path)
    assert (ran.status, ran.out) == (2, "")
    assert_plain(ran.mistakes)
    assert deeds.outside() == []


OTHERS: Mapping[str, bytes] = {
    "passwd": f"root:{SECRET}:0:0:root:/root:/bin/bash\nbin:{SECRET}:1:1::/:\n".encode(),
    "settings": f"user: me\npassword: {SECRET}\n".encode(),
    "sections": f"[default]\nkey = {SECRET}\n".encode(),
    "table": f"{SECRET},{SECRET}\n{SECRET},1\n".encode(),
    "json": f'{{"token": "{SECRET}", "list": ["{SECRET}"]}}'.encode(),
    "key": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n".encode(),
    "binary": SECRET.encode() + bytes(range(256)),
}
"""Files of the user that a hostile one may point to."""


def pointing(field: str, target: str, write_experiment: Write) -> tuple[str, Any]:
    """A command, and a file for it that names another one in this field."""
    example: Any = yaml.safe_load(write_experiment().read_text())
    if field.startswith("sweep"):
        content: Any = {"experiment": "example.yaml", "axes": {"search.seed": [0]}}
        if field == "sweep.experiment":
            return "sweep", content | {"experiment": target}
        return "sweep", content | {"axes": {field.removeprefix("sweep."): [target]}}
    if field.startswith("runs"):
        part = field.removeprefix("runs.")
        return "calibrate", {**RUNS, "runs": [], part: {"small": target} if part == "models" else target}
    if field == "accelerator":
        example["cluster"]["accelerators"]["fast"] = target
        return "search", example
    return "search", example | {field: target}


FIELDS = (
    *("model", "cluster", "profile", "accelerator"),
    *("sweep.experiment", "sweep.model", "sweep.cluster", "sweep.profile"),
    *("runs.accelerator", "runs.models", "runs.runs", "runs.matmuls"),
)


def refused(cli: Any, command: str, content: Any, path: Path) -> str:
    """What the command says about the file."""
    path.write_text(yaml.safe_dump(content))
    with audited() as deeds:
        ran = cli(command, path, *(["--out", path.parent / "out"] if command == "sweep" else []))
    printed: str = ran.out + ran.err
    assert deeds.outside(path.parent / "out") == []
    assert ran.status == 2 or "(1 refused)" in ran.out, printed
    assert_plain([line for line in printed.splitlines() if line])
    return printed


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_in_another_file_is_not_told(cli: Any, write_experiment: Write, tmp_path: Path, kind: str) -> None:
    for target in ("other", "other.json"):
        (tmp_path / target).write_bytes(OTHERS[kind])
        for field in FIELDS:
            command, content = pointing(field, target, write_experiment)
            assert SECRET not in refused(cli, command, content, tmp_path / "file.yaml"), field


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/stdin", "/proc/self/mem", "pipe", "/proc/self/environ", "."])
def test_what_is_no_file_is_not_read(cli: Any, write_experiment: Write, tmp_path: Path, target: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    for field in FIELDS:
        command, content = pointing(field, target, write_experiment)
        refused(cli, command, content, tmp_path / "file.yaml")


@pytest.fixture
def plan(cli: Any, write_experiment: Write, tmp_path: Path) -> dict[str, Any]:
    assert cli("search", write_experiment(), "--out", tmp_path, "-q").status == 0
    data: dict[str, Any] = json.loads((tmp_path / "plan.json").read_text())
    return data


@pytest.mark.parametrize("field", ["profile", "files", "outer_choice", "schedule", "warnings", "kind", "recompute"])
@pytest.mark.parametrize("value", ["../../../PWNED", "\x1b[2J\x07", "/dev/zero", "$(touch PWNED)"], ids=ascii)
def test_texts_of_a_plan_lead_nowhere(
    cli: Any, plan: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, value: str
) -> None:
    if field in ("profile", "files"):
        plan["inputs"][field] = {value: "0" * 64} if field == "files" else value
    elif field == "warnings":
        plan["search"][field] = [value]
    elif field == "kind":
        plan["stages"][0][field] = value
    else:
        plan[field] = value
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    monkeypatch.chdir(tmp_path)
    exports = [
        ("export", "plan.json", "--to", name, "--out", "out") for name in ("megatron", "flagscale", "torchtitan")
    ]
    for arguments in (("verify", "plan.json"), ("simulate", "plan.json"), *exports):
        with audited() as deeds:
            ran = cli(*arguments)
        assert ran.status in (0, 1, 2)
        assert all(line.isprintable() for line in (ran.out + ran.err).splitlines())
        assert deeds.outside(tmp_path / "out") == []
    assert not list(tmp_path.rglob("*PWNED*"))


def test_rows_of_a_merged_profile_name_no_files(cli: Any, write_experiment: Write, tmp_path: Path) -> None:
    from poseidon.inputs import load_experiment

    experiment = load_experiment(write_experiment(cluster={"name": "../../PWNED"}, model={"name": "../../PWNED"}))
    write_profile(analytic_profile(experiment), tmp_path / "profile.json")
    data = json.loads((tmp_path / "profile.json").read_text())
    for row in (*data["layers"], *data["embedding"], *data["head"]):
        row["accelerator"] = {"fast": "../../PWNED", "slow": "$(touch PWNED)"}[row["accelerator"]]
    (tmp_path / "profile.json").write_text(json.dumps(data))
    (tmp_path / "model.json").write_text(json.dumps(yaml.safe_load(write_experiment().read_text())["model"]))
    (tmp_path / "again.json").write_text(json.dumps(data))
    both = (tmp_path / "profile.json", tmp_path / "again.json")
    merge = ("profile", "--merge", *both, "--out", tmp_path / "out" / "merged.json")
    metis = ("import", "--to", "metis", tmp_path / "profile.json", "--model", tmp_path / "model.json")
    for arguments in (merge, (*metis, "--out", tmp_path / "out")):
        with audited() as deeds:
            ran = cli(*arguments)
        assert ran.status == 0, ran.err
        assert deeds.outside(tmp_path / "out") == []
    assert {path.name.split("_")[0] for path in (tmp_path / "out").glob("Device*")} == {
        "DeviceType.PWNED",
        "DeviceType.touchPWNED",
    }
