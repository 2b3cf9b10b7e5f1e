"""Reads stages files (``poseidon.stages/1``): explicit times, with a schedule or each stage's operations in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.file_model import shown
from poseidon.inputs.reading import read_document
from poseidon.inputs.validation import validate
from poseidon.schedule import Order, peak_in_flight
from poseidon.simulate.stage_times import StageTimes, stage_times
from poseidon.simulate.stages_model import StagesModel
from poseidon.simulate.timeline import Transfers

STAGES_SCHEMA = "poseidon.stages/1"


@dataclass(frozen=True)
class StagesFile:
    """What a stages file describes: the order to simulate, the times, and how transfers take place.

    `peak_activation_bytes` has for each stage the most that it holds at once; empty where the file has no sizes.
    """

    schedule: str
    order: Order
    times: StageTimes
    transfers: Transfers = "overlapped"
    peak_activation_bytes: tuple[float, ...] = ()


def read_stages(path: str | Path) -> StagesFile:
    """Reads a stages file; InputError with every mistake found."""
    return stages_from_json(read_document(path).data, str(path))


def stages_from_json(data: Mapping[str, Any], file: str) -> StagesFile:
    """Reads a stages document that `file` names in errors; InputError with every mistake found."""
    fields = {key: value for key, value in data.items() if key != "schema"}
    schema = data.get("schema")
    mistakes = []
    if schema != STAGES_SCHEMA:
        found = "is missing" if schema is None else f"{shown(schema)} is not known"
        mistakes.append(Mistake(file, "schema", f"{found}; {STAGES_SCHEMA!r} is expected"))
    try:
        model = validate(StagesModel, fields, file)
    except InputError as error:
        raise InputError([*mistakes, *error.mistakes]) from None
    if mistakes:
        raise InputError(mistakes)
    order = model.order()
    return StagesFile(model.schedule, order, _times(model), model.transfers, _peaks(model, order))


def _peaks(model: StagesModel, order: Order) -> tuple[float, ...]:
    """The stages' peaks by replaying the order; () without sizes."""
    sizes = [stage.activation_bytes for stage in model.stages if stage.activation_bytes is not None]
    if not sizes:
        return ()
    kept = [stage.weight_input_bytes or stage.activation_bytes or () for stage in model.stages]
    return peak_in_flight(order, sizes, kept)


def _times(model: StagesModel) -> StageTimes:
    splits = [stage.split_ms() for stage in model.stages]
    return stage_times(
        [stage.forward_ms for stage in model.stages],
        [stage.backward_ms for stage in model.stages],
        input_ms=[inputs for inputs, _ in splits],
        weight_ms=[weights for _, weights in splits],
        send_forward_ms=[stage.send_forward_ms for stage in model.stages],
        send_backward_ms=[stage.send_backward_ms for stage in model.stages],
        all_reduce_ms=[stage.all_reduce_ms for stage in model.stages],
    )
