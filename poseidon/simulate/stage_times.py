"""How long each stage computes and sends: the weights of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
PerChunk = Sequence[float] | Sequence[Sequence[float]]
"""One number per stage, or one list per stage with a number per chunk."""


@dataclass(frozen=True, eq=False)
class StageTimes:
    """Milliseconds per micro-batch (`all_reduce_ms`: per iteration), as read-only arrays; make one with `stage_times`.

    `forward_ms`, `backward_ms`, `input_ms`, `weight_ms`: [stage, chunk]; the last two are a split backward's parts.
    `send_forward_ms`: [stage], to the next stage; the last stage's goes to the first stage's next chunk.
    `send_backward_ms`: [stage], to the previous stage; the first stage's goes to the last stage's previous chunk.
    `all_reduce_ms`: [stage], after the stage's last operation.
    """

    forward_ms: Times
    backward_ms: Times
    input_ms: Times
    weight_ms: Times
    send_forward_ms: Times
    send_backward_ms: Times
    all_reduce_ms: Times

    def __post_init__(self) -> None:
        """Refuses arrays of different shapes, and numbers that no duration can be, with ValueError."""
        per_chunk = self.forward_ms.shape
        if len(per_chunk) != 2 or 0 in per_chunk:
            raise ValueError(f"forward_ms needs at least one stage and one chunk, not the shape {per_chunk}")
        for field in fields(self):
            array: Times = getattr(self, field.name)
            expected = per_chunk[:1] if field.name.startswith(("send_", "all_")) else per_chunk
            if array.shape != expected:
                raise ValueError(f"{field.name} must have the shape {expected}, not {array.shape}")
            _check_durations(field.name, array)

    @property
    def num_stages(self) -> int:
        """Number of pipeline stages."""
        return int(self.forward_ms.shape[0])

    @property
    def num_chunks(self) -> int:
        """Number of chunks of each stage."""
        return int(self.forward_ms.shape[1])


def stage_times(
    forward_ms: PerChunk,
    backward_ms: PerChunk,
    *,
    input_ms: PerChunk | None = None,
    weight_ms: PerChunk | None = None,
    send_forward_ms: Sequence[float] | None = None,
    send_backward_ms: Sequence[float] | None = None,
    all_reduce_ms: Sequence[float] | None = None,
) -> StageTimes:
    """The times of a pipeline from lists: one entry per stage, which is a number, or a list with a number per chunk.

    Without `input_ms`, the input part of a split backward takes half of the backward (the two parts of a matrix
    product's gradient cost the same); without `weight_ms`, the weight part takes what the input part leaves. Without
    `send_*_ms` and `all_reduce_ms` they take no time. ValueError if lengths do not match or a number is negative or
    not finite.
    """
    backward = _per_chunk("backward_ms", backward_ms)
    inputs = backward / 2 if input_ms is None else _per_chunk("input_ms", input_ms)
    if weight_ms is not None:
        weights = _per_chunk("weight_ms", weight_ms)
    elif inputs.shape != backward.shape or (inputs > backward).any():
        raise ValueError("input_ms must be at most backward_ms where weight_ms is not given")
    else:
        weights = backward - inputs
    zeros = [0.0] * len(forward_ms)
    per_stage = [
        _read_only(zeros if values is None else values) for values in (send_forward_ms, send_backward_ms, all_reduce_ms)
    ]
    forward = _per_chunk("forward_ms", forward_ms)
    return StageTimes(forward, backward, _read_only(inputs), _read_only(weights), *per_stage)


def _per_chunk(name: str, values: PerChunk) -> Times:
    lists = [value if isinstance(value, Sequence) else [value] for value in values]
    if len({len(numbers) for numbers in lists}) > 1:
        raise ValueError(f"{name} needs as many chunks for each stage")
    array = _read_only(lists)
    _check_durations(name, array)
    return array


def _check_durations(name: str, array: Times) -> None:
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"{name} must be finite and at least 0 everywhere")


def _read_only(values: object) -> Times:
    array = np.array(values, dtype=np.float64, order="C")
    array.setflags(write=False)
    return array
