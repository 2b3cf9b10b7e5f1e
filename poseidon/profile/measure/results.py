"""What the measurement of a cell yields, and its form in the journal."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from poseidon.profile.measure.repeats import Timing

TpCommunication = Literal["none", "measured", "ring"]
"""How communication between TP ranks came into the times: not at all (TP 1), as part of the measured layer, or by the
ring formula from measured all-reduces of fewer ranks."""


@dataclass(frozen=True)
class ComputeResult:
    """Times and bytes of one layer, embedding or head, on one device."""

    forward: Timing
    backward: Timing
    weight_bytes: int
    activation_bytes: int
    recomputed_bytes: int
    peak_bytes: int
    """Most that one forward and backward pass allocates beside weights, gradients and input."""
    tp_communication: TpCommunication


@dataclass(frozen=True)
class MessageResult:
    """Time of one message or all-reduce."""

    time: Timing


@dataclass(frozen=True)
class NoRoom:
    """The device's memory is too small for the cell."""

    reason: str


Result = ComputeResult | MessageResult | NoRoom


def result_to_json(result: Result) -> dict[str, Any]:
    """A result as the journal holds it."""
    return asdict(result)


def result_from_json(data: dict[str, Any]) -> Result:
    """A result as the journal holds it; KeyError and TypeError where it is none."""
    if "reason" in data:
        return NoRoom(str(data["reason"]))
    if "time" in data:
        return MessageResult(Timing(**data["time"]))
    timings = {name: Timing(**data[name]) for name in ("forward", "backward")}
    return ComputeResult(**{**data, **timings})
