"""MindSpeed-LLM: Megatron-LM's flags on Ascend, with its own list of layers per stage."""

from __future__ import annotations

from collections.abc import Iterator

from poseidon.errors import Mistake
from poseidon.output.export.about import about
from poseidon.output.export.exported import Export, ExportedFile, Start
from poseidon.output.export.launch_script import NAME, Launcher, launch_script, start_command
from poseidon.output.export.megatron_layout import even_refusals, layout_settings
from poseidon.output.export.megatron_settings import (
    Settings,
    as_flags,
    family_notes,
    group_settings,
    shared_refusals,
    shared_settings,
)
from poseidon.output.export.places import Place, placement_notes, places_of
from poseidon.output.export.request import Request, label

TITLE = "MindSpeed-LLM"
LAYOUT = (26, 1)
"""First release of MindSpeed-LLM (and of MindSpeed) with ``--pipeline-model-parallel-layout``."""

LAUNCHER = Launcher(
    """exec python -m torch.distributed.launch \\
  --nnodes {num_places} --node_rank "$place" --nproc_per_node "$num_processes" \\
  --master_addr "$MASTER_ADDR" --master_port "$MASTER_PORT" "$@" "${flags[@]}\"""",
    "pretrain_gpt.py YOUR_FLAGS",
)


def refusals(request: Request) -> Iterator[Mistake]:
    """What MindSpeed-LLM of this version can't run."""
    yield from shared_refusals(request, TITLE)
    if request.pipeline.num_chunks > 1 and request.version < LAYOUT:
        yield from even_refusals(request, "interleaved MindSpeed-LLM before 26.1", "26.1 or later, or --schedule 1f1b")
    stages = request.pipeline.stages
    others = sorted({label(vendor) for s in stages if (vendor := request.vendor(s.nodes[0])) not in (None, "huawei")})
    if others:
        yield request.mistake(
            "stages",
            f"MindSpeed-LLM runs on Ascend, and the plan uses accelerators of {', '.join(others)}; use megatron",
        )


def settings_of(request: Request) -> Settings:
    """All flags by name.

    ``--num-layer-list`` is on every branch (1.0.0 to 26.1.0), so it is used wherever it suffices: without chunks. It is
    refused for one stage.
    """
    pipeline = request.pipeline
    split: Settings = {}
    if pipeline.num_chunks > 1 and request.version >= LAYOUT:
        split = layout_settings(pipeline)
    elif pipeline.num_chunks > 1:
        split = {"num_layers_per_virtual_pipeline_stage": pipeline.stages[0].layers[0]}
    elif pipeline.pp > 1:
        split = {"num_layer_list": ",".join(str(stage.layers[0]) for stage in pipeline.stages)}
    return {"use_mcore_models": True} | shared_settings(request) | split | group_settings(pipeline)


def export(request: Request) -> Export:
    """One script with the flags in it."""
    places, settings = places_of(request), settings_of(request)
    script = launch_script(about(request, TITLE), places, LAUNCHER, as_flags(settings))
    starts = tuple(Start(place, start_command(place, LAUNCHER)) for place in places)
    return Export((ExportedFile(NAME, script),), places, starts, settings, _notes(request, places))


def _notes(request: Request, places: tuple[Place, ...]) -> tuple[str, ...]:
    return (
        *placement_notes(request, places),
        "do not add --noop-layers: MindSpeed-LLM drops --num-layer-list without a word where it is given",
        "convert checkpoints with the same split (convert_ckpt_v2.py takes --num-layer-list too)",
        *family_notes(request),
    )
