"""Sailor's own profiles against the numbers in its files, and numbers from one file against those from another."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import log2
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs.model import Model
from poseidon.profile.profile import RowKey

from .conftest import DATA, Importer, layer

A100 = "sailor/OPT-350_A100-40.json"


def raw(file: str) -> Any:
    return json.loads((DATA / file).read_text(encoding="utf-8"))


def test_seconds_become_milliseconds_and_a_layer_is_the_mean_of_all(import_files: Importer, opt_350: Model) -> None:
    imported = import_files(A100, model=opt_350, seq_length=2048)
    entries = raw(A100)["4"]["2"]

    row = layer(imported, "A100-40", 2, 4)
    assert row.forward_ms == pytest.approx(1e3 * mean(entries[str(index)][0] for index in range(1, 25)))
    assert row.backward_ms == pytest.approx(1e3 * mean(entries[str(index)][1] for index in range(1, 25)))
    at = RowKey("A100-40", 2, 4)
    assert imported.profile.embedding[at].forward_ms == pytest.approx(1e3 * entries["0"][0])
    assert imported.profile.head[at].backward_ms == pytest.approx(1e3 * entries["25"][1])


def test_three_gpus_become_one_profile_and_what_was_not_measured_is_listed(
    import_files: Importer, opt_350: Model
) -> None:
    files = [f"sailor/OPT-350_{gpu}.json" for gpu in ("A100-40", "RTX-3090", "V100-16")]
    imported = import_files(*files, model=opt_350, seq_length=2048)

    measured = {
        (gpu, int(tp), int(size))
        for gpu, file in zip(("A100-40", "RTX-3090", "V100-16"), files, strict=True)
        for size, degrees in raw(file).items()
        for tp in degrees
        if degrees[tp]
    }
    assert {(at.accelerator, at.tp, at.micro_batch_size) for at in imported.keys} == measured
    assert len(measured) == 49
    assert RowKey("V100-16", 1, 8) in imported.holes
    assert not set(imported.holes) & set(imported.keys)


def test_weights_and_activations_come_from_llm_info(import_files: Importer) -> None:
    imported = import_files(A100, "sailor/llm_info.json", seq_length=2048)
    memory = raw("sailor/llm_info.json")["OPT-350"]["4"]

    row = layer(imported, "A100-40", 4, 8)
    assert row.weight_bytes == 2 * memory["2"]["params_floats"]
    assert row.activation_bytes == pytest.approx(8 * mean(memory[str(i)]["act_mem_bytes"] for i in range(1, 25)))
    assert imported.profile.model == "OPT-350"


def test_without_memory_and_model_every_missing_number_is_named(import_files: Importer) -> None:
    with pytest.raises(
        InputError, match=r"missing: dense \(accelerator A100-40, tp 1, .*weight_bytes, activation_bytes"
    ):
        import_files(A100, seq_length=2048)


def test_the_sequence_length_must_be_said(import_files: Importer) -> None:
    with pytest.raises(InputError, match="don't say the sequence length: give --seq-length"):
        import_files(A100, "sailor/llm_info.json")


def test_bandwidth_fits_become_message_times(import_files: Importer) -> None:
    imported = import_files(A100, "sailor/llm_info.json", "sailor/intra_node_bandwidths.json", seq_length=2048)
    (a, b, c), highest = raw("sailor/intra_node_bandwidths.json")["A100-40"]["2"]

    rows = {row.num_bytes: row for row in imported.profile.transfers}
    x = log2(64)
    assert rows[64e6].ms == pytest.approx(64e6 / min((a * x * x + b * x + c) * 1e9, highest) * 1e3)
    assert {row.sender for row in rows.values()} == {"A100-40"}, "GPUs without rows are left out"
    ring = next(r for r in imported.profile.all_reduce if r.dp == 4 and r.num_bytes == 256e6)
    (a, b, c), highest = raw("sailor/intra_node_bandwidths.json")["A100-40"]["4"]
    assert ring.ms == pytest.approx(6 * 64e6 / min((a * x * x + b * x + c) * 1e9, highest) * 1e3)


def test_accelerators_can_be_renamed(import_files: Importer, opt_350: Model) -> None:
    imported = import_files(A100, model=opt_350, seq_length=2048, rename={"A100-40": "A100"})
    assert {at.accelerator for at in imported.keys} == {"A100"}


def test_a_final_norm_before_the_head_belongs_to_the_head(tmp_path: Path, import_files: Importer) -> None:
    times = [[0.001, 0.0, 0.1], *[[0.01, 0.02, 0.1]] * 4, [0.0002, 0.0004, 0.1], [0.003, 0.006, 0.1]]
    path = write(tmp_path, {"1": {"1": {str(index): entry for index, entry in enumerate(times)}}})
    memory = [{"params_floats": 10, "act_mem_bytes": size} for size in (1, 100, 100, 100, 100, 5, 50)]
    info = tmp_path / "llm_info.json"
    info.write_text(json.dumps({"LLAMA": {"1": {str(i): entry for i, entry in enumerate(memory)}}}), encoding="utf-8")

    imported = import_files(path, info, seq_length=128)

    head = imported.profile.head[RowKey("GH-96", 1, 1)]
    assert head.forward_ms == pytest.approx(3.2)
    assert (head.weight_bytes, head.activation_bytes) == (40, 55)
    assert layer(imported, "GH-96", 1, 1).forward_ms == pytest.approx(10.0)


def write(folder: Path, data: Any) -> Path:
    path = folder / "LLAMA_GH-96.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def broken(change: Callable[[Any], None]) -> Any:
    data = {"1": {"1": {str(index): [0.001, 0.002, 0.1] for index in range(26)}}}
    change(data["1"]["1"])
    return data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda run: run.update({"3": [0.001, -0.002, 0.1]}),
            r"1\.1\.3\[1\]: -0\.002 is out of range: 0 to 1e\+15 seconds",
        ),
        (
            lambda run: run.update({"3": [0.001, "fast", 0.1]}),
            r"1\.1\.3\[1\]: expected a number of seconds, got 'fast'",
        ),
        (lambda run: run.update({"3": [0.001]}), r"1\.1\.3: expected \[forward, backward, update\] in seconds"),
        (lambda run: run.pop("7"), r"1\.1: layer 7 is missing"),
        (lambda run: run.pop("25"), r"has 25 entries, but OPT-350 has 24 layers: 26 .* or 27 .* are accepted"),
    ],
)
def test_odd_files_are_refused_with_field_and_reason(
    change: Callable[[Any], None], message: str, tmp_path: Path, import_files: Importer, opt_350: Model
) -> None:
    path = write(tmp_path, broken(change))
    with pytest.raises(InputError, match=message):
        import_files(path, model=opt_350, seq_length=2048)


def test_a_file_of_several_models_takes_the_one_that_the_model_names(
    tmp_path: Path, import_files: Importer, opt_350: Model
) -> None:
    path = write(tmp_path, {"OPT-350": {"GH-96": broken(lambda run: None)}, "GPT-Neo-2.7": {"GH-96": {}}})

    assert layer(import_files(path, model=opt_350, seq_length=2048), "GH-96", 1, 1).forward_ms == pytest.approx(1.0)
    with pytest.raises(InputError, match=r"holds the models 'OPT-350', 'GPT-Neo-2\.7': give --model FILE whose name"):
        import_files(path, seq_length=2048)


@pytest.mark.parametrize(
    ("entry", "gpu", "message"),
    [
        ([1e14, 1e14, 0.1], "GH-96", r"layers\[0\]\.forward_ms: .* is too large"),
        ([0.001, 0.002, 0.1], "G" * 101, r"layers\[0\]\.accelerator: is too long"),
    ],
)
def test_nothing_is_written_that_can_not_be_read(
    entry: list[float], gpu: str, message: str, tmp_path: Path, import_files: Importer, opt_350: Model
) -> None:
    run = {str(index): entry for index in range(26)}
    path = write(tmp_path, {"OPT-350": {gpu: {"1": {"1": run}}}})
    with pytest.raises(InputError, match=message):
        import_files(path, model=opt_350, seq_length=2048)
