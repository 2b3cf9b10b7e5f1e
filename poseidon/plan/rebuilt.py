"""The costs of a plan's outer choice, worked out anew from its inputs."""

from __future__ import annotations

from dataclasses import dataclass

from poseidon.cost.build import ProblemBuilder
from poseidon.cost.given_stages import GivenStage, given_pipeline
from poseidon.cost.outer import OuterChoice, outer_choices, recompute_modes
from poseidon.cost.part_rows import require_rows
from poseidon.cost.placement import alike_nodes
from poseidon.cost.problem import Problem
from poseidon.errors import InputError, Mistake
from poseidon.inputs.experiment import Experiment
from poseidon.plan.plan import Pipeline
from poseidon.profile import Profile, load_profile


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
    if pipeline.is_given:
        return _rebuild_given(experiment, profile, pipeline)
    choice = next((item for item in outer_choices(experiment).choices if item.name == pipeline.outer_choice), None)
    if choice is None:
        raise _unknown(pipeline)
    names = [placement.name for placement in choice.layout.placements]
    if unknown := [stage.kind for stage in pipeline.stages if stage.kind not in names]:
        raise InputError(Mistake("", "kind", f"{unknown[0]!r} is none of {', '.join(names)}"))
    kinds = tuple(names.index(stage.kind) for stage in pipeline.stages)
    require_rows(profile, experiment, [choice])
    builder = ProblemBuilder(experiment, profile)
    return Rebuilt(builder, choice, builder.build(choice), kinds)


def _unknown(pipeline: Pipeline) -> InputError:
    message = f"{pipeline.outer_choice!r} is not an outer choice of the experiment"
    return InputError(Mistake("", "outer_choice", message))


def _rebuild_given(experiment: Experiment, profile: Profile, pipeline: Pipeline) -> Rebuilt:
    """The choice that the stages themselves make: their nodes, DP and TP."""
    pools = alike_nodes(experiment.cluster)
    schedules = [name for name in experiment.training.schedules if name == pipeline.schedule]
    modes = [mode for mode in recompute_modes(experiment) if mode == pipeline.recompute]
    if not schedules or not modes:
        raise _unknown(pipeline)
    stages = []
    for stage in pipeline.stages:
        owner = next((pool for pool in pools if set(stage.nodes) <= set(pool.nodes)), None)
        if owner is None:
            raise InputError(Mistake("", "nodes", f"{list(stage.nodes)} are not nodes that are alike"))
        stages.append(GivenStage(owner, stage.dp, stage.tp))
    given = given_pipeline(experiment, pools, stages, pipeline.num_micro_batches, schedules[0], modes[0])
    if isinstance(given, str):
        raise InputError(Mistake("", "stages", given))
    if given.choice.name != pipeline.outer_choice:
        raise _unknown(pipeline)
    names = [placement.name for placement in given.choice.layout.placements]
    if [stage.kind for stage in pipeline.stages] != [names[kind] for kind in given.kinds]:
        raise InputError(Mistake("", "kind", f"the stages are of the kinds {', '.join(names)}"))
    require_rows(profile, experiment, [given.choice])
    builder = ProblemBuilder(experiment, profile)
    return Rebuilt(builder, given.choice, builder.build(given.choice), given.kinds)
