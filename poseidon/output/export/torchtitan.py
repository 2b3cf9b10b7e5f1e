"""torchtitan (and any PyTorch pipeline): modules of each stage, the operations' order as CSV, a script for torchrun."""

from __future__ import annotations

import json
from collections.abc import Iterator

from poseidon.errors import Mistake
from poseidon.output.export.about import about
from poseidon.output.export.exported import Export, ExportedFile, Start
from poseidon.output.export.launch_script import NAME, Launcher, launch_script, start_command
from poseidon.output.export.places import Place, placement_notes, places_of
from poseidon.output.export.refusals import unequal_tp
from poseidon.output.export.request import Request
from poseidon.output.export.torchtitan_module import MODULE_NAME, module_text
from poseidon.plan.plan import Pipeline
from poseidon.plan.timing import pipeline_order
from poseidon.schedule.text import order_to_text

TITLE = "torchtitan"
OLDEST = (0, 3)
"""First release whose configurations are Python functions (``--module``, ``--config``)."""
CSV_NAME = "schedule.csv"
MOST_CELLS = 4_000_000
"""A schedule of more operations (a file of about 30 MB) is no plan that anybody trains."""

LAUNCHER = Launcher(
    """exec torchrun --nnodes {num_places} --node-rank "$place" --nproc-per-node "$num_processes" \\
  --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" "${flags[@]}" "$@\"""",
    f"-m torchtitan.train --module {MODULE_NAME} --config planned",
)
OWN_DIRECTORY = (
    'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"',
    'export PYTHONPATH="$here${PYTHONPATH:+:$PYTHONPATH}"',
)


def refusals(request: Request) -> Iterator[Mistake]:
    """What torchtitan can't run; the order of operations is never a reason."""
    pipeline, experiment = request.pipeline, request.experiment
    yield from unequal_tp(request, TITLE)
    if request.version < OLDEST:
        yield request.mistake("", "torchtitan before 0.3 is not supported; use --framework-version 0.3 or later")
    if experiment.training.precision != "bf16":
        yield request.mistake(
            "inputs.training.precision", "torchtitan trains in bf16, not in fp16; set precision: bf16"
        )
    if experiment.model.tied_embeddings and pipeline.pp > 1:
        yield request.mistake(
            "inputs.model.tied_embeddings",
            "torchtitan does not tie embeddings over pipeline stages; search with --fixed-pp 1, or export to megatron",
        )
    if pipeline.num_chunks > 1 and pipeline.pp == 1:
        yield request.mistake("num_chunks", "torchtitan has no chunks without a pipeline; search with --schedule 1f1b")
    if 2 * pipeline.pp * pipeline.num_chunks * pipeline.num_micro_batches > MOST_CELLS:
        yield request.mistake("num_micro_batches", f"a schedule of more than {MOST_CELLS:,} operations is not written")


def module_fqns(pipeline: Pipeline) -> list[list[str]]:
    """Modules of each virtual stage, in model order: chunk 0 of all stages, then chunk 1.

    Names as in torchtitan's decoders: tok_embeddings, layers.N, norm, lm_head.
    """
    ranges = [stage.layer_ranges[chunk] for chunk in range(pipeline.num_chunks) for stage in pipeline.stages]
    parts = [[f"layers.{layer}" for layer in range(first, end)] for first, end in ranges]
    parts[0].insert(0, "tok_embeddings")
    parts[-1] += ["norm", "lm_head"]
    return parts


def parallelism_settings(request: Request) -> dict[str, object]:
    """Fields of torchtitan's ParallelismConfig; modules and CSV file are added by the module."""
    pipeline = request.pipeline
    settings: dict[str, object] = {
        "data_parallel_replicate_degree": 1,
        "data_parallel_shard_degree": pipeline.dp,
        "tensor_parallel_degree": pipeline.stages[0].tp,
        "enable_sequence_parallel": request.experiment.training.sequence_parallel,
        "pipeline_parallel_degree": pipeline.pp,
        "context_parallel_degree": 1,
        "expert_parallel_degree": 1,
    }
    if pipeline.pp > 1:
        # The CSV file decides on the order; this name only on which stages a rank holds (s, s + PP, ...).
        settings["pipeline_parallel_schedule"] = "1F1B" if pipeline.num_chunks == 1 else "Interleaved1F1B"
        settings["pipeline_parallel_microbatch_size"] = pipeline.micro_batch_size
    return settings


def training_settings(request: Request) -> dict[str, object]:
    """Fields of torchtitan's TrainingConfig. Without a pipeline micro-batches are steps of gradient accumulation."""
    pipeline, training = request.pipeline, request.experiment.training
    micro_batches = pipeline.num_micro_batches if pipeline.pp > 1 else 1
    settings: dict[str, object] = {
        "local_batch_size": pipeline.micro_batch_size * micro_batches,
        "global_batch_size": training.global_batch_size,
        "seq_len": training.seq_length,
    }
    if pipeline.pp > 1:
        # torchtitan 0.3 refuses pipelines otherwise (its Trainer.Config).
        settings["disable_cuda_graphs"] = True
    return settings


def export(request: Request) -> Export:
    """A Python module with the plan, the schedule, and the script."""
    places, pipeline = places_of(request), request.pipeline
    parallelism, training = parallelism_settings(request), training_settings(request)
    fqns = module_fqns(pipeline)
    head = about(request, TITLE)
    text = module_text(
        head, fqns, parallelism, training, request.experiment.model.num_layers, pipeline.recompute, CSV_NAME
    )
    files = (
        ExportedFile(NAME, launch_script(head, places, LAUNCHER, (), before=OWN_DIRECTORY)),
        ExportedFile(f"{MODULE_NAME}.py", text),
        ExportedFile(CSV_NAME, order_to_text(pipeline_order(pipeline), separator=",")),
    )
    starts = tuple(Start(place, start_command(place, LAUNCHER)) for place in places)
    settings = {"parallelism": parallelism | {"module_fqns_per_model_part": fqns}, "training": training}
    return Export(files, places, starts, json.loads(json.dumps(settings)), _notes(request, places))


def _notes(request: Request, places: tuple[Place, ...]) -> tuple[str, ...]:
    return (
        *placement_notes(request, places),
        "BASE_CONFIG names the model's own configuration, e.g. torchtitan.models.llama3.config_registry:llama3_8b; "
        "it must have as many layers",
        "data parallelism is FSDP: parameters and gradients are sharded as well, which takes less memory and more "
        "messages than the plan counts",
    )
