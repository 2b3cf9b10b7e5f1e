"""ZB-V: two chunks per stage in a V, so that the first stage also ends the pipeline, and split backwards."""

from __future__ import annotations

from poseidon.schedule.action import Action
from poseidon.schedule.schedule import Shape
from poseidon.schedule.split_schedule import SplitSchedule
from poseidon.schedule.steps import Steps


class ZBV(SplitSchedule):
    """PyTorch's ``ZBVZeroBubble`` (arXiv 2405.15362, section 4.3; 2401.10241, section 6).

    No bubble where forward, input part and weight part take equally long and transfers nothing; memory as 1F1B.
    """

    name = "zbv"
    summary = "zero bubble in a V: 2 chunks per stage, memory as 1F1B"
    placement = "v"

    def _refusal(self, shape: Shape) -> str | None:
        return refuse_unless_v(self.name, shape)

    def _operations(self, shape: Shape, stage: int) -> tuple[Action, ...]:
        # With fewer micro-batches than fill the V the order is that of a full one without the operations of the others.
        num_micro_batches = max(2 * shape.num_stages - 1, shape.num_micro_batches)
        to_end = shape.num_stages - stage
        steps = Steps()
        steps.run("F0", 2 * to_end - 1)
        steps.run("F1 F0", stage)
        steps.run("F1 I1 W1", to_end)
        steps.run("F0 I0 W0 F1 I1 W1", num_micro_batches - steps.num_forwards(0))
        steps.run("I0 W0 F1 I1 W1", num_micro_batches - steps.num_forwards(1))
        steps.run("I0 I1", stage)
        steps.run("I0 W0", to_end)
        steps.run("W1", stage)
        steps.run("W0", stage)
        return tuple(action for action in steps.actions if action.microbatch < shape.num_micro_batches)


def refuse_unless_v(name: str, shape: Shape) -> str | None:
    """Why a shape cannot be run as two chunks in a V; None if it can."""
    if shape.depths:
        return f"{name} takes no depths: they belong to adaptive_1f1b"
    if shape.num_chunks != 2:
        return f"{name} runs each stage as two chunks in a V: num_chunks must be 2, not {shape.num_chunks}"
    return None
