"""Adaptive 1F1B: deeper warm-up only across the links that are slow enough to need it."""

from __future__ import annotations

import math

from poseidon.schedule.schedule import Schedule, Shape


class AdaptiveOneFOneB(Schedule):
    """Stage s runs min(M, 1 + sum of the depths of links s, s + 1, ...) forwards first.

    Link i joins stages i and i + 1. Depth 1 everywhere is 1F1B, depth 2 everywhere Eager 1F1B; `hiding_depth` gives
    the depth that a link needs.
    """

    name = "adaptive_1f1b"
    summary = "1F1B with a depth (>= 1) per link: stage s starts with 1 + the sum of later links' depths forwards"

    def _refusal(self, shape: Shape) -> str | None:
        if shape.num_chunks != 1:
            return f"{self.name} runs each stage as one chunk: num_chunks must be 1, not {shape.num_chunks}"
        if len(shape.depths) != shape.num_stages - 1:
            return (
                f"{self.name} needs one depth for each of the {shape.num_stages - 1} links between stages, "
                f"not {len(shape.depths)}"
            )
        if any(depth < 1 for depth in shape.depths):
            return f"{self.name} needs depths of at least 1, not {min(shape.depths)}"
        return None

    def _warmup(self, shape: Shape, stage: int) -> int:
        return min(shape.num_micro_batches, 1 + sum(shape.depths[stage:]))


def hiding_depth(transfer_ms: float, forward_ms: float, backward_ms: float) -> int:
    """Smallest depth that hides a link of this one-way transfer time: 1 + ceil(2 c / (f + b)).

    `forward_ms` and `backward_ms` are those of one balanced stage and one micro-batch; their sum must be positive.
    """
    if not (forward_ms + backward_ms > 0 and transfer_ms >= 0):
        raise ValueError("hiding_depth needs forward_ms + backward_ms > 0 and transfer_ms >= 0")
    return 1 + math.ceil(2 * transfer_ms / (forward_ms + backward_ms))
