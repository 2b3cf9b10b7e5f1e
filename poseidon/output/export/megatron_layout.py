"""How layers are split over stages, in Megatron-LM's two ways of saying it."""

from __future__ import annotations

from collections.abc import Iterator

from poseidon.errors import Mistake
from poseidon.output.export.megatron_settings import Settings
from poseidon.output.export.request import Request
from poseidon.plan.plan import Pipeline

LAYOUT = (0, 13)
"""First release of megatron-core with ``--pipeline-model-parallel-layout``."""
FIRST_AND_LAST = (0, 12)
"""First release that is known to have flags for the first and last stage's layers and for the number of chunks."""


def layout_string(pipeline: Pipeline) -> str:
    """``Et*3|t*4|t*4L``: chunks in model order (chunk 0 of all stages, then chunk 1), without spaces.

    E is the embedding, t a layer, L the loss (megatron.core.transformer.pipeline_parallel_layer_layout).
    """
    chunks = [_repeated(stage.layers[chunk]) for chunk in range(pipeline.num_chunks) for stage in pipeline.stages]
    chunks[0] = f"E{chunks[0]}"
    chunks[-1] = f"{chunks[-1]}L"
    return "|".join(chunks)


def _repeated(count: int) -> str:
    return "t" if count == 1 else f"t*{count}"


def layout_settings(pipeline: Pipeline) -> Settings:
    """The layout; its number of chunks is the virtual pipeline's size. Nothing for one stage."""
    return {} if pipeline.pp == 1 else {"pipeline_model_parallel_layout": layout_string(pipeline)}


def first_last_settings(pipeline: Pipeline) -> Settings:
    """For cores without layouts: the first and the last stage's layers, and the number of chunks."""
    if pipeline.pp == 1:
        return {}
    settings: Settings = {}
    counts = [sum(stage.layers) for stage in pipeline.stages]
    if len(set(counts)) > 1:
        settings["decoder_first_pipeline_num_layers"] = counts[0]
        settings["decoder_last_pipeline_num_layers"] = counts[-1]
    if pipeline.num_chunks > 1:
        settings["num_virtual_stages_per_pipeline_rank"] = pipeline.num_chunks
    return settings


def first_last_refusals(request: Request, framework: str, newer: str) -> Iterator[Mistake]:
    """Splits that first and last flags don't describe; `newer` says which version describes them."""
    pipeline = request.pipeline
    counts = [sum(stage.layers) for stage in pipeline.stages]
    instead = f"use {newer}, or search with --fixed-pp for a plan of fewer stages"
    if len(set(counts[1:-1])) > 1:
        yield request.mistake(
            "stages",
            f"{framework} splits all stages but the first and the last evenly, and the plan gives them "
            f"{_listed(counts[1:-1])} layers; {instead}",
        )
    if any(len(set(stage.layers)) > 1 for stage in pipeline.stages):
        yield request.mistake(
            "stages", f"{framework} gives all chunks of a stage as many layers, and the plan does not; {instead}"
        )


def even_refusals(request: Request, framework: str, newer: str) -> Iterator[Mistake]:
    """Splits that are not even."""
    counts = [count for stage in request.pipeline.stages for count in stage.layers]
    if len(set(counts)) > 1:
        yield request.mistake(
            "stages",
            f"{framework} splits layers evenly, and the plan gives {_listed(counts)}; use {newer}",
        )


def _listed(counts: list[int]) -> str:
    return ", ".join(map(str, counts[:12])) + (", ..." if len(counts) > 12 else "")
