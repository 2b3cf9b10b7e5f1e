"""What a user asks to be measured, the cells that it consists of, and what of it can't be measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from poseidon.errors import Mistake
from poseidon.inputs.model import Model
from poseidon.inputs.training import Precision, Recompute
from poseidon.profile.degrees import tp_refusal
from poseidon.profile.measure.cells import AllReduceCell, Cell, ComputeCell, TransferCell
from poseidon.profile.micro_batch import ELEMENT_BYTES
from poseidon.profile.operation import GRADIENT_BYTES

SMALLEST_MESSAGE_BYTES = 64 * 1024
"""Below this a message's time is its latency on all links of interest."""
LARGEST_MESSAGE_BYTES = 256 * 1024 * 1024
"""From here on a message's time is proportional to its size: larger ones lie on the line through the last two."""


@dataclass(frozen=True)
class MeasureJob:
    """One run of `poseidon profile`, on one accelerator type."""

    model: Model
    accelerator: str
    seq_length: int
    micro_batch_sizes: tuple[int, ...]
    tp_degrees: tuple[int, ...]
    recompute: tuple[Recompute, ...] = ("none",)
    precision: Precision = "bf16"
    sequence_parallel: bool = True
    message_bytes: tuple[int, ...] = ()
    """Sizes of messages and all-reduces; empty: those that the model needs (`default_message_bytes`)."""


def default_tp_degrees(job: MeasureJob, world_size: int) -> tuple[int, ...]:
    """Powers of two up to the number of processes that can be measured."""
    powers = [2**exponent for exponent in range(world_size.bit_length()) if 2**exponent <= world_size]
    return tuple(tp for tp in powers if tp == 1 or not list(_tp_reasons(job, tp, world_size)))


def default_message_bytes(job: MeasureJob) -> tuple[int, ...]:
    """Powers of 4 that span the model's messages: activations of a boundary, and gradients of one layer."""
    activation = max(job.micro_batch_sizes) * job.seq_length * job.model.hidden_size * ELEMENT_BYTES
    gradient = max(map(job.model.layer_parameters, job.model.distinct_layer_types)) * GRADIENT_BYTES
    sizes = [SMALLEST_MESSAGE_BYTES]
    while sizes[-1] < min(max(activation, gradient), LARGEST_MESSAGE_BYTES) or len(sizes) < 2:
        sizes.append(4 * sizes[-1])
    return tuple(sizes)


def cells_of(job: MeasureJob, world_size: int) -> tuple[Cell, ...]:
    """All cells of a job in the order in which they are measured: communication first, which layers may need."""
    sizes = job.message_bytes or default_message_bytes(job)
    cells: list[Cell] = [TransferCell(size) for size in sizes] if world_size > 1 else []
    degrees = dict.fromkeys((1, *job.tp_degrees))
    cells += [
        AllReduceCell(tp, dp, size)
        for tp in degrees
        for dp in range(2, world_size // tp + 1)
        if world_size % (tp * dp) == 0
        for size in sizes
    ]
    for tp in job.tp_degrees:
        for size in job.micro_batch_sizes:
            cells += [
                ComputeCell(layer_type, tp, size, mode)
                for layer_type in job.model.distinct_layer_types
                for mode in job.recompute
            ]
            cells += [ComputeCell("embedding", tp, size), ComputeCell("head", tp, size)]
    return tuple(cells)


def refusals(job: MeasureJob, world_size: int, file: str) -> list[Mistake]:
    """Everything of the job that can't be measured, with the reason; empty when all can be."""
    reasons = [reason for tp in job.tp_degrees for reason in _tp_reasons(job, tp, world_size)]
    return [Mistake(file, "", reason) for reason in (*_model_reasons(job), *dict.fromkeys(reasons))]


def _model_reasons(job: MeasureJob) -> Iterator[str]:
    model, positions = job.model, job.model.max_position_embeddings
    if positions is not None and job.seq_length > positions:
        yield f"a sequence of {job.seq_length} tokens is longer than max_position_embeddings, {positions}"
    turned = {"mla.qk_rope_head_dim": model.mla.qk_rope_head_dim} if model.mla is not None else {}
    if model.mla is None and positions is None:
        turned["head_dim"] = model.head_dim
    for name, width in turned.items():
        if width % 2:
            yield f"{name}, {width}, is odd: rotary position embedding turns pairs of features"


def _tp_reasons(job: MeasureJob, tp: int, world_size: int) -> Iterator[str]:
    model = job.model
    if (reason := tp_refusal(model, tp)) is not None:
        yield reason
    if tp > 1 and world_size == 1:
        yield (
            "TP above 1 needs several processes: start with torchrun --nproc-per-node and the number of the node's "
            "devices (at least 2), or give --tp 1"
        )
    widths = {"ffn_hidden_size": model.ffn_hidden_size} if "dense" in model.distinct_layer_types else {}
    if model.moe is not None:
        widths["moe.expert_ffn_hidden_size"] = model.moe.expert_ffn_hidden_size
        widths["moe.shared_ffn_hidden_size"] = model.moe.shared_ffn_hidden_size
    for name, width in widths.items():
        if width % tp:
            yield f"TP {tp} does not divide {name}, {width}"
    for size in job.micro_batch_sizes:
        if job.sequence_parallel and size * job.seq_length % tp:
            yield f"TP {tp} does not divide the {size * job.seq_length} tokens of micro-batch {size}"
