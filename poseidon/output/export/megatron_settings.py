"""The settings that Megatron-LM and what is built on it share: degrees, batch, precision, recomputation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from poseidon.errors import Mistake
from poseidon.output.export.refusals import chunks_of_one_stage, other_schedule, unequal_tp
from poseidon.output.export.request import Request
from poseidon.plan.plan import Pipeline
from poseidon.schedule.interleaved_one_f_one_b import microbatch_group_size

Value = int | str | bool
Settings = dict[str, Value]
"""By the flag's name with underscores; True is a flag without a value."""

YOURS = (
    "model, data, tokenizer, optimizer and checkpoint flags are yours; the plan assumes "
    "the model's --num-layers and --seq-length as written"
)


def shared_settings(request: Request) -> Settings:
    """Everything but the split of the layers.

    Names as in Megatron-LM's arguments (core 0.12 to 0.16). The DP degree has no flag: it is what the number of
    processes leaves.
    """
    pipeline, training = request.pipeline, request.experiment.training
    tp = max(stage.tp for stage in pipeline.stages)
    settings: Settings = {
        "tensor_model_parallel_size": tp,
        "pipeline_model_parallel_size": pipeline.pp,
        "micro_batch_size": pipeline.micro_batch_size,
        "global_batch_size": training.global_batch_size,
        "num_layers": request.experiment.model.num_layers,
        "seq_length": training.seq_length,
        training.precision: True,
    }
    if training.sequence_parallel and tp > 1:
        settings["sequence_parallel"] = True
    if training.distributed_optimizer:
        settings["use_distributed_optimizer"] = True
    if request.experiment.model.moe is not None:
        settings["expert_model_parallel_size"] = 1
    return settings | recompute_settings(pipeline)


def recompute_settings(pipeline: Pipeline) -> Settings:
    """Full recomputation layer by layer, selective with Megatron's own modules, or none (no flag)."""
    if pipeline.recompute == "full":
        return {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
    return {"recompute_granularity": "selective"} if pipeline.recompute == "selective" else {}


def group_settings(pipeline: Pipeline) -> Settings:
    """The size of micro-batch groups of the interleaved schedule, where it is not Megatron's default (PP)."""
    if pipeline.num_chunks == 1:
        return {}
    group = microbatch_group_size(pipeline.pp, pipeline.num_micro_batches)
    return {} if group == pipeline.pp else {"microbatch_group_size_per_virtual_pipeline_stage": group}


def shared_refusals(request: Request, framework: str) -> Iterator[Mistake]:
    """What no framework of the family can run."""
    yield from unequal_tp(request, framework)
    yield from other_schedule(request, framework, ("1f1b", "interleaved_1f1b"))
    yield from chunks_of_one_stage(request, framework)
    yield from expert_refusals(request, framework)


def expert_refusals(request: Request, framework: str) -> Iterator[Mistake]:
    """Experts under TP train with sequence parallelism only (megatron.core.transformer.moe.moe_layer)."""
    has_tp = any(stage.tp > 1 for stage in request.pipeline.stages)
    if request.experiment.model.moe is not None and has_tp and not request.experiment.training.sequence_parallel:
        yield request.mistake(
            "inputs.training.sequence_parallel",
            f"{framework} trains experts under TP with sequence parallelism only; "
            "set training.sequence_parallel: true, or search with --fixed-tp 1",
        )


def as_flags(settings: Mapping[str, Value]) -> tuple[tuple[str, ...], ...]:
    """``--name value`` for Megatron's command line."""
    return tuple(
        (f"--{name.replace('_', '-')}",) if value is True else (f"--{name.replace('_', '-')}", str(value))
        for name, value in settings.items()
    )


def family_notes(request: Request) -> Iterator[str]:
    """What the flags leave open."""
    yield YOURS
    if request.experiment.model.moe is not None:
        yield "experts are split by TP and not by EP (expert parallelism 1), as the plan's times assume"
    if request.pipeline.recompute == "full":
        yield "full recomputation is uniform, one layer at a time, in all stages"
