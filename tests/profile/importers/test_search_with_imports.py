"""Every sample profile, from the peer's files to a plan that the independent checks accept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from poseidon.inputs import build_experiment, load_model
from poseidon.inputs.model import Model
from poseidon.plan.check import check_plan
from poseidon.plan.finding import Verdict
from poseidon.plan.plan import Plan
from poseidon.planner import find_plan
from poseidon.profile import write_profile
from poseidon.profile.importers import ImportOptions, import_profile

from .conftest import DATA, MODELS, TINY_2048


@dataclass(frozen=True)
class Case:
    """Files, the model they are of, nodes of a cluster (accelerator, count, devices), and what they allow."""

    files: tuple[str, ...]
    model: str
    nodes: tuple[tuple[str, int, int], ...]
    sizes: tuple[int, ...] = (1,)
    options: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, Any] = field(default_factory=dict)
    seq_length: int = 2048


SAILOR = tuple(f"sailor/OPT-350_{gpu}.json" for gpu in ("A100-40", "RTX-3090", "V100-16"))
GALVATRON = (
    "galvatron/computation_profiling_bf16_llama2-7b_all.json",
    "galvatron/memory_profiling_bf16_llama2-7b_all.json",
    "galvatron/allreduce_bandwidth_2nodes_8gpus_per_node.json",
    "galvatron/p2p_bandwidth_2nodes_8gpus_per_node.json",
)
MIXED = (("A100-40", 2, 4), ("RTX-3090", 1, 4), ("V100-16", 1, 4))
X = {"accelerator": "X"}
S = {"seq_length": 2048}
ONE_X = (("X", 4, 1),)
CASES = {
    "sailor": Case(SAILOR, "opt-350", MIXED, (1, 2, 4), S),
    "sailor with memory and bandwidths": Case(
        (*SAILOR, "sailor/llm_info.json", "sailor/intra_node_bandwidths.json"), "opt-350", MIXED, (1, 2, 4), S
    ),
    "metis": Case(("metis/mbs1_tmp1.json",), "opt-350", ONE_X, options=X),
    "metis of another size": Case(("metis/mbs4_tmp4.json",), "opt-350", (("X", 2, 4),), (4,), X, {"fixed_tp": 4}),
    "galvatron": Case(GALVATRON, "llama-2-7b", (("X", 2, 8),), (1, 2), X),
    "galvatron static": Case(
        ("galvatron/sailor_compute_profile.json", "galvatron/sailor_memory_profile.json"),
        "opt-350",
        ONE_X,
        (1, 2),
        X | S | {"micro_batch_sizes": (1, 2)},
    ),
    "aceso of Sailor": Case(
        ("aceso/OPT-350_mbs1_tp1_algo0.csv", "aceso/p2p_intra_node.csv"), "opt-350", ONE_X, options=X
    ),
    "aceso": Case(
        (
            "aceso/gpt_1_3B_mbs1_tp1_algo0.csv",
            "aceso/gpt_1_3B_mbs1_tp2_algo0.csv",
            "aceso/p2p_intra_node.csv",
            "aceso/prim_gpt_1_3B_all_reduce_2gpus.csv",
        ),
        "gpt-1.3b",
        (("X", 4, 2),),
        options=X,
    ),
    "megatron": Case(
        ("megatron/minmax_4_layers.log", "megatron/minmax_8_layers.log"),
        "tiny-2048",
        (("X", 4, 2),),
        (2,),
        X,
        {"fixed_tp": 2},
        1024,
    ),
    "ascend": Case(
        ("ascend",),
        "tiny-2048",
        (("X", 2, 2), ("Y", 1, 2)),
        (1,),
        X | S | {"tp": 2, "micro_batch_sizes": (1,), "fill": True},
    ),
    "varuna": Case(("varuna/profile_1.json",), "opt-350", ONE_X, (1, 2, 4, 8), X | S),
    "piper": Case(("piper/profile.json",), "opt-350", (("X", 2, 4),), (1, 2), X | S),
}


def model_file(name: str, folder: Path) -> Path:
    if name == "gpt-1.3b":
        return DATA / "aceso" / "gpt-1.3b.yaml"
    if name != "tiny-2048":
        return MODELS / f"{name}.yaml"
    path = folder / "tiny-2048.json"
    path.write_text(Model.model_validate(TINY_2048).model_dump_json(exclude_none=True), encoding="utf-8")
    return path


def cluster_file(case: Case, folder: Path) -> Path:
    devices = "\n".join(f"  {name}: {{peak_tflops: 300, memory_gb: 40}}" for name, _, _ in case.nodes)
    nodes = "\n".join(f"  - {{accelerator: {name}, count: {n}, devices: {d}}}" for name, n, d in case.nodes)
    links = "\n".join(
        f"  {name}: {{bandwidth_gbps: {gbps}, latency_us: 5}}"
        for name, gbps in (("intra_node", 400), ("inter_node", 100), ("cross_cluster", 50))
    )
    path = folder / "cluster.yaml"
    path.write_text(f"name: c\naccelerators:\n{devices}\nnodes:\n{nodes}\nlinks:\n{links}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", CASES)
def test_an_imported_profile_leads_to_a_sound_plan(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    model, cluster = model_file(case.model, tmp_path), cluster_file(case, tmp_path)
    options = ImportOptions(model=load_model(model), model_file=model, cluster=cluster, **case.options)
    imported = import_profile([DATA / file for file in case.files], options)
    profile = tmp_path / "profile.json"
    write_profile(imported.profile, profile)

    training = {"micro_batch_sizes": list(case.sizes), "schedules": ["1f1b"]}
    experiment = build_experiment(
        model, cluster, 16, case.seq_length, training=training, search=dict(case.search), profile=str(profile)
    )
    found = find_plan(experiment)

    assert isinstance(found, Plan), found
    assert found.experiment.profile == str(profile)
    wrong = [finding for finding in check_plan(found) if finding.verdict is Verdict.WRONG]
    assert wrong == []
