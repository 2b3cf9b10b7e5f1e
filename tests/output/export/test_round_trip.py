"""What every export says, read back and compared with the plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.output.export import Export, export_plan
from poseidon.output.export.hexiscale_script import processes_of
from poseidon.output.export.request import Request
from poseidon.plan.plan import Plan
from poseidon.plan.timing import pipeline_order
from poseidon.schedule.text import order_from_text
from tests.output.export.readers import (
    devices_by_rank,
    file_text,
    layers_of_layout,
    module_values,
    planned_devices,
    planned_layers,
    started_by,
)

TORCHRUN = ("--nnodes", "--node-rank", "--nproc-per-node")
GPUS = ("quickstart", "setting5")
NPUS = ("setting1", "setting2", "setting3", "setting4")
ALL = (*GPUS, *NPUS)
INTERLEAVED = ("quickstart", {"schedules": ["interleaved_1f1b"]}, {})
ANY_ORDER = ("quickstart", {}, {"assignment": "stage"})
"""Its A100 node holds the first and the last stage."""


def plan_and_export(searched: Callable[..., Plan], framework: str, *case: Any, **options: str) -> tuple[Plan, Export]:
    plan = searched(*case)
    return plan, export_plan(plan, "plan.json", framework, **options)


@pytest.mark.parametrize("case", [*((name,) for name in ALL), INTERLEAVED, ANY_ORDER], ids=str)
def test_megatron(searched: Callable[..., Plan], tmp_path: Path, case: Any) -> None:
    plan, export = plan_and_export(searched, "megatron", *case)
    [started] = started_by(export, tmp_path, "0", ["pretrain_gpt.py", "--lr", "1e-4"])
    pp = int(started.value("--pipeline-model-parallel-size"))
    assert layers_of_layout(started.value("--pipeline-model-parallel-layout"), pp) == planned_layers(plan)
    assert devices_by_rank(export, tmp_path, *TORCHRUN) == planned_devices(plan)
    tp, world = int(started.value("--tensor-model-parallel-size")), len(planned_devices(plan))
    assert {stage.tp for stage in plan.pipeline.stages} == {tp}
    assert world // (tp * pp) == plan.pipeline.dp
    micro_batch, batch = (int(started.value(f"--{name}-batch-size")) for name in ("micro", "global"))
    assert batch == micro_batch * plan.pipeline.dp * plan.pipeline.num_micro_batches
    own = started.argv.index("pretrain_gpt.py")
    assert started.argv[own : own + 3] == ["pretrain_gpt.py", "--lr", "1e-4"]
    assert started.argv.index("--bf16") > own


@pytest.mark.parametrize("name", ALL)
def test_older_megatron_gets_first_and_last_or_a_reason(
    searched: Callable[..., Plan], tmp_path: Path, name: str
) -> None:
    from poseidon.errors import InputError

    plan = searched(name)
    counts = [layers for [layers] in planned_layers(plan)]
    if len(set(counts[1:-1])) > 1:
        with pytest.raises(InputError, match="use core 0"):
            export_plan(plan, "plan.json", "megatron", "0.12")
        return
    [started] = started_by(export_plan(plan, "plan.json", "megatron", "core_r0.12.1"), tmp_path, "0")
    assert "--pipeline-model-parallel-layout" not in started.argv
    if len(set(counts)) == 1:
        assert "--decoder-first-pipeline-num-layers" not in started.argv
        return
    first = int(started.value("--decoder-first-pipeline-num-layers"))
    last = int(started.value("--decoder-last-pipeline-num-layers"))
    middle = len(counts) - 2
    each = (int(started.value("--num-layers")) - first - last) // middle if middle else 0
    assert [first, *[each] * middle, last] == counts


@pytest.mark.parametrize("name", NPUS)
def test_mindspeed_llm(searched: Callable[..., Plan], tmp_path: Path, name: str) -> None:
    plan, export = plan_and_export(searched, "mindspeed-llm", name)
    [started] = started_by(export, tmp_path, "1", ["pretrain_gpt.py"])
    assert started.program == "python"
    assert started.argv[:2] == ["-m", "torch.distributed.launch"]
    assert [[int(count)] for count in started.value("--num-layer-list").split(",")] == planned_layers(plan)
    assert devices_by_rank(export, tmp_path, "--nnodes", "--node_rank", "--nproc_per_node") == planned_devices(plan)


def test_mindspeed_llm_lays_out_chunks_from_26_1_on(searched: Callable[..., Plan], tmp_path: Path) -> None:
    plan = searched("setting2", {"schedules": ["interleaved_1f1b"]})
    [started] = started_by(export_plan(plan, "plan.json", "mindspeed-llm", "26.1"), tmp_path, "0")
    assert layers_of_layout(started.value("--pipeline-model-parallel-layout"), plan.pipeline.pp) == planned_layers(plan)
    assert "--num-layer-list" not in started.argv


@pytest.mark.parametrize("case", [*((name,) for name in ALL), ("quickstart", {}, {"tp": "per-type"})], ids=str)
def test_flagscale(searched: Callable[..., Plan], case: Any) -> None:
    plan, export = plan_and_export(searched, "flagscale", *case)
    hetero = yaml.safe_load(file_text(export, "train/plan.yaml"))["system"]["hetero"]
    assert [[count] for count in hetero["hetero_pipeline_layer_split"]] == planned_layers(plan)
    numbers = hetero["hetero_process_meshes"]
    meshes = [numbers[first : first + 5] for first in range(0, len(numbers), 5)]
    degrees = [(tp, dp) for tp, cp, ep, dp, pp in meshes for _ in range(pp)]
    assert degrees == [(stage.tp, plan.pipeline.dp) for stage in plan.pipeline.stages]
    assert sum(tp * cp * dp * pp for tp, cp, ep, dp, pp in meshes) == len(planned_devices(plan))
    labels = hetero["hetero_device_types"]
    assert len(set(labels)) == len(labels) == len(meshes)
    hosts = [line.split() for line in file_text(export, "hostfile").splitlines() if not line.startswith("#")]
    # FlagScale sorts ranks by the place of their host's label, then by rank.
    ranks = [
        (labels.index(kind.removeprefix("type=")), int(host.removeprefix("node")), device)
        for host, slots, kind in hosts
        for device in range(int(slots.removeprefix("slots=")))
    ]
    assert [(node, device) for _, node, device in sorted(ranks, key=lambda rank: rank[0])] == planned_devices(plan)
    runner = yaml.safe_load(file_text(export, "experiment.yaml"))["experiment"]["runner"]
    assert runner["nnodes"] == len(hosts)


@pytest.mark.parametrize(
    "case",
    [
        *((name,) for name in ALL),
        INTERLEAVED,
        ANY_ORDER,
        ("quickstart", {"schedules": ["adaptive_1f1b"]}, {}),
        ("quickstart", {"schedules": ["eager_1f1b"]}, {}),
        ("setting1", {"schedules": ["gpipe"], "recompute": "full", "global_batch_size": 16}, {}),
    ],
    ids=str,
)
def test_torchtitan(searched: Callable[..., Plan], tmp_path: Path, case: Any) -> None:
    plan, export = plan_and_export(searched, "torchtitan", *case)
    pipeline = plan.pipeline
    values = module_values(file_text(export, "poseidon_plan.py"))
    parts = values["MODULE_FQNS"]
    names = [name for part in parts for name in part]
    num_layers = plan.experiment.model.num_layers
    assert names == ["tok_embeddings", *(f"layers.{layer}" for layer in range(num_layers)), "norm", "lm_head"]
    counts = [sum(name.startswith("layers.") for name in part) for part in parts]
    assert [counts[stage :: pipeline.pp] for stage in range(pipeline.pp)] == planned_layers(plan)
    assert order_from_text(file_text(export, "schedule.csv")) == pipeline_order(pipeline)
    assert devices_by_rank(export, tmp_path, *TORCHRUN) == planned_devices(plan)
    parallelism, training = values["PARALLELISM"], values["TRAINING"]
    degrees = [parallelism[f"{name}_parallel{kind}_degree"] for name, kind in (("tensor", ""), ("pipeline", ""))]
    assert degrees == [pipeline.stages[0].tp, pipeline.pp]
    assert parallelism["data_parallel_shard_degree"] == pipeline.dp
    micro_batches = training["local_batch_size"] // parallelism["pipeline_parallel_microbatch_size"]
    assert micro_batches == pipeline.num_micro_batches
    assert training["local_batch_size"] * pipeline.dp == training["global_batch_size"]
    [started] = started_by(export, tmp_path, "0", ["-m", "torchtitan.train"])
    assert started.env["PYTHONPATH"] == str(tmp_path / "out")


@pytest.mark.parametrize("case", [("quickstart",), ("setting2",), ("setting5",), ANY_ORDER], ids=str)
def test_hexiscale(searched: Callable[..., Plan], tmp_path: Path, case: Any) -> None:
    plan, export = plan_and_export(searched, "hexiscale", *case)
    pipeline = plan.pipeline
    data = json.loads(file_text(export, "hetero_configs.json"))
    assert data["layer_partitions"] == [[layers for [layers] in planned_layers(plan)]] * pipeline.dp
    assert data["hetero_configs"] == [[stage.tp for stage in pipeline.stages]] * pipeline.dp
    by_rank: dict[int, tuple[int, int]] = {}
    for start in export.starts:
        assert start.place is not None
        for process in started_by(export, tmp_path, str(start.place.node)):
            assert process.visible is not None
            [device] = process.visible
            by_rank[int(process.env["RANK"])] = (start.place.node, device)
            assert process.env["WORLD_SIZE"] == str(pipeline.num_devices)
            assert process.value("--all_hetero_configs_path") == str(tmp_path / "out" / "hetero_configs.json")
    # Its ranks: the first replica's stages, then the next replica's. The plan's: each stage's replicas.
    rank = 0
    for replica in range(pipeline.dp):
        for index, stage in enumerate(pipeline.stages):
            devices = [(part.node, device) for part in stage.devices for device in part.devices]
            for device in devices[replica * stage.tp : (replica + 1) * stage.tp]:
                assert by_rank.pop(rank) == device, (replica, index)
                rank += 1
    assert not by_rank
    assert len(processes_of(Request(plan, "plan.json", ()))) == rank
    assert [[len(stage) for stage in replica] for replica in data["devices_id"]] == data["hetero_configs"]


@pytest.mark.parametrize("case", [*((name,) for name in ALL)], ids=str)
def test_ms_swift(searched: Callable[..., Plan], tmp_path: Path, case: Any) -> None:
    plan, export = plan_and_export(searched, "ms-swift", *case)
    devices: list[tuple[int, int]] = []
    for place in export.places:
        [started] = started_by(export, tmp_path, str(place.number), ["sft", "--model", "m"])
        assert started.argv[:3] == ["sft", "--model", "m"]
        assert (started.env["NODE_RANK"], started.env["NNODES"]) == (str(place.number), str(len(export.places)))
        assert started.env["MASTER_ADDR"] == "10.0.0.1"
        count = int(started.env["NPROC_PER_NODE"])
        devices += [(place.node, device) for device in started.visible or range(count)]
    assert devices == planned_devices(plan)
    layout = started.value("--pipeline_model_parallel_layout")
    assert layers_of_layout(layout, plan.pipeline.pp) == planned_layers(plan)
    assert started.value("--recompute_granularity") == "none"


@pytest.mark.parametrize("name", ["quickstart", "setting1", "setting2", "setting3", "setting5"])
def test_colossalai(searched: Callable[..., Plan], tmp_path: Path, name: str) -> None:
    plan, export = plan_and_export(searched, "colossalai", name)
    values = module_values(file_text(export, "poseidon_plan.py"))
    plugin = values["PLUGIN"]
    assert [[count] for count in plugin["num_layers_per_stage"]] == planned_layers(plan)
    assert plugin["dp_outside"] is False
    assert (plugin["pp_size"], plugin["num_microbatches"]) == (plan.pipeline.pp, plan.pipeline.num_micro_batches)
    assert values["BATCH_SIZE"] * plan.pipeline.dp == plan.experiment.training.global_batch_size
    assert devices_by_rank(export, tmp_path, *TORCHRUN) == planned_devices(plan)


def test_colossalai_recomputes_all_layers_of_every_chunk(searched: Callable[..., Plan]) -> None:
    plan = searched("setting2", {"recompute": "full", "schedules": ["interleaved_1f1b"]})
    values = module_values(file_text(export_plan(plan, "plan.json", "colossalai"), "poseidon_plan.py"))
    layers = planned_layers(plan)
    expected = [stage[chunk] for chunk in range(plan.pipeline.num_chunks) for stage in layers]
    assert values["CHECKPOINTED_LAYERS"] == values["PLUGIN"]["num_layers_per_stage"] == expected
    assert values["PLUGIN"]["pp_style"] == "interleaved"


def test_the_same_node_twice_gets_its_devices_in_two_places(searched: Callable[..., Plan], tmp_path: Path) -> None:
    _, export = plan_and_export(searched, "megatron", *ANY_ORDER)
    nodes = [place.node for place in export.places]
    twice = [node for node in nodes if nodes.count(node) > 1]
    assert twice
    assert any("not consecutive" in note for note in export.notes)
    for place in export.places:
        [started] = started_by(export, tmp_path, str(place.number))
        assert (started.visible is not None) == (place.node in twice)
