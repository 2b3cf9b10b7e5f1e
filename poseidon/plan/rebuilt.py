"""The costs of a plan's outer choice, worked out anew from its inputs."""

from __future__ import annotations

from dataclasses import dataclass

from poseidon.cost.build import ProblemBuilder
from poseidon.cost.costs import costs
from poseidon.cost.outer import OuterChoice, recompute_modes
from poseidon.cost.problem import Problem
from poseidon.errors import InputError, Mistake
from poseidon.inputs.experiment import Experiment
from poseidon.plan.plan import Pipeline
from poseidon.profile import load_profile


@dataclass(frozen=True)
class Rebuilt:
    """An outer choice with its problem, and for each stage of the pipeline its kind."""

    builder: ProblemBuilder
    choice: OuterChoice
    problem: Problem
    kinds: tuple[int, ...]


def rebuild(experiment: Experiment, pipeline: Pipeline) -> Rebuilt:
    """Raises InputError when the profile can't be read any more, or the experiment has no such outer choice or kind."""
    profile = load_profile(experiment, recompute=recompute_modes(experiment))
    for choice, problem in costs(experiment, profile):
        if choice.name == pipeline.outer_choice:
            names = [kind.name for kind in problem.kinds]
            if unknown := [stage.kind for stage in pipeline.stages if stage.kind not in names]:
                raise InputError(Mistake("", "kind", f"{unknown[0]!r} is none of {', '.join(names)}"))
            kinds = tuple(names.index(stage.kind) for stage in pipeline.stages)
            return Rebuilt(ProblemBuilder(experiment, profile), choice, problem, kinds)
    message = f"{pipeline.outer_choice!r} is not an outer choice of the experiment"
    raise InputError(Mistake("", "outer_choice", message))
