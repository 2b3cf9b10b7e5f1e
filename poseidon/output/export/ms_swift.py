"""Megatron-SWIFT (ms-swift): Megatron's settings under its own spelling, started by its ``megatron`` command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from poseidon.errors import Mistake
from poseidon.output.export.about import about
from poseidon.output.export.exported import Export, ExportedFile, Start
from poseidon.output.export.launch_script import NAME, Launcher, launch_script, start_command
from poseidon.output.export.megatron_layout import layout_settings
from poseidon.output.export.megatron_settings import Settings, Value, group_settings, shared_refusals, shared_settings
from poseidon.output.export.places import placement_notes, places_of
from poseidon.output.export.request import Request

TITLE = "ms-swift"
OLDEST = (3, 12)
NO_RECOMPUTE = (3, 12, 3)
"""First release with ``--recompute_granularity none``; the default is selective (its command-line documentation)."""

LAUNCHER = Launcher(
    """export NNODES={num_places} NODE_RANK="$place" NPROC_PER_NODE="$num_processes"
exec megatron "$@" "${flags[@]}\"""",
    "sft YOUR_FLAGS",
)


def refusals(request: Request) -> Iterator[Mistake]:
    """What ms-swift of this version can't run."""
    yield from shared_refusals(request, TITLE)
    if request.version < OLDEST:
        yield request.mistake("", "ms-swift before 3.12 is not supported; use --framework-version 3.12 or later")
    elif request.pipeline.recompute == "none" and request.version < NO_RECOMPUTE:
        yield request.mistake(
            "recompute",
            "ms-swift before 3.12.3 always recomputes; search again with --recompute selective, or use 3.12.3 or later",
        )
    if group_settings(request.pipeline):
        yield request.mistake(
            "num_micro_batches",
            f"ms-swift interleaves micro-batches in groups of {request.pipeline.pp}, and "
            f"{request.pipeline.num_micro_batches} do not divide; use --schedule 1f1b, or export to megatron",
        )


def settings_of(request: Request) -> Settings:
    """All settings under ms-swift's names: sequence length and precision differ from Megatron's."""
    settings = shared_settings(request)
    settings["max_length"] = settings.pop("seq_length")
    precision = request.experiment.training.precision
    del settings[precision], settings["num_layers"]
    settings["torch_dtype"] = {"bf16": "bfloat16", "fp16": "float16"}[precision]
    settings["use_distributed_optimizer"] = request.experiment.training.distributed_optimizer
    settings.setdefault("recompute_granularity", "none")
    return settings | layout_settings(request.pipeline)


def as_swift_flags(settings: Mapping[str, Value]) -> tuple[tuple[str, str], ...]:
    """``--name value``, switches with true or false."""
    return tuple(
        (f"--{name}", str(value).lower() if isinstance(value, bool) else str(value)) for name, value in settings.items()
    )


def export(request: Request) -> Export:
    """One script with the flags in it."""
    places, settings = places_of(request), settings_of(request)
    script = launch_script(about(request, TITLE), places, LAUNCHER, as_swift_flags(settings))
    notes = (
        *placement_notes(request, places),
        "model, data, optimizer and checkpoint flags are yours; the number of layers comes from your model",
    )
    starts = tuple(Start(place, start_command(place, LAUNCHER)) for place in places)
    return Export((ExportedFile(NAME, script),), places, starts, settings, notes)
