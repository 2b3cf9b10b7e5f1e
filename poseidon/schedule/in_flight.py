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
    return tuple(_peak(actions, ones, ones) / order.num_chunks for actions in order.stages)


def peak_in_flight(
    order: Order,
    chunk_weights: Sequence[Sequence[float]],
    kept_weights: Sequence[Sequence[float]] | None = None,
) -> tuple[float, ...]:
    """Per stage, the largest sum of the weights of the chunk activations held at once.

    `chunk_weights[stage][chunk]` is what one micro-batch's activation of that chunk counts, such as its layers or
    bytes. `kept_weights` is what is still held between the input part I of a split backward and its weight part W: the
    inputs of the matrix products and the gradients of their outputs (default: the whole activation).
    """
    kept_weights = chunk_weights if kept_weights is None else kept_weights
    rows = zip(order.stages, chunk_weights, kept_weights, strict=True)
    return tuple(_peak(actions, weights, kept) for actions, weights, kept in rows)


def _peak(actions: Sequence[Action], weights: Sequence[float], kept: Sequence[float]) -> float:
    """Counts are kept per chunk and only then weighted, so that nothing is lost to rounding over long orders."""
    whole, rest = [0] * len(weights), [0] * len(weights)
    peak = 0.0
    for action in actions:
        if action.kind == "F":
            whole[action.chunk] += 1
        elif action.kind in "BI":
            whole[action.chunk] -= 1
            rest[action.chunk] += action.kind == "I"
        else:
            rest[action.chunk] -= 1
        if action.kind in "FI":
            held = sum(count * weight for count, weight in zip(whole, weights, strict=True))
            peak = max(peak, held + sum(count * weight for count, weight in zip(rest, kept, strict=True)))
    return peak
