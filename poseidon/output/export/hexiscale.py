"""HexiScale (github.com/Relaxed-System-Lab/FlashFlex): its JSON of pipelines, and a process for each rank.

Read at 5ee1726. A pipeline is a DP replica, and its ranks are consecutive: the data loader finds a rank's pipeline by
the first rank of each. So ranks are in the order TP, PP, DP here, and each process gets its own from the script.
"""

from __future__ import annotations

from collections.abc import Iterator

from poseidon.errors import Mistake
from poseidon.inputs.model import Model
from poseidon.output.export.about import about
from poseidon.output.export.exported import Export, ExportedFile, Start
from poseidon.output.export.hexiscale_script import LAUNCH_USAGE, process_script, processes_of
from poseidon.output.export.launch_script import NAME
from poseidon.output.export.megatron_settings import as_flags
from poseidon.output.export.places import placement_notes, places_of
from poseidon.output.export.refusals import experts, other_schedule, selective_recompute
from poseidon.output.export.request import Request
from poseidon.output.json_text import json_document

TITLE = "HexiScale"
SEQ_LENGTH = 4096
"""The only one (hexiscale/process_args.py)."""
PIPELINE_TYPES = {"1f1b": "1F1B", "gpipe": "Gpipe"}
ZERO2 = "zero2 shards gradients together with the optimizer state, where the plan shards the optimizer state alone"
MODEL_SIZES = {
    (4096, 11008, 32, 32): "llama-7b",
    (5120, 13824, 40, 40): "llama-13b",
    (6656, 17920, 52, 52): "llama-30b",
    (8192, 28672, 64, 8): "llama-70b",
}
"""(hidden size, MLP size, heads, kv-heads) of ``--model_size`` (llama/arguments.py); any number of layers."""


def model_size(model: Model) -> str | None:
    """HexiScale's name of the model, if it has one."""
    shape = (model.hidden_size, model.ffn_hidden_size, model.num_attention_heads, model.num_kv_heads)
    return MODEL_SIZES.get(shape) if model.vocab_size == 32_000 else None


def refusals(request: Request) -> Iterator[Mistake]:
    """What HexiScale can't run."""
    yield from other_schedule(request, TITLE, tuple(PIPELINE_TYPES))
    yield from selective_recompute(request, TITLE)
    yield from experts(request, TITLE, "trains Llama models without experts")
    model, training = request.experiment.model, request.experiment.training
    if model.moe is None and model_size(model) is None:
        yield request.mistake(
            "inputs.model",
            f"HexiScale trains {', '.join(MODEL_SIZES.values())} with a vocabulary of 32,000, and no other model; "
            "export to megatron or flagscale",
        )
    if training.seq_length != SEQ_LENGTH:
        yield request.mistake(
            "inputs.training.seq_length", f"HexiScale trains sequences of {SEQ_LENGTH}, not of {training.seq_length}"
        )


def configurations(request: Request) -> dict[str, object]:
    """The JSON of ``--all_hetero_configs_path``: every replica with its TP degrees, layers and nodes."""
    pipeline = request.pipeline
    nodes = [[node for part in stage.devices for node in [part.node] * len(part.devices)] for stage in pipeline.stages]
    by_replica = [
        [
            of_stage[replica * stage.tp : (replica + 1) * stage.tp]
            for of_stage, stage in zip(nodes, pipeline.stages, strict=True)
        ]
        for replica in range(pipeline.dp)
    ]
    return {
        "hetero_configs": [[stage.tp for stage in pipeline.stages]] * pipeline.dp,
        "layer_partitions": [[stage.layers[0] for stage in pipeline.stages]] * pipeline.dp,
        "devices_id": by_replica,
    }


def flags_of(request: Request) -> tuple[tuple[str, ...], ...]:
    """The command line of llama_train.py."""
    pipeline, training = request.pipeline, request.experiment.training
    sequences = str(pipeline.micro_batch_size * pipeline.num_micro_batches)
    flags: list[tuple[str, ...]] = [
        ("--model_size", model_size(request.experiment.model) or ""),
        ("--total-layer-num", str(request.experiment.model.num_layers)),
        ("--mixed_precision", training.precision),
        *as_flags({training.precision: True}),
        ("--global_bsz_size", *[sequences] * pipeline.dp),
        ("--chunks", *[str(pipeline.num_micro_batches)] * pipeline.dp),
        ("--pipeline-type", PIPELINE_TYPES[pipeline.schedule]),
        ("--default_dp_type", "zero2" if training.distributed_optimizer else "ddp"),
    ]
    if training.sequence_parallel:
        flags.append(("--seq-parallel",))
    if pipeline.recompute == "full":
        flags.append(("--checkpoint-layers",))
    return tuple(flags)


def export(request: Request) -> Export:
    """The JSON file, and the script that starts a process for each rank."""
    places, head = places_of(request), about(request, TITLE)
    processes, flags, settings = processes_of(request), flags_of(request), configurations(request)
    nodes = list(dict.fromkeys(process.node for process in processes))
    files = (
        ExportedFile(NAME, process_script(head, request, processes, flags)),
        ExportedFile("hetero_configs.json", json_document(settings) + "\n"),
    )
    first = {place.node: place for place in reversed(places)}
    starts = tuple(Start(first[node], f"bash {NAME} {node} {LAUNCH_USAGE}") for node in nodes)
    notes = (
        *placement_notes(request, places),
        "HexiScale counts ranks in the order TP, PP, DP, not as the plan does; the script gives each process its own",
        *(() if not request.experiment.training.distributed_optimizer else (ZERO2,)),
    )
    return Export(files, places, starts, settings, notes)
