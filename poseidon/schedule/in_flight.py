"""How many activations a stage holds at once, by replaying its order."""

from __future__ import annotations

from collections.abc import Sequence

from poseidon.schedule.action import Action
from poseidon.schedule.order import Order


def in_flight(order: Order) -> tuple[float, ...]:
    """Per stage, the largest number of micro-batches in flight: chunk activations held at once / num_chunks.

    An activation is held from its forward until its full backward B, or until the weight part W of a split one.
    """
    ones = [1.0] * order.num_chunks
    return tuple(_peak(actions, ones) / order.num_chunks for actions in order.stages)


def peak_in_flight(order: Order, chunk_weights: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Per stage, the largest sum of the weights of the chunk activations held at once.

    `chunk_weights[stage][chunk]` is what one micro-batch's activation of that chunk counts, such as its layers or
    bytes.
    """
    return tuple(_peak(actions, weights) for actions, weights in zip(order.stages, chunk_weights, strict=True))


def _peak(actions: Sequence[Action], weights: Sequence[float]) -> float:
    """Counts are kept per chunk and only then weighted, so that nothing is lost to rounding over long orders."""
    counts = [0] * len(weights)
    peak = 0.0
    for action in actions:
        if action.kind == "F":
            counts[action.chunk] += 1
            peak = max(peak, sum(count * weight for count, weight in zip(counts, weights, strict=True)))
        elif action.kind in "BW":
            counts[action.chunk] -= 1
    return peak
