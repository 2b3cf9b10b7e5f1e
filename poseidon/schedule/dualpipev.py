"""DualPipeV: a V whose forwards of one chunk alternate with backwards of the other."""

from __future__ import annotations

from poseidon.schedule.action import Action
from poseidon.schedule.schedule import Shape
from poseidon.schedule.split_schedule import SplitSchedule
from poseidon.schedule.steps import Steps
from poseidon.schedule.zbv import refuse_unless_v


class DualPipeV(SplitSchedule):
    """PyTorch's ``DualPipeV`` (DualPipe, arXiv 2412.19437, folded into a V).

    Its pairs of a forward and a backward that a device may run as one overlapped operation stand here one after the
    other, forward first, as PyTorch's own runtime runs them: what overlapping saves is for the times to say.
    """

    name = "dualpipev"
    summary = "DualPipe in a V: 2 chunks per stage, forwards beside backwards; M must be at least 2 N"
    placement = "v"

    def _refusal(self, shape: Shape) -> str | None:
        least = 2 * shape.num_stages
        if (reason := refuse_unless_v(self.name, shape)) is None and shape.num_micro_batches < least:
            return (
                f"{self.name} needs as many micro-batches as chunks of all stages: "
                f"num_micro_batches must be at least {least}, not {shape.num_micro_batches}"
            )
        return reason

    def _operations(self, shape: Shape, stage: int) -> tuple[Action, ...]:
        to_last = shape.num_stages - 1 - stage
        steps = Steps()
        steps.run("F0", 2 * to_last)
        steps.run("F0 F1", stage + 1)
        steps.run("I1 W F1", to_last)
        steps.run("F0 B1 F1 B0", shape.num_micro_batches - 2 * shape.num_stages + stage + 1)
        steps.run("B1 F1 B0", to_last)
        self._end(steps, stage, to_last)
        return tuple(steps.actions)

    @staticmethod
    def _end(steps: Steps, stage: int, to_last: int) -> None:
        """The backwards of the end, of which the second half is split so that weight parts fill the last bubbles."""
        num_backwards = 2 * (stage + 1)
        num_whole = stage + 1
        for place in range(num_backwards):
            steps.run(("B" if place < num_whole else "I") + ("1" if place % 2 == 0 else "0"))
        steps.run("W I0", to_last)
        steps.run("W", stage + 1)
