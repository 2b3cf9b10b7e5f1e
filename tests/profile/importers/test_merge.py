"""Several files together: they complete each other, and must not contradict each other."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from poseidon.errors import InputError
from poseidon.inputs.model import Model

from .conftest import DATA, MODELS, Importer, layer

RTX = "sailor/OPT-350_RTX-3090.json"


CLUSTER = """
name: c
accelerators:
  RTX-3090: {peak_tflops: 71, memory_gb: 24}
  V100-16: {peak_tflops: 125, memory_gb: 16}
nodes:
  - {accelerator: RTX-3090, count: 1, devices: 4}
  - {accelerator: V100-16, count: 1, devices: 4}
links:
  intra_node: {bandwidth_gbps: 100, latency_us: 5}
  inter_node: {bandwidth_gbps: 10, latency_us: 5}
"""


def twin(tmp_path: Path, change: float) -> Path:
    """The same profile in another folder, with one time changed by a factor."""
    data = json.loads((DATA / RTX).read_text(encoding="utf-8"))
    data["2"]["4"]["0"][0] *= change
    path = tmp_path / "OPT-350_RTX-3090.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_a_number_given_twice_alike_is_no_conflict(tmp_path: Path, import_files: Importer, opt_350: Model) -> None:
    once = import_files(RTX, model=opt_350, seq_length=2048)
    twice = import_files(RTX, twin(tmp_path, 1.0), model=opt_350, seq_length=2048)
    assert twice.profile == once.profile


def test_a_number_given_twice_otherwise_names_both_places(
    tmp_path: Path, import_files: Importer, opt_350: Model
) -> None:
    other = twin(tmp_path, 2.0)
    with pytest.raises(InputError) as error:
        import_files(RTX, other, model=opt_350, seq_length=2048)
    (mistake,) = error.value.mistakes
    assert (mistake.file, mistake.field) == (str(other), "2.4")
    assert mistake.message == (
        "gives 12.302 for forward_ms of the embedding row (accelerator RTX-3090, tp 4, micro_batch_size 2), "
        f"but {DATA / RTX}: 2.4 gives 6.151: leave one of them out"
    )


def test_files_of_two_models_do_not_mix(tmp_path: Path, import_files: Importer) -> None:
    path = tmp_path / "GPT-Neo_A100-40.json"
    shutil.copy(DATA / "sailor" / "OPT-350_A100-40.json", path)
    with pytest.raises(InputError, match="model GPT-Neo does not go with model OPT-350 of"):
        import_files(RTX, path, "sailor/llm_info.json", seq_length=2048)


def test_the_model_supplies_what_the_files_lack_and_no_more(import_files: Importer, opt_350: Model) -> None:
    files = import_files(RTX, "sailor/llm_info.json", model=opt_350, seq_length=2048)
    bare = import_files(RTX, model=opt_350, seq_length=2048)

    assert layer(files, "RTX-3090", 1, 1).activation_bytes == 360_726_528, "as measured, without flash attention"
    assert layer(bare, "RTX-3090", 1, 1).activation_bytes == 34 * 2048 * 1024 + 4 * 2048 * 16, (
        "34 s b h and the log-sum-exp"
    )
    assert layer(bare, "RTX-3090", 1, 1).weight_bytes == layer(files, "RTX-3090", 1, 1).weight_bytes
    assert not [note for note in files.notes if note.startswith("model")]


def test_filling_adds_the_rows_of_the_cluster_and_marks_them(
    tmp_path: Path, import_files: Importer, opt_350: Model
) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(CLUSTER, encoding="utf-8")
    imported = import_files(
        RTX, model=opt_350, model_file=MODELS / "opt-350.yaml", cluster=cluster, fill=True, seq_length=2048
    )
    sources = {
        (key.at.accelerator, key.at.tp, key.at.micro_batch_size): row.source
        for key, row in imported.profile.layers.items()
    }
    assert sources["V100-16", 2, 1] == "analytic"
    assert sources["RTX-3090", 1, 64] == "analytic"
    assert sources["RTX-3090", 4, 32] == ""
    assert sources["RTX-3090", 8, 1] == "", "measured, though no node has eight"
    assert layer(imported, "RTX-3090", 4, 32) == layer(
        import_files(RTX, model=opt_350, seq_length=2048), "RTX-3090", 4, 32
    ), "what was measured stays"


def test_filling_needs_model_and_cluster(import_files: Importer, opt_350: Model) -> None:
    with pytest.raises(InputError, match="--fill: needs --model and --cluster"):
        import_files(RTX, model=opt_350, fill=True, seq_length=2048)
