"""ColossalAI: the arguments of its HybridParallelPlugin as a Python module, and a script that starts torchrun.

Read at 0094bc0 and 4f9953be (colossalai/booster/plugin/hybrid_parallel_plugin.py). With ``dp_outside=False`` ranks are
in the plan's order: TP, DP, PP.
"""

from __future__ import annotations

from collections.abc import Iterator

from poseidon.errors import Mistake
from poseidon.output.export.about import about
from poseidon.output.export.exported import Export, ExportedFile, Start
from poseidon.output.export.launch_script import NAME, Launcher, launch_script, start_command
from poseidon.output.export.places import placement_notes, places_of
from poseidon.output.export.refusals import (
    chunks_of_one_stage,
    experts,
    other_schedule,
    selective_recompute,
    unequal_tp,
)
from poseidon.output.export.request import Request

TITLE = "ColossalAI"
MODULE_NAME = "poseidon_plan"

LAUNCHER = Launcher(
    """exec torchrun --nnodes {num_places} --node-rank "$place" --nproc-per-node "$num_processes" \\
  --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" "${flags[@]}" "$@\"""",
    "train.py YOUR_FLAGS",
)
OWN_DIRECTORY = (
    'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"',
    'export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"',
)

_FUNCTION = '''

def plugin(**changes: Any) -> Any:
    """The plugin of this plan; further arguments are yours."""
    from colossalai.booster.plugin import HybridParallelPlugin
    from colossalai.shardformer import PipelineGradientCheckpointConfig

    arguments = dict(PLUGIN)
    if CHECKPOINTED_LAYERS:
        arguments["gradient_checkpoint_config"] = PipelineGradientCheckpointConfig(
            num_ckpt_layers_per_stage=CHECKPOINTED_LAYERS
        )
    return HybridParallelPlugin(**{**arguments, **changes})
'''


def refusals(request: Request) -> Iterator[Mistake]:
    """What the plugin can't run."""
    yield from unequal_tp(request, TITLE)
    yield from other_schedule(request, TITLE, ("1f1b", "interleaved_1f1b"))
    yield from chunks_of_one_stage(request, TITLE)
    yield from selective_recompute(request, TITLE)
    yield from experts(request, TITLE, "trains experts with expert parallelism, which plans do not have")
    pipeline = request.pipeline
    if pipeline.num_chunks > 1 and pipeline.num_micro_batches % pipeline.pp:
        yield request.mistake(
            "num_micro_batches",
            f"ColossalAI interleaves multiples of {pipeline.pp} micro-batches, and the plan has "
            f"{pipeline.num_micro_batches}; search with --schedule 1f1b",
        )
    if pipeline.recompute == "full" and pipeline.pp == 1:
        yield request.mistake(
            "recompute", "ColossalAI's list of recomputed layers needs a pipeline; search with --recompute none"
        )


def plugin_settings(request: Request) -> dict[str, object]:
    """Arguments of HybridParallelPlugin; layers are chunk 0 of all stages, then chunk 1."""
    pipeline, training = request.pipeline, request.experiment.training
    tp = pipeline.stages[0].tp
    settings: dict[str, object] = {
        "tp_size": tp,
        "pp_size": pipeline.pp,
        "dp_outside": False,
        "precision": training.precision,
        "zero_stage": 1 if training.distributed_optimizer else 0,
        "enable_sequence_parallelism": training.sequence_parallel and tp > 1,
    }
    if settings["enable_sequence_parallelism"]:
        settings["sequence_parallelism_mode"] = "split_gather"
    if pipeline.pp > 1:
        settings |= {
            "num_microbatches": pipeline.num_micro_batches,
            "pp_style": "1f1b" if pipeline.num_chunks == 1 else "interleaved",
            "num_model_chunks": pipeline.num_chunks,
            "num_layers_per_stage": _layers(request),
        }
    return settings


def _layers(request: Request) -> list[int]:
    pipeline = request.pipeline
    return [stage.layers[chunk] for chunk in range(pipeline.num_chunks) for stage in pipeline.stages]


def export(request: Request) -> Export:
    """A Python module with the plugin, and the script."""
    places, head, settings = places_of(request), about(request, TITLE), plugin_settings(request)
    pipeline = request.pipeline
    replica_batch = pipeline.micro_batch_size * pipeline.num_micro_batches
    checkpointed = _layers(request) if pipeline.recompute == "full" else []
    lines = [
        *(f"# {line}" for line in head),
        "",
        "from __future__ import annotations",
        "",
        "from typing import Any",
        "",
    ]
    lines += ["PLUGIN: dict[str, Any] = {", *(f'    "{key}": {value!r},' for key, value in settings.items()), "}"]
    lines += [f"CHECKPOINTED_LAYERS: list[int] = {checkpointed}", "# Sequences of an iteration in each DP replica."]
    lines += [f"BATCH_SIZE = {replica_batch}"]
    files = (
        ExportedFile(NAME, launch_script(head, places, LAUNCHER, (), before=OWN_DIRECTORY)),
        ExportedFile(f"{MODULE_NAME}.py", "\n".join(lines) + "\n" + _FUNCTION),
    )
    starts = tuple(Start(place, start_command(place, LAUNCHER)) for place in places)
    return Export(files, places, starts, settings, _notes(request))


def _notes(request: Request) -> tuple[str, ...]:
    pipeline = request.pipeline
    batch = pipeline.micro_batch_size * (pipeline.num_micro_batches if pipeline.pp > 1 else 1)
    steps = "" if pipeline.pp > 1 else f", and accumulate gradients over {pipeline.num_micro_batches} steps"
    return (
        *placement_notes(request, places_of(request)),
        f"your script calls {MODULE_NAME}.plugin() and gives each replica batches of {batch} sequences{steps}",
        f"sequence length ({request.experiment.training.seq_length}), model, data and optimizer are yours",
    )
