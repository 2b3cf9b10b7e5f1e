"""ZB-H1 and ZB-H2: 1F1B with split backwards, whose weight parts fill the bubbles at the end."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from poseidon.schedule.action import Action, Kind
from poseidon.schedule.interleaved_one_f_one_b import chunk_sequence
from poseidon.schedule.schedule import Shape
from poseidon.schedule.split_schedule import SplitSchedule


class ZeroBubble(SplitSchedule):
    """Pairs of forward and input part after a warm-up; weight parts are put off, the more the later the stage.

    Stage s of N runs d (N - 1 - s) forwards, then pairs (F, I) and the remaining I; from the pair d s on each I is
    followed by the oldest weight part; those left over come last (arXiv 2401.10241, section 2). d is 1 for H1, which
    holds no more activations than 1F1B, and 2 for H2, which holds up to 2 N - 1 and needs an optimizer step that waits
    for no other stage to pay.
    """

    depth: ClassVar[int]

    def _operations(self, shape: Shape, stage: int) -> tuple[Action, ...]:
        group = round_size(shape)
        forwards, inputs, weights = _sequences(shape)
        to_last = shape.num_stages - 1 - stage
        num_warmup = min(len(forwards), self.depth * to_last + (shape.num_chunks - 1) * group)
        steps = list(forwards[:num_warmup])
        next_weight = 0
        for pair, input_part in enumerate(inputs):
            steps += [*forwards[num_warmup + pair : num_warmup + pair + 1], input_part]
            if pair >= self.depth * stage:
                steps.append(weights[next_weight])
                next_weight += 1
        return (*steps, *weights[next_weight:])


class ZeroBubbleH1(ZeroBubble):
    """ZB-H1; with several chunks PyTorch's ``InterleavedZeroBubble``."""

    name = "zb_h1"
    summary = "1F1B with split backwards: weight parts fill the end; memory as 1F1B"
    depth = 1

    def _refusal(self, shape: Shape) -> str | None:
        if shape.depths:
            return f"{self.name} takes no depths: they belong to adaptive_1f1b"
        if shape.num_chunks == 1:
            return None
        num_rounds = max(1, shape.num_micro_batches // shape.num_stages)
        if shape.num_micro_batches % num_rounds:
            return (
                f"{self.name} with chunks needs rounds of equal size: num_micro_batches must be a multiple of "
                f"{num_rounds} (num_micro_batches // num_stages), not {shape.num_micro_batches}"
            )
        return None


class ZeroBubbleH2(ZeroBubble):
    """ZB-H2: twice the warm-up."""

    name = "zb_h2"
    summary = "ZB-H1 with twice the warm-up: twice the memory of 1F1B, hardly a bubble"
    depth = 2


@lru_cache(maxsize=8)
def _sequences(shape: Shape) -> tuple[tuple[Action, ...], ...]:
    """Forwards, input parts and weight parts, as every stage takes them."""
    kinds: tuple[Kind, ...] = ("F", "I", "W")
    return tuple(chunk_sequence(shape, kind, round_size(shape)) for kind in kinds)


def round_size(shape: Shape) -> int:
    """Micro-batches that visit a chunk in a row: PyTorch's rounds of M // (M // N)."""
    return shape.num_micro_batches // max(1, shape.num_micro_batches // shape.num_stages)
