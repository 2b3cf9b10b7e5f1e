from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.profile import read_profile
from poseidon.profile.measure.merge import merged_profiles

TAKEN = {
    "model_sha256": "a" * 64,
    "sequence_parallel": True,
    "device": "cpu",
    "device_name": "EPYC",
    "host": "node-1",
    "processes": 2,
    "backend": "gloo",
    "threads": 1,
    "torch": "2.13.0",
    "poseidon": "0.1.0",
    "started": "2026-11-30T10:00:00+00:00",
    "finished": "2026-11-30T10:01:00+00:00",
    "warmups": 3,
    "fewest_samples": 5,
    "most_samples": 50,
    "error_limit": 0.02,
    "no_room": [],
}


def row(accelerator: str, layer_type: str, **changes: Any) -> dict[str, Any]:
    sizes = {"weight_bytes": 10, "activation_bytes": 20, "recomputed_bytes": 0}
    where = {"accelerator": accelerator, "tp": 1, "micro_batch_size": 1, "layer_type": layer_type}
    return where | {"forward_ms": 1.0, "backward_ms": 2.0} | sizes | changes


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def file(
        name: str, accelerator: str, taken: dict[str, Any] | None = None, measured: bool = True, **changes: Any
    ) -> Path:
        transfer = {"from": accelerator, "to": accelerator, "link": "intra_node", "bytes": 1024, "ms": 0.5}
        data = {
            "schema": "poseidon.profile/1",
            "model": "tiny",
            "seq_length": 64,
            "precision": "bf16",
            "source": name,
            **({"taken": [{**TAKEN, "accelerator": accelerator, **(taken or {})}]} if measured else {}),
            "layers": [row(accelerator, "dense", recompute=mode) for mode in ("none", "full")],
            "embedding": [row(accelerator, "embedding")],
            "head": [row(accelerator, "head")],
            "transfers": [transfer],
            "all_reduce": [{"accelerator": accelerator, "tp": 1, "dp": 2, "link": "intra_node", "bytes": 4, "ms": 1}],
        }
        path = tmp_path / name
        path.write_text(json.dumps(data | changes))
        return path

    return file


def test_files_of_two_machines_become_one(write: Callable[..., Path], tmp_path: Path) -> None:
    document = merged_profiles([write("a.json", "fast"), write("b.json", "slow", taken={"host": "node-2"})])
    (tmp_path / "all.json").write_text(json.dumps(document))
    profile = read_profile(tmp_path / "all.json")
    assert {key.at.accelerator for key in profile.layers} == {"fast", "slow"}
    assert len(profile.layers) == 4
    assert len(profile.transfers) == len(profile.all_reduce) == 2
    assert [run["host"] for run in document["taken"]] == ["node-1", "node-2"]
    assert "fast on node-1" in profile.source
    assert "slow on node-2" in profile.source


def test_the_same_file_twice_is_the_file(write: Callable[..., Path]) -> None:
    path = write("a.json", "fast")
    document = merged_profiles([path, path])
    original = json.loads(path.read_text())
    assert {name: document[name] for name in original if name != "source"} == {
        name: value for name, value in original.items() if name != "source"
    }


def test_a_row_that_two_files_give_differently_is_named(write: Callable[..., Path]) -> None:
    first = write("a.json", "fast")
    other = write("b.json", "fast", head=[row("fast", "head", forward_ms=1.5)])
    with pytest.raises(InputError) as error:
        merged_profiles([first, other])
    [mistake] = error.value.mistakes
    assert mistake.file == str(other)
    assert mistake.field == "head[0]"
    assert "(accelerator fast, tp 1, micro_batch_size 1) differs from that in" in mistake.message


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"seq_length": 128}, "seq_length"),
        ({"model": "other"}, "model"),
        ({"precision": "fp16"}, "precision"),
        ({"taken": {"model_sha256": "b" * 64}}, "taken"),
    ],
)
def test_files_of_different_jobs_are_refused(write: Callable[..., Path], changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError) as error:
        merged_profiles([write("a.json", "fast"), write("b.json", "slow", **changes)])
    assert [mistake.field for mistake in error.value.mistakes] == [field]


def test_sequence_parallelism_counts_where_it_is_said(write: Callable[..., Path]) -> None:
    silent, said = write("a.json", "fast"), write("b.json", "slow", sequence_parallel=True)
    assert merged_profiles([silent, said])["sequence_parallel"] is True
    with pytest.raises(InputError, match="sequence_parallel: is False, but True"):
        merged_profiles([said, write("c.json", "third", sequence_parallel=False)])


def test_a_file_that_was_not_measured_here_keeps_its_own_source(write: Callable[..., Path]) -> None:
    document = merged_profiles([write("a.json", "fast"), write("b.json", "slow", measured=False)])
    assert document["source"].startswith("measured by poseidon profile: fast on node-1")
    assert document["source"].endswith("; b.json")
    assert len(document["taken"]) == 1


def test_an_invalid_file_is_named(write: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=r"b\.json: layers: "):
        merged_profiles([write("a.json", "fast"), write("b.json", "slow", layers=[])])
