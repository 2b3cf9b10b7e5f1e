"""An operation of a layer: its work, its memory traffic and what it keeps for the backward pass.

A layer is a list of operations in forward order; times, activation bytes and recomputation all follow from that one
list. All figures are for one device and one micro-batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from poseidon.profile.micro_batch import ELEMENT_BYTES

GRADIENT_BYTES = 4
"""Weight gradients are accumulated in fp32."""
BACKWARD_TRAFFIC = 1.5
"""A norm reads 1 and writes 1 tensor forward, reads 2 and writes 1 backward; others are close to that."""


@dataclass(frozen=True)
class Kept:
    """Bytes that an operation keeps on the device until the backward pass."""

    always: float = 0.0
    unless_selective: float = 0.0
    """Further bytes, which selective recomputation drops."""

    @property
    def total(self) -> float:
        """Without recomputation."""
        return self.always + self.unless_selective


NOTHING_KEPT = Kept()


@dataclass(frozen=True)
class Operation:
    """One kernel, or a few fused ones."""

    name: str
    forward_flops: float = 0.0
    backward_flops: float = 0.0
    smallest_side: float = 0.0
    """The smallest dimension of the matrix product on this device; 0 for other operations."""
    forward_bytes: float = 0.0
    """Bytes read and written in device memory."""
    backward_bytes: float = 0.0
    kept: Kept = NOTHING_KEPT
    replayed: bool = False
    """Whether selective recomputation runs it again."""
    fused_attention: bool = False
    has_weights: bool = False
    """A product with a weight matrix, whose TP communication can be overlapped with it."""


def matmul(
    name: str,
    rows: float,
    inner: float,
    columns: float,
    *,
    count: float = 1.0,
    weights: bool = True,
    kept: Kept = NOTHING_KEPT,
    replayed: bool = False,
) -> Operation:
    """`count` products of a rows x inner with an inner x columns matrix, 2 x rows x inner x columns FLOPs each.

    The backward pass does two products of the same size, one for the gradient of each operand (Narayanan et al. 2021,
    arXiv 2104.04473, appendix); a weight's gradient is read and written in fp32.
    """
    flops = 2.0 * rows * inner * columns * count
    operands = (rows * inner + rows * columns) * ELEMENT_BYTES * count
    matrix = inner * columns * count
    gradient = matrix * (2 * GRADIENT_BYTES if weights else ELEMENT_BYTES)
    return Operation(
        name=name,
        forward_flops=flops,
        backward_flops=2.0 * flops,
        smallest_side=min(rows, inner, columns),
        forward_bytes=operands + matrix * ELEMENT_BYTES,
        backward_bytes=2 * operands + matrix * ELEMENT_BYTES + gradient,
        kept=kept,
        replayed=replayed,
        has_weights=weights,
    )


def elementwise(name: str, moved_bytes: float, *, kept: Kept = NOTHING_KEPT, replayed: bool = False) -> Operation:
    """An operation bound by memory bandwidth, which moves `moved_bytes` in the forward pass."""
    return Operation(
        name=name,
        forward_bytes=moved_bytes,
        backward_bytes=BACKWARD_TRAFFIC * moved_bytes,
        kept=kept,
        replayed=replayed,
    )
