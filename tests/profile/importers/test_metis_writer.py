"""To Metis' format and back."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs import build_experiment, load_model
from poseidon.inputs.model import Model
from poseidon.profile import Profile, analytic_profile
from poseidon.profile.importers.metis_writer import write_metis

from .conftest import MODELS, Importer

CLUSTERS = MODELS.parent / "clusters"


def profile_of(model: str, recompute: str = "none") -> tuple[Profile, Model]:
    training = {"micro_batch_sizes": [1, 2], "recompute": recompute}
    path = MODELS / f"{model}.yaml"
    experiment = build_experiment(path, CLUSTERS / "npu-1x1.yaml", 16, 4096, training=training)
    return analytic_profile(experiment), load_model(path)


def without_source(profile: Profile) -> Profile:
    return replace(profile, source="")


@pytest.mark.parametrize(
    ("model", "recompute"),
    [("llama-2-13b", "none"), ("llama-3-8b", "full"), ("mixtral-8x7b", "selective"), ("deepseek-v3", "none")],
)
def test_a_profile_comes_back_exactly(model: str, recompute: str, tmp_path: Path, import_files: Importer) -> None:
    profile, shapes = profile_of(model, recompute)
    written = write_metis(profile, shapes, tmp_path)

    back = import_files(*written, model=shapes).profile

    assert len(written) == len(profile.embedding)
    assert without_source(back) == without_source(profile)


def test_without_our_block_sums_and_memory_come_back(tmp_path: Path, import_files: Importer) -> None:
    """What Metis itself reads: forward and backward are a sum, activations are what memory leaves."""
    profile, shapes = profile_of("llama-2-13b")
    written = write_metis(profile, shapes, tmp_path)
    for path in written:
        data = json.loads(path.read_text(encoding="utf-8"))
        del data["poseidon"]
        path.write_text(json.dumps(data), encoding="utf-8")

    back = import_files(*written, model=shapes, rename={"A22": "A2-2", "A23": "A2-3"}).profile

    assert set(back.layers) == set(profile.layers)
    for key, row in profile.layers.items():
        other = back.layers[key]
        assert other.forward_ms + other.backward_ms == pytest.approx(row.forward_ms + row.backward_ms)
        assert other.weight_bytes == row.weight_bytes
        assert other.activation_bytes == pytest.approx(row.activation_bytes, rel=1e-6)
    assert back.seq_length == 4096


def loaded_as_metis_does(folder: Path) -> dict[tuple[str, str, str], Any]:
    """What Metis' loader (data_loader.py at 4b24046) takes from a folder, restated."""
    found = {}
    for path in sorted(folder.iterdir()):
        device = re.search(r"DeviceType\.(\w+?)_", path.name)
        tp, size = re.search(r"tp(\d+)", path.name), re.search(r"bs(\d+)", path.name)
        assert device is not None
        assert tp is not None
        assert size is not None
        data = json.loads(path.read_text(encoding="utf-8"))
        times = data["execution_time"]["layer_compute_total_ms"]
        found[device[1], tp[1], size[1]] = {
            "layer-computes": times,
            "fb_sync": data["execution_time"]["forward_backward_time_ms"] - sum(times),
            "memory": data["execution_memory"]["layer_memory_total_mb"],
            "optimizer": data["execution_time"]["optimizer_time_ms"] * 2,
            "batch_generator": data["execution_time"]["batch_generator_time_ms"],
            "parameters": data["model"]["parameters"]["parameters_per_layer_bytes"],
        }
    return found


def test_metis_loader_finds_what_it_looks_for(tmp_path: Path) -> None:
    profile, shapes = profile_of("llama-2-13b")
    write_metis(profile, shapes, tmp_path)

    found = loaded_as_metis_does(tmp_path)

    assert set(found) == {
        (re.sub("-", "", at.accelerator), str(at.tp), str(at.micro_batch_size)) for at in profile.head
    }
    for values in found.values():
        assert values["fb_sync"] == pytest.approx(0.0)
        assert {len(values[name]) for name in ("layer-computes", "memory", "parameters")} == {shapes.num_layers + 2}
    key = next(iter(profile.layers))
    row = profile.layers[key]
    values = found[re.sub("-", "", key.at.accelerator), str(key.at.tp), str(key.at.micro_batch_size)]
    assert values["memory"][1] == pytest.approx((9 * row.weight_bytes + row.activation_bytes) / 2**20)


def test_two_accelerators_that_metis_can_not_tell_apart_are_refused(tmp_path: Path) -> None:
    profile, shapes = profile_of("llama-2-7b")
    layers = {
        replace(key, at=replace(key.at, accelerator=key.at.accelerator.replace("A2-3", "A-22"))): row
        for key, row in profile.layers.items()
    }
    with pytest.raises(InputError, match="A-22 would be called 'A22' in Metis, like A2-2: rename one"):
        write_metis(replace(profile, layers=layers), shapes, tmp_path)


def test_missing_rows_and_several_recomputation_modes_are_refused(tmp_path: Path) -> None:
    profile, shapes = profile_of("llama-2-7b")
    with pytest.raises(InputError, match=r"has no row for head \(accelerator A2-2, tp 1"):
        write_metis(replace(profile, head={}), shapes, tmp_path)
    several = {**profile.layers, **profile_of("llama-2-7b", "full")[0].layers}
    with pytest.raises(InputError, match="have the recomputation modes full, none: a Metis profile has one"):
        write_metis(replace(profile, layers=several), shapes, tmp_path)
    assert list(tmp_path.iterdir()) == []
