from __future__ import annotations

import csv
from pathlib import Path

import pytest

from poseidon.errors import InputError
from poseidon.inputs.model import Model
from poseidon.inputs.model_file import load_model
from poseidon.profile.profile import RowKey

from .conftest import DATA, Importer, layer

TP1, TP2 = "aceso/gpt_1_3B_mbs1_tp1_algo0.csv", "aceso/gpt_1_3B_mbs1_tp2_algo0.csv"
GPU = "V100"


@pytest.fixture
def gpt() -> Model:
    return load_model(DATA / "aceso" / "gpt-1.3b.yaml")


def rows(file: str) -> dict[str, dict[str, str]]:
    with open(DATA / file, encoding="utf-8") as stream:
        return {row["op_name"]: row for row in csv.DictReader(stream)}


def test_a_layer_is_the_sum_of_its_operators(import_files: Importer) -> None:
    imported = import_files(TP1, TP2, accelerator=GPU, seq_length=2048)
    operators = [row for name, row in rows(TP2).items() if name.startswith("enc-")]

    row = layer(imported, GPU, 2, 1)
    assert len(operators) == 13
    assert row.forward_ms == pytest.approx(sum(float(op["forward-compute"]) for op in operators) / 1e3)
    assert row.backward_ms == pytest.approx(sum(float(op["backward-compute"]) for op in operators) / 1e3)
    assert row.activation_bytes == pytest.approx(sum(float(op["activations"]) for op in operators) * 2**20)
    assert imported.profile.model == "gpt_1_3B"


def test_weights_are_those_of_the_model(import_files: Importer, gpt: Model) -> None:
    """Units: MiB of 2-byte weights; the table leaves out biases and norms."""
    imported = import_files(TP1, TP2, accelerator=GPU, model=gpt)
    at = RowKey(GPU, 2, 1)

    assert layer(imported, GPU, 2, 1).weight_bytes == pytest.approx(gpt.layer_parameters("dense"), rel=0.002)
    head = gpt.head_parameters + gpt.output_projection_parameters
    assert imported.profile.head[at].weight_bytes == pytest.approx(head, rel=0.002)
    assert imported.profile.embedding[at].weight_bytes == pytest.approx(108 * 2**20)


def test_the_sequence_length_follows_from_the_embedding(import_files: Importer, gpt: Model) -> None:
    assert import_files(TP1, accelerator=GPU, model=gpt).profile.seq_length == 2048


def test_communication_tables_become_rows(import_files: Importer, gpt: Model) -> None:
    profile = import_files(
        TP1, "aceso/p2p_intra_node.csv", "aceso/prim_gpt_1_3B_all_reduce_2gpus.csv", accelerator=GPU, model=gpt
    ).profile

    times = {row.num_bytes: row.ms for row in profile.transfers}
    assert times[64 * 2**20] == pytest.approx(64 / 10.96)
    ring = {row.num_bytes: row for row in profile.all_reduce}
    assert ring[1024 * 2**20].ms == pytest.approx(149.108)
    assert {(row.tp, row.dp, row.link) for row in ring.values()} == {(1, 2, "intra_node")}


def test_the_accelerator_must_be_said(import_files: Importer) -> None:
    with pytest.raises(InputError, match="neither the file's name nor its content says the accelerator"):
        import_files(TP1, seq_length=2048)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("659.752", "fast", r"line 4, forward-compute: expected a number of microseconds, got 'fast'"),
        ("659.752", "-659.752", r"line 4, forward-compute: '-659\.752' is out of range: 0 to"),
        ("659.752", "nan", r"line 4, forward-compute: is 'nan': a finite number of microseconds is expected"),
        (",activations,", ",kept,", "line 1: the columns activations are missing"),
        (
            "enc-MLP-gelu",
            "enc-MLP-relu",
            "op_name: enc-MLP-gelu are missing: the operators of Aceso's GPT are expected",
        ),
        ("enc-MLP-gelu", "enc-MLP-GEMM-1", r"line 13: 'enc-MLP-GEMM-1' is given twice"),
        ("60.588,402.308,", "60.588,", r"line 16: has 8 fields, the header 9"),
    ],
)
def test_odd_tables_are_refused(old: str, new: str, message: str, tmp_path: Path, import_files: Importer) -> None:
    text = (DATA / TP1).read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / Path(TP1).name
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        import_files(path, accelerator=GPU, seq_length=2048)
