"""Interleaved 1F1B: each stage holds V chunks of layers and visits them in turn, which shortens the bubble."""

from __future__ import annotations

from poseidon.schedule.action import Action, Kind
from poseidon.schedule.schedule import Schedule, Shape


class InterleavedOneFOneB(Schedule):
    """Megatron-LM's interleaved order (arXiv 2104.04473): groups of N micro-batches visit the chunks in turn.

    Megatron runs min(2 (N - s - 1) + (V - 1) N, M V) warm-up forwards and then pairs (F, B), so one more forward
    comes before the first backward. The backwards visit the chunks from the last to the first.
    """

    name = "interleaved_1f1b"
    summary = "1F1B over V chunks of layers per stage (Megatron's order); M must be a multiple of N"

    def _refusal(self, shape: Shape) -> str | None:
        if shape.depths:
            return f"{self.name} takes no depths: they belong to adaptive_1f1b"
        if shape.num_micro_batches % shape.num_stages:
            return (
                f"{self.name} runs micro-batches in groups of one per stage: num_micro_batches must be a multiple of "
                f"{shape.num_stages}, not {shape.num_micro_batches}"
            )
        return None

    def _warmup(self, shape: Shape, stage: int) -> int:
        num_warmup = 2 * (shape.num_stages - stage - 1) + (shape.num_chunks - 1) * shape.num_stages
        return min(num_warmup + 1, shape.num_micro_batches * shape.num_chunks)

    def _sequence(self, shape: Shape, kind: Kind) -> tuple[Action, ...]:
        chunks = range(shape.num_chunks) if kind == "F" else range(shape.num_chunks - 1, -1, -1)
        return tuple(
            Action(kind, microbatch, chunk)
            for first in range(0, shape.num_micro_batches, shape.num_stages)
            for chunk in chunks
            for microbatch in range(first, first + shape.num_stages)
        )
