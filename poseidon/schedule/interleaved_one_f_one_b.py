"""Interleaved 1F1B: each stage holds V chunks of layers and visits them in turn, which shortens the bubble."""

from __future__ import annotations

from poseidon.schedule.action import Action, Kind
from poseidon.schedule.schedule import Schedule, Shape


class InterleavedOneFOneB(Schedule):
    """Megatron-LM's interleaved order (arXiv 2104.04473): groups of micro-batches visit the chunks in turn.

    A group has N micro-batches where M is a multiple of N, else `microbatch_group_size` of them. Megatron runs
    min(2 (N - s - 1) + (V - 1) group, M V) warm-up forwards and then pairs (F, B), so one more forward comes before the
    first backward. The backwards visit the chunks from the last to the first.
    """

    name = "interleaved_1f1b"
    summary = "1F1B over V chunks of layers per stage (Megatron's order); M must be at least N"

    def _refusal(self, shape: Shape) -> str | None:
        if shape.depths:
            return f"{self.name} takes no depths: they belong to adaptive_1f1b"
        if shape.num_micro_batches < shape.num_stages:
            return (
                f"{self.name} runs micro-batches in groups of at least one per stage: "
                f"num_micro_batches must be at least {shape.num_stages}, not {shape.num_micro_batches}"
            )
        return None

    def _warmup(self, shape: Shape, stage: int) -> int:
        group = microbatch_group_size(shape.num_stages, shape.num_micro_batches)
        num_warmup = 2 * (shape.num_stages - stage - 1) + (shape.num_chunks - 1) * group
        return min(num_warmup + 1, shape.num_micro_batches * shape.num_chunks)

    def _sequence(self, shape: Shape, kind: Kind) -> tuple[Action, ...]:
        return chunk_sequence(shape, kind, microbatch_group_size(shape.num_stages, shape.num_micro_batches))


def chunk_sequence(shape: Shape, kind: Kind, group: int) -> tuple[Action, ...]:
    """The operations of one kind, where groups of micro-batches visit the chunks in turn: forwards up, others down."""
    chunks = range(shape.num_chunks) if kind == "F" else range(shape.num_chunks - 1, -1, -1)
    return tuple(
        Action(kind, microbatch, chunk)
        for first in range(0, shape.num_micro_batches, group)
        for chunk in chunks
        for microbatch in range(first, min(first + group, shape.num_micro_batches))
    )


def microbatch_group_size(num_stages: int, num_micro_batches: int) -> int:
    """Micro-batches that visit a chunk in a row: the fewest, from N up, that Megatron-LM accepts.

    Its ``--microbatch-group-size-per-virtual-pipeline-stage`` lies between N and M and leaves no last group, or one of
    at least N micro-batches. ValueError where M is below N.
    """
    if num_micro_batches < num_stages:
        raise ValueError(f"a group of at least {num_stages} micro-batches needs as many; there are {num_micro_batches}")
    sizes = range(num_stages, num_micro_batches + 1)
    return next(size for size in sizes if not 0 < num_micro_batches % size < num_stages)
