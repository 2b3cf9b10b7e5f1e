"""Which format a file has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from poseidon.cli.import_profile import FORMAT_NAMES
from poseidon.errors import InputError
from poseidon.profile.importers.formats import FORMATS, detected

from .conftest import DATA

FILES = {
    "metis": ["metis/mbs1_tmp1.json", "metis/mbs4_tmp4.json"],
    "sailor": ["sailor/OPT-350_A100-40.json", "sailor/llm_info.json", "sailor/intra_node_bandwidths.json"],
    "galvatron": [
        *(f"galvatron/{name}_bf16_llama2-7b_all.json" for name in ("computation_profiling", "memory_profiling")),
        *(f"galvatron/{name}_bandwidth_2nodes_8gpus_per_node.json" for name in ("allreduce", "p2p")),
        *("galvatron/sailor_compute_profile.json", "galvatron/sailor_memory_profile.json"),
        "galvatron/memory_profiling_bf16_llama2-7b_seqlen2048_all.json",
    ],
    "aceso": [
        *("aceso/gpt_1_3B_mbs1_tp1_algo0.csv", "aceso/p2p_intra_node.csv"),
        "aceso/prim_gpt_1_3B_all_reduce_2gpus.csv",
    ],
    "megatron": [
        f"megatron/{name}.log" for name in ("all_4_stages", "minmax_4_layers", "max_8_layers", "one_line_4_layers")
    ],
    "ascend": ["ascend", "ascend/ASCEND_PROFILER_OUTPUT", "ascend/ASCEND_PROFILER_OUTPUT/kernel_details.csv"],
    "varuna": ["varuna/profile_1.json"],
    "piper": ["piper/profile.json"],
}


def test_the_command_knows_every_format() -> None:
    assert tuple(FORMATS) == FORMAT_NAMES == tuple(FILES)


@pytest.mark.parametrize(("name", "file"), [(name, file) for name, files in FILES.items() for file in files])
def test_content_tells_the_format(name: str, file: str) -> None:
    assert detected([DATA / file], None).name == name


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (
            "galvatron/overlap_coefficient.json",
            "holds Galvatron's slow-down of overlapped work, which is no part of a profile",
        ),
        ("galvatron/galvatron_config_llama2-7b_1nodes_8gpus_per_node_36GB_bf16.json", "is a plan of Galvatron's"),
        ("aceso/perf_model_time_large_gpt.csv", "is a table of Aceso's results"),
        ("aceso/gpt-1.3b.yaml", r"is in none of the formats that were tried \(metis: JSON .*; piper: .*\)"),
        ("nowhere.json", "no such file"),
        ("nowhere.log", "no such file"),
        ("metis", "is in none of the formats"),
    ],
)
def test_other_files_are_refused_with_what_they_are(file: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        detected([DATA / file], None)


def test_sailors_other_files_are_known(tmp_path: Path) -> None:
    others = {
        "cluster description": {"A100-40": {"gpus_per_node": 4, "mem_per_gpu": 1}, "zone": "z"},
        "training configuration": {"global_batch_size": 1024, "num_all_layers": 26},
        "plan of Sailor's with its measured time": {"pipeline_list": [], "gbs": 144, "real": 59.4},
        "file of poseidon's own": {"schema": "poseidon.profile/1"},
    }
    for said, data in others.items():
        path = tmp_path / "other.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        with pytest.raises(InputError, match=said):
            detected([path], None)


def test_files_of_two_formats_are_refused_together() -> None:
    with pytest.raises(InputError, match=r"mbs1_tmp1\.json: looks like metis, but .*profile_1\.json like varuna"):
        detected([DATA / "varuna/profile_1.json", DATA / "metis/mbs1_tmp1.json"], None)
