"""A profile: what one layer costs on each accelerator at each TP degree and micro-batch size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from poseidon.inputs.links import LinkClass
from poseidon.inputs.model import LayerType
from poseidon.inputs.training import Recompute


@dataclass(frozen=True)
class RowKey:
    """Where a row was taken: accelerator name, TP degree, sequences of a micro-batch."""

    accelerator: str
    tp: int
    micro_batch_size: int

    def __str__(self) -> str:
        """The key as messages show it."""
        return f"(accelerator {self.accelerator}, tp {self.tp}, micro_batch_size {self.micro_batch_size})"


@dataclass(frozen=True)
class LayerKey:
    """A row of a layer: also the layer's type and what is recomputed."""

    at: RowKey
    layer_type: LayerType
    recompute: Recompute

    def __str__(self) -> str:
        """The key as messages show it."""
        at = str(self.at)[:-1]
        return f"{at}, layer_type {self.layer_type}, recompute {self.recompute})"


@dataclass(frozen=True)
class Row:
    """Cost of one layer (or of the embedding, or the head) for one micro-batch, on one device of the TP group.

    TP communication is in the times. `weight_bytes` is what the weights take in the training precision,
    `activation_bytes` what one in-flight micro-batch keeps, `recomputed_bytes` what comes back for a moment while the
    layer is recomputed (or exists for a moment while its backward pass runs). `update_ms` is the optimizer's step on
    all of its parameters, once an iteration.
    """

    forward_ms: float
    backward_ms: float
    weight_bytes: float
    activation_bytes: float
    recomputed_bytes: float = 0.0
    source: str = ""
    """Where this row comes from, if not from where the profile as a whole does (``analytic``: made up by formula)."""
    update_ms: float = 0.0


@dataclass(frozen=True)
class MeasuredTransfer:
    """Measured time of one message between two accelerators over one class of links."""

    sender: str
    receiver: str
    link: LinkClass
    num_bytes: float
    ms: float


@dataclass(frozen=True)
class MeasuredAllReduce:
    """Measured time of one gradient all-reduce over `dp` ranks."""

    accelerator: str
    tp: int
    dp: int
    link: LinkClass
    num_bytes: float
    ms: float


@dataclass(frozen=True)
class Profile:
    """All rows; where `transfers` and `all_reduce` have none for a case the link's latency and bandwidth decide."""

    model: str
    seq_length: int
    precision: str
    source: str
    """How it was obtained, on what, when."""
    layers: Mapping[LayerKey, Row]
    embedding: Mapping[RowKey, Row]
    head: Mapping[RowKey, Row]
    transfers: tuple[MeasuredTransfer, ...] = field(default=())
    all_reduce: tuple[MeasuredAllReduce, ...] = field(default=())
    sequence_parallel: bool | None = None
    """What it was taken with; None: not known."""
