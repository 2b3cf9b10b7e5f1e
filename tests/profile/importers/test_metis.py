from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs.model import Model
from poseidon.profile.profile import RowKey

from .conftest import DATA, Importer, layer

FILE = "metis/mbs1_tmp1.json"
GPU = "RTX-3090"


def raw(file: str = FILE) -> Any:
    return json.loads((DATA / file).read_text(encoding="utf-8"))


def test_forward_and_backward_share_the_total(import_files: Importer, opt_350: Model) -> None:
    imported = import_files(FILE, accelerator=GPU, model=opt_350)
    total = (16.576 + 23 * 16.375) / 24

    assert layer(imported, GPU, 1, 1).forward_ms == pytest.approx(total / 3)
    assert layer(imported, GPU, 1, 1).backward_ms == pytest.approx(2 * total / 3)
    other = import_files(FILE, accelerator=GPU, model=opt_350, backward_ratio=3.0)
    assert layer(other, GPU, 1, 1).forward_ms == pytest.approx(total / 4)


def test_metis_files_say_the_same_as_the_profiles_they_were_made_from(import_files: Importer, opt_350: Model) -> None:
    """Sailor's converter made them from its own files: sums of times, weights and activations agree."""
    for file, gpu, tp, size in ((FILE, GPU, 1, 1), ("metis/mbs4_tmp4.json", "A100-40", 4, 4)):
        metis = import_files(file, accelerator=gpu, model=opt_350)
        own = import_files(f"sailor/OPT-350_{gpu}.json", "sailor/llm_info.json", seq_length=2048)

        row, other = layer(metis, gpu, tp, size), layer(own, gpu, tp, size)
        assert row.forward_ms + row.backward_ms == pytest.approx(other.forward_ms + other.backward_ms)
        assert row.weight_bytes == other.weight_bytes
        assert row.activation_bytes == pytest.approx(other.activation_bytes)
        at = RowKey(gpu, tp, size)
        assert metis.profile.embedding[at].weight_bytes == own.profile.embedding[at].weight_bytes
        assert metis.profile.head[at].activation_bytes == pytest.approx(own.profile.head[at].activation_bytes)


def test_the_sequence_length_follows_from_the_size_of_outputs(import_files: Importer, opt_350: Model) -> None:
    assert import_files(FILE, accelerator=GPU, model=opt_350).profile.seq_length == 2048
    with pytest.raises(InputError, match="sequence length 1024 does not go with sequence length 2048 of"):
        import_files(FILE, accelerator=GPU, model=opt_350, seq_length=1024)


def test_without_a_model_the_bytes_of_a_weight_must_be_said(import_files: Importer) -> None:
    with pytest.raises(InputError, match="give --model FILE or --element-bytes 2 or 4"):
        import_files(FILE, accelerator=GPU, seq_length=2048)
    assert import_files(FILE, accelerator=GPU, seq_length=2048, element_bytes=4).profile.model == "OPT-350"


def test_another_model_is_noticed(import_files: Importer, opt_350: Model) -> None:
    wider = opt_350.model_copy(update={"ffn_hidden_size": 1024})
    with pytest.raises(InputError, match=r"bytes for each of the .* parameters of a layer of OPT-350 at TP 1: 2 or 4"):
        import_files(FILE, accelerator=GPU, model=wider)


def test_memory_that_can_not_hold_the_training_state_is_refused(import_files: Importer, opt_350: Model) -> None:
    with pytest.raises(
        InputError, match=r"1,030\.5 MB of the embedding is less than the training state .*--state-bytes"
    ):
        import_files(FILE, accelerator=GPU, model=opt_350, state_bytes=24.0)


@pytest.mark.parametrize("name", ["profile.json", "DeviceType.A100_tp1.json", "DeviceType.A100_bs1.json"])
def test_a_name_that_does_not_say_the_configuration_is_refused(
    name: str, tmp_path: Path, import_files: Importer, opt_350: Model
) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(raw()), encoding="utf-8")
    with pytest.raises(InputError, match=r"the file's name doesn't say the .*: rename it or give"):
        import_files(path, model=opt_350, accelerator=GPU)
    given = import_files(path, model=opt_350, accelerator=GPU, tp=1, micro_batch_sizes=(1,))
    assert given.keys == (RowKey(GPU, 1, 1),)


def test_metis_own_names_say_everything(tmp_path: Path, import_files: Importer, opt_350: Model) -> None:
    path = tmp_path / "DeviceType.A100_tp1_bs1.json"
    path.write_text(json.dumps(raw()), encoding="utf-8")

    assert import_files(path, model=opt_350).keys == (RowKey("A100", 1, 1),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda d: d["execution_time"].pop("layer_compute_total_ms"),
            "execution_time.layer_compute_total_ms: is missing",
        ),
        (
            lambda d: d["execution_time"]["layer_compute_total_ms"].__setitem__(3, -1.0),
            r"layer_compute_total_ms\[3\]: -1\.0 is too small",
        ),
        (
            lambda d: d["execution_time"]["layer_compute_total_ms"].__setitem__(3, "1"),
            r"layer_compute_total_ms\[3\]: expected a number, got the text '1'",
        ),
        (
            lambda d: d["execution_memory"]["layer_memory_total_mb"].pop(),
            "layer_memory_total_mb: has 25 entries, but layer_compute_total_ms has 26",
        ),
        (
            lambda d: d["model"].update(parameters=[]),
            "model.parameters: expected a mapping of keys to values, got a list",
        ),
    ],
)
def test_odd_files_are_refused_with_field_and_reason(
    change: Callable[[Any], object], message: str, tmp_path: Path, import_files: Importer, opt_350: Model
) -> None:
    data = raw()
    change(data)
    path = tmp_path / "DeviceType.A100_tp1_bs1.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        import_files(path, model=opt_350, format_name="metis")
