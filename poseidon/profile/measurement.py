"""What a measured profile file says beside its numbers: how each was measured, and on what (docs/measure.md)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from poseidon.inputs.fields import Count, CountOrZero, Name, Switch
from poseidon.inputs.file_model import FileModel

Spread = Annotated[float, Field(ge=0, le=1e9)]


class MeasuredCompute(FileModel):
    """How the times of a layer, embedding or head were measured."""

    samples: Count
    """Runs that the medians are of."""
    forward_spread: Spread
    """Median absolute deviation of the forward times, as a part of their median."""
    backward_spread: Spread
    """The same of the backward times."""
    peak_bytes: Annotated[int, Field(ge=0, le=10**18)]
    """Most that one pass allocates beside weights, gradients and input."""
    tp_communication: Literal["none", "measured", "ring"]
    """Whether communication between TP ranks was part of what was timed, or added by the ring formula."""


class MeasuredMessage(FileModel):
    """How the time of a message or all-reduce was measured."""

    samples: Count
    spread: Spread


class Taken(FileModel):
    """One run of `poseidon profile`: on what, when and how."""

    accelerator: Name
    device: Literal["cpu", "cuda", "npu"]
    device_name: str
    host: str
    processes: Count
    backend: str
    """The torch.distributed backend; with one process nothing was sent."""
    threads: Count
    """CPU threads of each process."""
    torch: str
    poseidon: str
    model_sha256: str
    """Of the model's description: rows of two models of one name are never mixed."""
    sequence_parallel: Switch
    started: str
    finished: str
    """UTC, ISO 8601."""
    warmups: CountOrZero
    fewest_samples: Count
    most_samples: Count
    error_limit: Spread
    """Sampling stopped when the standard error of every median was below this part of it."""
    no_room: tuple[str, ...] = ()
    """What did not fit into the device's memory."""
