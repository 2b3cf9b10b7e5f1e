"""Replays an order by unit durations: in which step each operation runs, and which never get to run."""

from __future__ import annotations

from dataclasses import dataclass

from poseidon.schedule.dependency import Place, waits_for
from poseidon.schedule.order import Order


@dataclass(frozen=True)
class Replay:
    """`steps[s][i]` is the step in which stage s runs its i-th operation; the list ends where the stage is stuck."""

    order: Order
    steps: tuple[tuple[int, ...], ...]
    num_steps: int

    @property
    def is_complete(self) -> bool:
        """Whether every operation got to run."""
        return sum(map(len, self.steps)) == self.order.num_operations


def replay(order: Order) -> Replay:
    """Runs each stage's operations in order, one a step, each as soon as what it waits for has run in an earlier step.

    An operation that occurs nowhere in the order is not waited for: its absence is a mistake of its own.
    """
    present = {Place(stage, action) for stage, actions in enumerate(order.stages) for action in actions}
    done: dict[Place, int] = {}
    steps: list[list[int]] = [[] for _ in order.stages]
    step, progressed = 0, True
    while progressed:
        progressed = False
        for stage, actions in enumerate(order.stages):
            position = len(steps[stage])
            if position == len(actions):
                continue
            senders = [place for place in waits_for(order, stage, actions[position]) if place in present]
            if not senders or any(done.get(place, step) < step for place in senders):
                steps[stage].append(step)
                done.setdefault(Place(stage, actions[position]), step)
                progressed = True
        step += progressed
    return Replay(order, tuple(map(tuple, steps)), step)
