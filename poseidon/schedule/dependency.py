"""What an operation waits for besides its own stage: the rule that turns an order into a graph."""

from __future__ import annotations

from typing import NamedTuple

from poseidon.schedule.action import Action
from poseidon.schedule.order import Order


class Place(NamedTuple):
    """One operation of one stage."""

    stage: int
    action: Action

    def __str__(self) -> str:
        """For messages: ``B0 on stage 1`` (with the chunk where it is not 0)."""
        return f"{self.action.operation()} on stage {self.stage}"


def waits_for(order: Order, stage: int, action: Action) -> tuple[Place, ...]:
    """The operations of which one must have run before `action` can run on `stage`; () if it needs nothing.

    F waits for the forward of the virtual stage before, B and I for the gradient (B or I) of the virtual stage after,
    on the last virtual stage for their own forward, W for its own I.
    """
    microbatch, virtual = action.microbatch, order.virtual_stage(stage, action.chunk)
    if action.kind == "W":
        return (Place(stage, Action("I", microbatch, action.chunk)),)
    if action.kind == "F":
        if virtual == 0:
            return ()
        sender, chunk = order.place_of(virtual - 1)
        return (Place(sender, Action("F", microbatch, chunk)),)
    if virtual == order.num_virtual_stages - 1:
        return (Place(stage, Action("F", microbatch, action.chunk)),)
    sender, chunk = order.place_of(virtual + 1)
    return Place(sender, Action("B", microbatch, chunk)), Place(sender, Action("I", microbatch, chunk))
