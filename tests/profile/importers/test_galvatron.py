from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs.model import Model
from poseidon.profile.profile import RowKey

from .conftest import DATA, Importer, layer

TIMES = "galvatron/computation_profiling_bf16_llama2-7b_all.json"
MEMORY = "galvatron/memory_profiling_bf16_llama2-7b_all.json"
ALL_REDUCE = "galvatron/allreduce_bandwidth_2nodes_8gpus_per_node.json"
P2P = "galvatron/p2p_bandwidth_2nodes_8gpus_per_node.json"
GPU = "A100"


def raw(file: str) -> Any:
    return json.loads((DATA / file).read_text(encoding="utf-8"))


def test_times_of_one_sequence_grow_with_the_batch(import_files: Importer, llama_7b: Model) -> None:
    imported = import_files(TIMES, MEMORY, accelerator=GPU)
    data = raw(TIMES)

    row = layer(imported, GPU, 1, 8)
    assert row.forward_ms == pytest.approx(8 * data["layertype_0_bsz8_seq2048"])
    assert row.backward_ms == pytest.approx(2 * row.forward_ms)
    assert imported.profile.head[RowKey(GPU, 1, 8)].forward_ms == pytest.approx(
        8 * data["layertype_other_bsz8_seq2048"]
    )
    assert imported.profile.embedding[RowKey(GPU, 1, 8)].forward_ms == 0
    assert imported.profile.seq_length == 2048


def test_galvatrons_own_numbers_follow_from_its_totals(tmp_path: Path, import_files: Importer) -> None:
    """The file holds raw totals and what Galvatron made of them: both give the same rows."""
    totals = {key: value for key, value in raw(TIMES).items() if key.startswith("layernum")}
    path = tmp_path / "totals.json"
    path.write_text(json.dumps(totals), encoding="utf-8")

    derived = import_files(path, DATA / MEMORY, accelerator=GPU)
    given = import_files(TIMES, MEMORY, accelerator=GPU)

    for at in given.keys:
        for part in ("embedding", "head"):
            ours, theirs = getattr(derived.profile, part)[at], getattr(given.profile, part)[at]
            assert ours.forward_ms == pytest.approx(theirs.forward_ms, abs=1e-9)
        assert layer(derived, GPU, 1, at.micro_batch_size).forward_ms == pytest.approx(
            layer(given, GPU, 1, at.micro_batch_size).forward_ms
        )


def test_memory_becomes_weights_and_activations(import_files: Importer, llama_7b: Model) -> None:
    imported = import_files(TIMES, MEMORY, accelerator=GPU)
    memory = raw(MEMORY)["layertype_0_sp"]["2048"]

    row = layer(imported, GPU, 1, 4)
    assert row.activation_bytes == pytest.approx(4 * memory["tp_activation_per_bsz_dict"]["1"] * 2**20)
    assert row.weight_bytes == pytest.approx(memory["parameter_size"] * 2**20 / 2)
    assert row.weight_bytes == pytest.approx(2 * llama_7b.layer_parameters("dense"), rel=0.01), "4 bytes a parameter"
    embedding = imported.profile.embedding[RowKey(GPU, 1, 4)]
    assert embedding.weight_bytes == pytest.approx(2 * llama_7b.embedding_parameters, rel=0.02), "16 bytes a parameter"


def test_tp_degrees_follow_from_bandwidths_and_model(import_files: Importer, llama_7b: Model) -> None:
    imported = import_files(TIMES, MEMORY, ALL_REDUCE, P2P, accelerator=GPU, model=llama_7b)
    assert {at.tp for at in imported.keys} == {1, 2, 4, 8}

    mib = 2 * 2048 * 4096 * 2 / 2**20
    exchange = 2 * 2 * 3 / 4 * mib / raw(ALL_REDUCE)["allreduce_size_4_consec_1"]
    single, split = layer(imported, GPU, 1, 2), layer(imported, GPU, 4, 2)
    assert split.forward_ms == pytest.approx(single.forward_ms / 4 + exchange)
    assert split.backward_ms == pytest.approx(single.backward_ms / 4 + exchange)
    assert split.weight_bytes == pytest.approx(single.weight_bytes / 4)


def test_without_bandwidths_tp_1_alone_is_imported(import_files: Importer, llama_7b: Model) -> None:
    imported = import_files(TIMES, MEMORY, accelerator=GPU, model=llama_7b)
    assert {at.tp for at in imported.keys} == {1}
    assert (
        "galvatron: TP 2, 4, 8: times need --model and the all-reduce bandwidth of that many devices" in imported.notes
    )


def test_bandwidths_become_rows(import_files: Importer, llama_7b: Model) -> None:
    profile = import_files(TIMES, MEMORY, ALL_REDUCE, P2P, accelerator=GPU, model=llama_7b).profile

    (transfer,) = profile.transfers
    assert transfer.link == "inter_node"
    assert transfer.num_bytes / 2**20 / transfer.ms == pytest.approx(raw(P2P)["pp_size_2"])
    rings = {(row.tp, row.dp): row for row in profile.all_reduce}
    assert rings[1, 8].link == "intra_node"
    assert rings[1, 16].link == "inter_node"
    assert rings[8, 2].link == "inter_node", "two of sixteen devices, eight apart: one on each node"
    assert rings[8, 2].ms == pytest.approx(1 / raw(ALL_REDUCE)["allreduce_size_2_consec_0"])


def test_sailors_static_file_and_sizes_to_choose(import_files: Importer, opt_350: Model) -> None:
    imported = import_files(
        "galvatron/sailor_compute_profile.json",
        "galvatron/sailor_memory_profile.json",
        accelerator=GPU,
        model=opt_350,
        seq_length=2048,
        micro_batch_sizes=(1, 4),
    )
    assert layer(imported, GPU, 1, 4).forward_ms == pytest.approx(4 * 6.3)
    assert imported.profile.head[RowKey(GPU, 1, 1)].forward_ms == pytest.approx(14.4)
    assert layer(imported, GPU, 1, 4).activation_bytes == pytest.approx(4 * 1344.0625 * 2**20)
    assert layer(imported, GPU, 1, 4).weight_bytes == pytest.approx(2 * opt_350.layer_parameters("dense"), rel=1e-3)
    assert any("other_memory_pp_on_first names no TP degree" in note for note in imported.notes)


def test_the_share_of_the_embedding_can_be_given(import_files: Importer) -> None:
    imported = import_files(TIMES, MEMORY, accelerator=GPU, embedding_share=0.25)
    at = RowKey(GPU, 1, 1)
    embedding, head = imported.profile.embedding[at], imported.profile.head[at]
    assert embedding.forward_ms == pytest.approx(head.forward_ms / 3)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            ["galvatron/computation_profiling_bf16_llama2-7b_seqlen2048_all.json"],
            "has one number of layers: the time of a",
        ),
        (
            ["galvatron/memory_profiling_bf16_llama2-7b_seqlen2048_all.json"],
            "has no layertype_0: raw measurements alone",
        ),
        ([MEMORY], "hold memory alone: give the files with times, too"),
        ([P2P], "hold communication alone"),
        ([TIMES], r"missing: dense .*: weight_bytes, activation_bytes"),
    ],
)
def test_files_that_are_not_enough_say_why(files: list[str], message: str, import_files: Importer) -> None:
    with pytest.raises(InputError, match=message):
        import_files(*files, accelerator=GPU)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"layernum[2]_bsz1_seq64": 10.0, "layernum[4]_bsz1_seq64": 9.0}, "2 layers take as long as 4 or longer"),
        ({"layertype_0_bsz1_seq64": 1.0}, "layertype_other_bsz1_seq64: is missing"),
        ({"layertype_0_bsz1_seq64": -1.0, "layertype_other_bsz1_seq64": 1.0}, r"-1\.0 is out of range: 0 to"),
        ({"layernum[2,2]_bsz1_seq64": 1.0}, "has several layer types"),
        (
            {f"layertype_{n}_bsz1_seq{s}": 1.0 for n in ("0", "other") for s in (64, 128)},
            "has the sequence lengths 64, 128: give one of them with --seq-length",
        ),
    ],
)
def test_odd_times_are_refused(data: dict[str, float], message: str, tmp_path: Path, import_files: Importer) -> None:
    path = tmp_path / "computation.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        import_files(path, accelerator=GPU, format_name="galvatron")


def test_activations_of_another_recomputation_are_left_out(import_files: Importer, llama_7b: Model) -> None:
    imported = import_files(TIMES, MEMORY, accelerator=GPU, model=llama_7b, recompute="full")
    kept = {
        key.recompute: row.activation_bytes
        for key, row in imported.profile.layers.items()
        if key.at.micro_batch_size == 1
    }
    assert kept == {"full": 2 * 2048 * 4096}, "a layer's input"
