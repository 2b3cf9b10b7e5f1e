"""Megatron-LM: command-line flags, and a script that starts torchrun on every node in the plan's order."""

from __future__ import annotations

from collections.abc import Iterator

from poseidon.errors import Mistake
from poseidon.output.export.about import about
from poseidon.output.export.exported import Export, ExportedFile, Start
from poseidon.output.export.launch_script import NAME, TORCHRUN, launch_script, start_command
from poseidon.output.export.megatron_layout import (
    FIRST_AND_LAST,
    LAYOUT,
    even_refusals,
    first_last_refusals,
    first_last_settings,
    layout_settings,
)
from poseidon.output.export.megatron_settings import (
    Settings,
    as_flags,
    family_notes,
    group_settings,
    shared_refusals,
    shared_settings,
)
from poseidon.output.export.places import placement_notes, places_of
from poseidon.output.export.request import Request

TITLE = "Megatron-LM"


def refusals(request: Request) -> Iterator[Mistake]:
    """What Megatron-LM of this version can't run."""
    yield from shared_refusals(request, TITLE)
    if request.version < FIRST_AND_LAST:
        yield from even_refusals(request, "Megatron-LM before core 0.12", "core 0.13 or later")
    elif request.version < LAYOUT:
        yield from first_last_refusals(request, "Megatron-LM of core 0.12", "core 0.13 or later")


def settings_of(request: Request) -> Settings:
    """All flags by name."""
    pipeline = request.pipeline
    split = layout_settings(pipeline) if request.version >= LAYOUT else first_last_settings(pipeline)
    return shared_settings(request) | split | group_settings(pipeline)


def export(request: Request) -> Export:
    """One script with the flags in it."""
    places, settings = places_of(request), settings_of(request)
    script = launch_script(about(request, TITLE), places, TORCHRUN, as_flags(settings))
    notes = (
        *placement_notes(request, places),
        "ranks follow the order TP, DP, PP: do not add --use-tp-pp-dp-mapping, nor a rendezvous that reorders nodes "
        "(--rdzv-backend c10d)",
        *family_notes(request),
    )
    starts = tuple(Start(place, start_command(place, TORCHRUN)) for place in places)
    return Export((ExportedFile(NAME, script),), places, starts, settings, notes)
