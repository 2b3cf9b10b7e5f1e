"""What one Megatron-LM log measured: the passes of its stages (formulas: `megatron`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from poseidon.inputs.model import LayerType
from poseidon.profile.importers.megatron_log import Block, Pass, TrainingLog
from poseidon.profile.importers.numbers import Checked, whole
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.importers.run_key import accelerator_of
from poseidon.profile.importers.stage_times import Observation
from poseidon.profile.profile import RowKey

__all__ = ["Observation", "Run", "run_of"]


@dataclass(frozen=True)
class Run:
    """A log's stages, times of one micro-batch."""

    file: str
    at: RowKey
    layer_type: LayerType
    stages: tuple[Observation, ...]
    num_blocks: int


@dataclass(frozen=True)
class Settings:
    """What the arguments (or options) say."""

    tp: int
    micro_batch_size: int
    num_micro_batches: int
    world_size: int
    layers: tuple[int, ...]
    """Of each stage."""


def run_of(path: Path, log: TrainingLog, options: ImportOptions, checked: Checked) -> Run:
    """The stages of one log; mistakes are left in `checked`."""
    accelerator = accelerator_of(path, options, checked)
    settings = _settings(log.arguments, options, checked)
    _same_model(log.arguments, options, checked)
    kept = log.blocks[1:] if len(log.blocks) > 1 else log.blocks
    stages = _stages(kept, settings, checked) if kept and not checked.mistakes else ()
    at = RowKey(accelerator, settings.tp, settings.micro_batch_size)
    return Run(checked.file, at, _layer_type(log.arguments, options, checked), tuple(stages), len(kept))


def _settings(arguments: Mapping[str, str], options: ImportOptions, checked: Checked) -> Settings:
    given_size = options.micro_batch_sizes[0] if len(options.micro_batch_sizes) == 1 else None
    tp = _value(arguments, "tensor_model_parallel_size", options.tp, "--tp", checked)
    size = _value(arguments, "micro_batch_size", given_size, "--micro-batch-size", checked)
    default_stages = options.pipeline_stages or (None if arguments else 1)
    stages = _value(arguments, "pipeline_model_parallel_size", default_stages, "--pipeline-stages", checked)
    layers = _value(arguments, "num_layers", options.model.num_layers if options.model else None, "--model", checked)
    world = _value(arguments, "world_size", tp * stages, "world_size", checked)
    replicas = whole(arguments.get("data_parallel_size", "")) or max(1, world // (tp * stages))
    batch = whole(arguments.get("global_batch_size", ""))
    micro_batches = options.num_micro_batches or (batch // (size * replicas) if batch else None)
    if not micro_batches:
        checked.say("arguments", "don't say the micro-batches of an iteration: give --num-micro-batches N")
    return Settings(tp, size, micro_batches or 1, world, _split(arguments, layers, stages, checked))


def _value(arguments: Mapping[str, str], name: str, given: int | None, option: str, checked: Checked) -> int:
    """An argument of the log, else an option."""
    if name in arguments:
        found = checked.count(arguments[name], f"argument {name}", "whole number")
        if given is not None and option.startswith("--") and option != "--model" and found != given:
            checked.say(f"argument {name}", f"is {found}, but {option} says {given}")
        return found
    if given is None:
        checked.say(f"argument {name}", f"is not in the log: give {option}")
    return given or 1


def _split(arguments: Mapping[str, str], layers: int, stages: int, checked: Checked) -> tuple[int, ...]:
    """Layers of each stage: even, or with other numbers on the first and last stage."""
    if stages > 1 and arguments.get("pipeline_model_parallel_layout", "None") != "None":
        checked.say(
            "argument pipeline_model_parallel_layout", "uneven layouts can't be read: profile with an even split"
        )
    ends = [arguments.get(f"decoder_{end}_pipeline_num_layers", "None") for end in ("first", "last")]
    first, last = (whole(end) for end in ends)
    middle = stages - (first is not None) - (last is not None)
    rest = layers - (first or 0) - (last or 0)
    if stages == 1:
        return (layers,)
    if rest < 0 or (middle == 0 and rest) or (middle and rest % middle):
        checked.say("argument num_layers", f"{layers} layers don't share out evenly over {stages} stages")
        return (layers,) * stages
    each = [rest // middle] * middle if middle else []
    return (*([first] if first is not None else []), *each, *([last] if last is not None else []))


def _same_model(arguments: Mapping[str, str], options: ImportOptions, checked: Checked) -> None:
    if options.model is None:
        return
    expected = {"hidden_size": options.model.hidden_size, "num_attention_heads": options.model.num_attention_heads}
    for name, value in expected.items():
        if arguments.get(name, str(value)) != str(value):
            checked.say(f"argument {name}", f"is {arguments[name][:20]}, but {options.model.name} has {value}")


def _layer_type(arguments: Mapping[str, str], options: ImportOptions, checked: Checked) -> LayerType:
    if options.model is not None:
        types = options.model.distinct_layer_types
        if len(types) > 1:
            checked.say("", f"{options.model.name} mixes dense and MoE layers, whose times a log can't tell apart")
        return types[0]
    return "moe" if arguments.get("num_experts", "None") not in ("None", "0") else "dense"


def _stages(blocks: Sequence[Block], settings: Settings, checked: Checked) -> list[Observation]:
    count = len(settings.layers)
    options = {block.option for block in blocks}
    if count > 1 and options & {"minmax", "max"}:
        message = f"gives times over all {count} stages together: train with --timing-log-option all, or on one stage"
        checked.say(f"line {blocks[0].line}", message)
        return []
    found: list[Observation] = []
    for stage in range(count):
        forward, backward = (_stage_ms(blocks, name, stage, settings) for name in ("forward", "backward"))
        if forward is not None and backward is not None:
            scale = settings.num_micro_batches
            ends = (stage == 0, stage == count - 1)
            found.append(Observation(*ends, settings.layers[stage], forward / scale, backward / scale))
    if not found:
        checked.say(
            f"line {blocks[0].line}", f"has no ranks of the {count} stages ({settings.world_size} ranks expected)"
        )
    return found


def _stage_ms(blocks: Sequence[Block], name: Pass, stage: int, settings: Settings) -> float | None:
    """Median over the blocks of the stage's slowest rank; stages are consecutive ranks (Megatron-LM's order)."""
    count = len(settings.layers)
    per_stage = max(1, settings.world_size // count)
    values = []
    for block in blocks:
        times = block.times[name]
        if block.option == "all":
            own = [ms for rank, ms in times.items() if rank // per_stage == stage]
        else:
            own = list(times.values()) if stage == count - 1 else []
        if own:
            values.append(max(own))
    return median(values) if values else None
