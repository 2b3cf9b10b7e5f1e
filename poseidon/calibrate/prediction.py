"""What Poseidon predicts for a training job whose plan is given: its iteration time and the memory of each stage.

The costs are those of the search (`poseidon.cost`), the time is the simulator's: a prediction is what a plan with these
stages would say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from poseidon.calibrate.serial_transfers import with_serial_transfers
from poseidon.cost.build import ProblemBuilder
from poseidon.cost.finished_stage import FinishedStage, finished_memories
from poseidon.cost.memory import StageMemory
from poseidon.cost.outer import OuterChoice, outer_choices
from poseidon.errors import InputError, Mistake
from poseidon.inputs.experiment import Experiment
from poseidon.plan.build import layer_ranges
from poseidon.profile.profile import Profile
from poseidon.search.evaluate import configuration_time, configuration_times, order_graph
from poseidon.search.result import StageChoice
from poseidon.simulate import iteration_time

Transfers = Literal["overlapped", "serial"]
"""Whether messages run beside computation, or the stages stand still for each (`serial_transfers`)."""
StageLayers = tuple[tuple[int, ...], ...]
"""For each stage the number of layers of each of its chunks."""


@dataclass(frozen=True)
class Job:
    """An experiment that leaves nothing to choose but the layers, and the layers of each stage."""

    experiment: Experiment
    choice: OuterChoice
    layers: StageLayers
    transfers: Transfers = "overlapped"

    def iteration_ms(self, profile: Profile) -> float:
        """The iteration time with the times of `profile`; KeyError where it has no row for the job."""
        problem = ProblemBuilder(self.experiment, profile).build(self.choice)
        stages = [StageChoice(0, layers) for layers in self.layers]
        if self.transfers == "overlapped":
            return configuration_time(problem, stages)
        return iteration_time(order_graph(problem), with_serial_transfers(configuration_times(problem, stages)))

    def memories(self, profile: Profile) -> tuple[StageMemory, ...]:
        """The memory of one device of each stage; KeyError where the profile has no row for the job."""
        placement = self.choice.layout.placements[0]
        stages = [FinishedStage(placement, ranges) for ranges in layer_ranges(self.layers)]
        return finished_memories(ProblemBuilder(self.experiment, profile), self.choice, stages)


def job_of(experiment: Experiment, layers: StageLayers | None = None, transfers: Transfers = "overlapped") -> Job:
    """The job of an experiment on alike devices that has exactly one outer choice; `layers` default to an even split.

    Raises InputError where there is no such choice, several, or the layers can't be shared out evenly.
    """
    found = outer_choices(experiment)
    if len(found.choices) != 1 or len(found.choices[0].layout.placements) != 1:
        reason = "; ".join(dict.fromkeys(refusal.reason for refusal in found.refusals)) or "several outer choices"
        raise InputError(Mistake("", experiment.name, f"is not one training job: {reason}"))
    (choice,) = found.choices
    if transfers == "serial" and choice.num_chunks > 1:
        raise InputError(Mistake("", experiment.name, "serial transfers are for schedules without chunks"))
    return Job(experiment, choice, layers or _even_layers(experiment, choice), transfers)


def _even_layers(experiment: Experiment, choice: OuterChoice) -> StageLayers:
    parts = choice.num_stages * choice.num_chunks
    each, left = divmod(experiment.model.num_layers, parts)
    if left:
        message = f"{experiment.model.num_layers} layers can't be shared out evenly over {parts} parts of the pipeline"
        raise InputError(Mistake("", experiment.name, message))
    return ((each,) * choice.num_chunks,) * choice.num_stages
