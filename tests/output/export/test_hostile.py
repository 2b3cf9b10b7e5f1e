"""A plan is data: whatever it is called, an export has the same commands, and no file outside of its directory."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.errors import InputError
from poseidon.output.export import FRAMEWORKS, ExportedFile, export_plan, write_files
from poseidon.output.plan_file import plan_from_json
from poseidon.output.plan_json import plan_to_json
from poseidon.plan.plan import Plan
from tests.output.export.readers import file_text, module_values, started_by

NAMES = (
    "$(touch PWNED)",
    "`touch PWNED`; touch PWNED #",
    "'; touch PWNED; '",
    '"; touch PWNED; "',
    "../../../../PWNED",
    "/PWNED",
    "x\u0085touch PWNED\u2028touch PWNED",
    "x\u2028system: {evil: true}",
    "{oops: [",
    '"""\nimport os\n',
    "%s{}{place}$place",
    "-m0 type=B",
    "机器",
)


def renamed(plan: Plan, name: str) -> Plan:
    """The plan, with everything that has a name called `name` (accelerators too)."""
    data = json.loads(json.dumps(plan_to_json(plan)))
    data["outer_choice"] = name
    data["inputs"]["name"] = data["inputs"]["model"]["name"] = data["inputs"]["cluster"]["name"] = name
    cluster = data["inputs"]["cluster"]
    old = cluster["nodes"][0]["accelerator"]
    for group in cluster["nodes"]:
        group["cluster"] = name if group["cluster"] == old else group["cluster"]
        group["accelerator"] = name if group["accelerator"] == old else group["accelerator"]
    cluster["accelerators"] = {name if key == old else key: value for key, value in cluster["accelerators"].items()}
    for value in cluster["accelerators"].values():
        value["vendor"] = None
    for stage in data["stages"]:
        stage["kind"] = name
        stage["accelerator"] = name if stage["accelerator"] == old else stage["accelerator"]
    return plan_from_json(data, "plan.json")


def without_comments(text: str) -> list[str]:
    return [line.split("  #")[0] for line in text.splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("name", [name for name in NAMES if name.isprintable()])
def test_names_reach_no_command(searched: Callable[..., Plan], tmp_path: Path, name: str) -> None:
    plain, hostile = renamed(searched("setting2"), "plain"), renamed(searched("setting2"), name)
    for framework in FRAMEWORKS:
        before, after = (export_plan(plan, "plan.json", framework) for plan in (plain, hostile))
        assert [file.name for file in before.files] == [file.name for file in after.files]
        for old, new in zip(before.files, after.files, strict=True):
            assert new.text.isascii()
            assert len(new.text.splitlines()) == len(old.text.splitlines())
            if framework != "flagscale":
                assert without_comments(new.text) == without_comments(old.text)
    started_by(export_plan(hostile, "plan.json", "megatron"), tmp_path, "0", ["pretrain_gpt.py"])
    assert not list(tmp_path.rglob("PWNED*"))
    assert not Path("PWNED").exists()


@pytest.mark.parametrize("name", [name for name in NAMES if name.isprintable()])
def test_flagscale_labels_stay_one_word(searched: Callable[..., Plan], name: str) -> None:
    export = export_plan(renamed(searched("setting2"), name), "plan.json", "flagscale")
    document = yaml.safe_load(file_text(export, "train/plan.yaml"))
    assert set(document) == {"system", "model", "data"}
    labels = document["system"]["hetero"]["hetero_device_types"]
    lines = [line for line in file_text(export, "hostfile").splitlines() if not line.startswith("#")]
    assert [len(line.split()) for line in lines] == [3] * 4
    assert {line.split()[2].removeprefix("type=") for line in lines} == set(labels)


def test_line_breaks_in_names_are_refused(searched: Callable[..., Plan]) -> None:
    for name in NAMES:
        if not name.isprintable():
            with pytest.raises(InputError):
                renamed(searched("setting2"), name)


def test_modules_are_literals_and_definitions(searched: Callable[..., Plan]) -> None:
    import ast

    for framework in ("torchtitan", "colossalai"):
        text = file_text(
            export_plan(renamed(searched("setting2"), NAMES[0]), "plan.json", framework), "poseidon_plan.py"
        )
        for node in ast.parse(text).body:
            assert isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.Assign | ast.AnnAssign)
        assert module_values(text)


Change = Callable[[dict[str, Any]], None]


def _set(*path: Any, value: Any) -> Change:
    def change(data: dict[str, Any]) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("stages", 0, "ranks", value=list(range(8, 16))),
        _set("stages", 0, "nodes", value=[99]),
        _set("stages", 0, "devices", value=[[0, 1, 2, 3, 4, 5, 6, 99]]),
        _set("stages", 1, "nodes", value=[2]),
        _set("dp", value=5),
        _set("num_micro_batches", value=10_000_000),
        _set("micro_batch_size", value=3),
        _set("schedule", value="../../etc/passwd"),
        _set("recompute", value="$(reboot)"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(searched: Callable[..., Plan], change: Change) -> None:
    data = json.loads(json.dumps(plan_to_json(searched("setting2"))))
    change(data)
    for framework in FRAMEWORKS:
        with pytest.raises(InputError):
            export_plan(plan_from_json(data, "plan.json"), "plan.json", framework)


def test_files_stay_in_their_directory(tmp_path: Path) -> None:
    for name in ("../x", "/x", "a/../../x", ""):
        with pytest.raises(AssertionError):
            write_files([ExportedFile(name, "x")], tmp_path / "out")
    assert not (tmp_path / "x").exists()


def test_every_script_is_valid_shell(searched: Callable[..., Plan], tmp_path: Path) -> None:
    for framework in FRAMEWORKS:
        plan = searched("setting2")
        for file in export_plan(plan, "plan.json", framework).files:
            if file.name.endswith(".sh"):
                path = tmp_path / "script.sh"
                path.write_text(file.text)
                assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0


def test_a_script_says_what_it_lacks(searched: Callable[..., Plan], tmp_path: Path) -> None:
    export = export_plan(searched("setting2"), "plan.json", "megatron")
    with pytest.raises(RuntimeError, match="there is no place 4; 0 to 3 are"):
        started_by(export, tmp_path, "4")
    with pytest.raises(RuntimeError, match="set MASTER_ADDR to the address of node2, where rank 0 runs"):
        started_by(export, tmp_path, "0", master=None)
    with pytest.raises(RuntimeError, match="usage: bash launch"):
        started_by(export, tmp_path, "")


def test_hosts_that_are_known_need_no_address(searched: Callable[..., Plan], tmp_path: Path) -> None:
    export = export_plan(searched("setting2"), "plan.json", "megatron", hosts="a,b,c.example.org,10.0.0.4")
    [started] = started_by(export, tmp_path, "1", master=None)
    assert started.value("--master-addr") == "c.example.org"
    assert [place.host for place in export.places] == ["c.example.org", "a", "b", "10.0.0.4"]


def test_a_host_may_be_called_as_the_stand_in(searched: Callable[..., Plan], tmp_path: Path) -> None:
    export = export_plan(searched("setting2"), "plan.json", "megatron", hosts="node0,node1,node2,node3")
    [started] = started_by(export, tmp_path, "1", master=None)
    assert started.value("--master-addr") == "node2"


def test_a_process_that_fails_ends_its_node(searched: Callable[..., Plan], tmp_path: Path) -> None:
    """HexiScale's script starts the processes itself."""
    write_files(export_plan(searched("quickstart"), "plan.json", "hexiscale").files, tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").write_text('#!/bin/sh\n[ "$RANK" = 1 ] && exit 7\nexec sleep 300\n')
    (programs / "python3").chmod(0o755)
    env = {"PATH": f"{programs}:{os.defpath}", "MASTER_ADDR": "10.0.0.1"}
    ran = subprocess.run(["bash", str(tmp_path / "launch.sh"), "3"], env=env, timeout=120, check=False)
    assert ran.returncode == 7


@pytest.mark.parametrize(
    ("hosts", "reason"),
    [
        ("a,b,c", "3 hosts are given; the plan's cluster has 4 nodes"),
        ("a,b,c,$(reboot)", "is not the name or address of a host"),
        ("a,b,c,-oProxyCommand=x", "is not the name or address of a host"),
        ("a,b,c,", "is not the name or address of a host"),
        ("a,b,c,a", "a is listed twice"),
    ],
)
def test_hosts_that_are_none(searched: Callable[..., Plan], hosts: str, reason: str) -> None:
    with pytest.raises(InputError, match="--hosts: ") as caught:
        export_plan(searched("setting2"), "plan.json", "megatron", hosts=hosts)
    assert reason in str(caught.value)
