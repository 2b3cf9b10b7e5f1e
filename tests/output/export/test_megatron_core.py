"""Layouts and settings, given to megatron-core itself (``pip install torch megatron-core``)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from poseidon.output.export import export_plan
from poseidon.plan.plan import Plan

pytest.importorskip("torch")
with warnings.catch_warnings():
    # megatron-core says at length what else could be installed.
    warnings.simplefilter("ignore")
    module = "megatron.core.transformer.pipeline_parallel_layer_layout"
    layouts: Any = pytest.importorskip(module, exc_type=ImportError)
    from megatron.core import parallel_state
    from megatron.core.transformer.enums import LayerType
    from megatron.core.transformer.transformer_config import TransformerConfig

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

CASES: tuple[Any, ...] = (
    *((f"setting{number}",) for number in range(1, 6)),
    ("quickstart",),
    ("quickstart", {"schedules": ["interleaved_1f1b"]}),
    ("setting2", {"schedules": ["interleaved_1f1b"], "num_chunks": [4]}),
    ("quickstart", {"recompute": "full"}),
    ("quickstart", {"recompute": "selective"}),
)


@pytest.fixture
def set_chunks() -> Iterator[Callable[[int], None]]:
    """Tells megatron-core how many chunks a rank has, as its initialisation does."""

    def tell(count: int) -> None:
        parallel_state.set_virtual_pipeline_model_parallel_world_size(count if count > 1 else None)

    yield tell
    tell(1)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_megatron_core_builds_the_layers_of_the_plan(
    searched: Callable[..., Plan], set_chunks: Callable[[int], None], case: Any
) -> None:
    plan = searched(*case)
    settings = export_plan(plan, "plan.json", "megatron").settings
    layout = layouts.PipelineParallelLayerLayout.from_str(
        settings["pipeline_model_parallel_layout"], settings["pipeline_model_parallel_size"]
    )
    layout.validate_layer_layout(num_layers=settings["num_layers"], mtp_num_layers=0)
    assert layout.virtual_pipeline_model_parallel_size == plan.pipeline.num_chunks
    set_chunks(plan.pipeline.num_chunks)
    for rank, stage in enumerate(plan.pipeline.stages):
        for chunk, (first, end) in enumerate(stage.layer_ranges):
            where = {"vp_stage": chunk, "pp_rank": rank}
            assert layout.get_num_layers_to_build(layer_type=LayerType.decoder, **where) == end - first
            assert layout.get_layer_offset(layer_type=LayerType.decoder, **where) == first


@pytest.mark.parametrize("case", CASES, ids=str)
def test_megatron_core_takes_the_settings(searched: Callable[..., Plan], case: Any) -> None:
    plan = searched(*case)
    settings = dict(export_plan(plan, "plan.json", "megatron").settings)
    model = plan.experiment.model
    experts = {} if model.moe is None else {"num_moe_experts": model.moe.num_experts, "add_bias_linear": False}
    names = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "num_layers", "bf16", "sequence_parallel")
    more = ("recompute_granularity", "recompute_method", "recompute_num_layers", "expert_model_parallel_size")
    config: Any = TransformerConfig(
        hidden_size=model.hidden_size,
        ffn_hidden_size=model.ffn_hidden_size,
        num_attention_heads=model.num_attention_heads,
        num_query_groups=model.num_kv_heads,
        pipeline_dtype=__import__("torch").bfloat16,
        pipeline_model_parallel_layout=settings["pipeline_model_parallel_layout"],
        microbatch_group_size_per_vp_stage=settings.get("microbatch_group_size_per_virtual_pipeline_stage"),
        **{name: settings[name] for name in (*names, *more) if name in settings},
        **experts,
    )
    held = [
        [chunk.count(LayerType.decoder) for chunk in stage] for stage in config.pipeline_model_parallel_layout.layout
    ]
    assert held == [list(stage.layers) for stage in plan.pipeline.stages]


@pytest.mark.parametrize("chunks", [2, 4])
def test_megatron_core_runs_interleaved_chunks_in_our_order(searched: Callable[..., Plan], chunks: int) -> None:
    from megatron.core.pipeline_parallel.schedules import get_schedule_table

    from poseidon.plan.timing import pipeline_order

    plan = searched("quickstart", {"schedules": ["interleaved_1f1b"], "num_chunks": [chunks]})
    settings, pipeline = export_plan(plan, "plan.json", "megatron").settings, plan.pipeline
    group = settings.get("microbatch_group_size_per_virtual_pipeline_stage", pipeline.pp)
    table = get_schedule_table(pipeline.num_micro_batches, pipeline.num_chunks, group)
    for actions in pipeline_order(pipeline).stages:
        forwards = [(action.microbatch, action.chunk) for action in actions if action.kind == "F"]
        assert forwards == [tuple(row) for row in table]


def test_megatron_core_refuses_a_layout_of_other_layers(searched: Callable[..., Plan]) -> None:
    settings = export_plan(searched("quickstart"), "plan.json", "megatron").settings
    layout = layouts.PipelineParallelLayerLayout.from_str(settings["pipeline_model_parallel_layout"], 7)
    with pytest.raises(AssertionError, match="must match num_layers"):
        layout.validate_layer_layout(num_layers=41, mtp_num_layers=0)


def with_chunks(plan: Plan, layers: tuple[int, ...]) -> Plan:
    """The plan with two chunks of so many layers each on its stages."""
    firsts = [sum((layers * 2)[:place]) for place in range(2 * len(layers))]
    stages = tuple(
        replace(stage, layer_ranges=tuple((firsts[n], firsts[n] + count) for n in (index, index + len(layers))))
        for index, (stage, count) in enumerate(zip(plan.pipeline.stages, layers, strict=True))
    )
    return replace(plan, pipeline=replace(plan.pipeline, stages=stages))


@pytest.mark.parametrize(
    ("case", "chunks"),
    [
        (("setting1",), None),
        (("setting2",), None),
        (("setting2", {"schedules": ["interleaved_1f1b"]}), (5, 5, 5, 5)),
        (("setting2", {"schedules": ["interleaved_1f1b"]}), (4, 6, 6, 4)),
    ],
    ids=str,
)
def test_megatron_core_builds_the_layers_of_first_and_last_flags(
    searched: Callable[..., Plan], set_chunks: Callable[[int], None], case: Any, chunks: tuple[int, ...] | None
) -> None:
    """Flags for cores without layouts, worked out by the core's own function."""
    from megatron.core.transformer.transformer_block import get_num_layers_to_build

    plan = searched(*case) if chunks is None else with_chunks(searched(*case), chunks)
    settings = export_plan(plan, "plan.json", "megatron", "0.12").settings
    config: Any = TransformerConfig(
        num_layers=settings["num_layers"],
        hidden_size=4096,
        num_attention_heads=32,
        pipeline_model_parallel_size=settings["pipeline_model_parallel_size"],
        virtual_pipeline_model_parallel_size=settings.get("num_virtual_stages_per_pipeline_rank"),
        num_layers_in_first_pipeline_stage=settings.get("decoder_first_pipeline_num_layers"),
        num_layers_in_last_pipeline_stage=settings.get("decoder_last_pipeline_num_layers"),
        pipeline_dtype=__import__("torch").bfloat16,
    )
    num_chunks = plan.pipeline.num_chunks
    set_chunks(num_chunks)
    for rank, stage in enumerate(plan.pipeline.stages):
        held = [None] if num_chunks == 1 else range(num_chunks)
        built = [get_num_layers_to_build(config, vp_stage=chunk, pp_rank=rank) for chunk in held]
        assert built == list(stage.layers)
