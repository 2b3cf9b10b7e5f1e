from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from poseidon.errors import InputError
from poseidon.output.plan_file import read_plan, write_plan
from poseidon.output.plan_json import plan_to_json
from poseidon.plan.plan import Plan

SHAPES: dict[str, dict[str, dict[str, object]]] = {
    "plain": {},
    "chunks": {"training": {"schedules": ["interleaved_1f1b"]}},
    "idle devices": {"search": {"allow_idle": True, "fixed_pp": 1, "fixed_dp": 1, "fixed_tp": 1}},
    "alternatives": {"search": {"top": 4}},
    "tp by stage": {"search": {"tp": "per-stage", "assignment": "stage"}},
    "recompute": {"training": {"recompute": "full"}},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_plan_comes_back_as_it_was(make_plan: Callable[..., Plan], tmp_path: Path, shape: str) -> None:
    plan = make_plan(**SHAPES[shape])
    path = write_plan(plan, tmp_path / "runs" / "deep")
    assert path == tmp_path / "runs" / "deep" / "plan.json"
    assert read_plan(path) == plan


def test_the_file_is_json_that_every_reader_accepts(make_plan: Callable[..., Plan], tmp_path: Path) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    plan = make_plan()
    data = json.loads(write_plan(plan, tmp_path).read_text(), parse_constant=refuse)
    assert data == json.loads(json.dumps(plan_to_json(plan)))


def test_one_chunk_has_numbers_and_several_have_lists(make_plan: Callable[..., Plan]) -> None:
    [one, *_] = plan_to_json(make_plan())["stages"]
    [several, *_] = plan_to_json(make_plan(training={"schedules": ["interleaved_1f1b"]}))["stages"]
    assert isinstance(one["layers"], int)
    assert isinstance(one["forward_ms"], float)
    assert isinstance(one["layer_range"][0], int)
    assert len(several["layers"]) == len(several["forward_ms"]) == len(several["layer_range"]) == 2


def test_a_failed_write_leaves_the_old_plan(
    make_plan: Callable[..., Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan()
    (tmp_path / "plan.json").write_text("old")

    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_plan(plan, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".json" or ".plan" in path.name] == ["plan.json"]
    assert (tmp_path / "plan.json").read_text() == "old"


def test_inputs_have_the_hashes_of_all_files(make_plan: Callable[..., Plan]) -> None:
    files = plan_to_json(make_plan())["inputs"]["files"]
    assert files.keys() == {"example.yaml"}
    assert all(len(digest) == 64 for digest in files.values())
