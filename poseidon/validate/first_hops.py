"""Interleaved 1F1B as the zero-bubble paper's authors timed it: most hops between chunks are not waited for."""

from __future__ import annotations

from poseidon.schedule import Action, Order


def time_with_first_hops_ms(order: Order, forward_ms: float, backward_ms: float, transfer_ms: float) -> float:
    """The iteration time where only the first micro-batch of each N waits for the hop from the last stage to the first.

    That is how the script behind table 5 takes it (sail-sg/zero-bubble-pipeline-parallelism, efficiency.py at f68d387):
    the hop, and the hop back, hold up the first of each group of N micro-batches alone. `forward_ms` and `backward_ms`
    are those of a chunk.
    """
    last = order.num_virtual_stages - 1
    ends: dict[tuple[str, int, int], float] = {}
    clock, position = [0.0] * order.num_stages, [0] * order.num_stages
    num_left = order.num_operations
    while num_left:
        before = num_left
        for stage, actions in enumerate(order.stages):
            while position[stage] < len(actions):
                action = actions[position[stage]]
                virtual = order.virtual_stage(stage, action.chunk)
                sender = virtual - 1 if action.kind == "F" else virtual + 1
                start = clock[stage]
                if 0 <= sender <= last and not _is_left_out(order, stage, action):
                    if (action.kind, sender, action.microbatch) not in ends:
                        break
                    start = max(start, ends[action.kind, sender, action.microbatch] + transfer_ms)
                clock[stage] = start + (forward_ms if action.kind == "F" else backward_ms)
                ends[action.kind, virtual, action.microbatch] = clock[stage]
                position[stage] += 1
                num_left -= 1
        assert num_left < before, "the order deadlocks"
    return max(clock)


def _is_left_out(order: Order, stage: int, action: Action) -> bool:
    """Whether an operation receives over a hop between chunks and is not the first of its group to do so."""
    receiver = 0 if action.kind == "F" else order.num_stages - 1
    return stage == receiver and action.microbatch % order.num_stages != 0
