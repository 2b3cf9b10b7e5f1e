"""Pipelines that are given stage by stage, as the paper prints them, timed like any plan of ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poseidon.cost import ProblemBuilder
from poseidon.cost.given_stages import GivenStage, given_pipeline
from poseidon.cost.outer import recompute_modes
from poseidon.cost.part_rows import require_rows
from poseidon.cost.placement import alike_nodes
from poseidon.inputs.experiment import Experiment
from poseidon.plan.build import build_plan
from poseidon.plan.plan import Plan, SearchSummary
from poseidon.profile import load_profile
from poseidon.search.evaluate import configuration_time
from poseidon.search.result import (
    Counters,
    SearchResult,
    Solution,
    SolutionStatus,
    StageChoice,
    TerminationReason,
)


@dataclass(frozen=True)
class PrintedStage:
    """A stage as Table 1 of the paper has it."""

    dp: int
    tp: int
    accelerator: str
    layers: int


def timed_plan(experiment: Experiment, stages: Sequence[PrintedStage], micro_batch_size: int) -> Plan | str:
    """The plan of these stages with micro-batches of this size (of the first stage's replicas), or why there is none.

    Memory is worked out, but not required to suffice.
    """
    if refusal := _refusal(experiment, stages, micro_batch_size):
        return refusal
    search = experiment.search.model_copy(update={"tp": "per-stage"})
    experiment = experiment.model_copy(update={"search": search})
    pools = alike_nodes(experiment.cluster)
    by_name = {pool.group.accelerator: pool for pool in pools}
    given = [GivenStage(by_name[stage.accelerator], stage.dp, stage.tp) for stage in stages]
    num_micro_batches = experiment.training.global_batch_size // (stages[0].dp * micro_batch_size)
    recompute = recompute_modes(experiment)
    pipeline = given_pipeline(experiment, pools, given, num_micro_batches, "1f1b", recompute[0])
    if isinstance(pipeline, str):
        return pipeline
    profile = load_profile(experiment, recompute=recompute)
    require_rows(profile, experiment, [pipeline.choice])
    builder = ProblemBuilder(experiment, profile)
    problem = builder.build(pipeline.choice)
    choices = tuple(StageChoice(kind, (stage.layers,)) for kind, stage in zip(pipeline.kinds, stages, strict=True))
    solution = Solution(problem, choices, configuration_time(problem, choices))
    result = SearchResult(
        SolutionStatus.FEASIBLE, TerminationReason.COMPLETE, (solution,), 0.0, 0.0, Counters(simulations=1), 1
    )
    return build_plan(builder, {problem.name: pipeline.choice}, result, _no_search())


def _no_search() -> SearchSummary:
    """The stages were given."""
    return SearchSummary("given", TerminationReason.COMPLETE, 0.0, 1, 0, 1, {}, 1, "in-process", (), ())


def _refusal(experiment: Experiment, stages: Sequence[PrintedStage], micro_batch_size: int) -> str:
    """Why an experiment can't have these stages; empty where it can."""
    num_layers = sum(stage.layers for stage in stages)
    if num_layers != experiment.model.num_layers:
        return f"{num_layers} layers are given, the model has {experiment.model.num_layers}"
    pools = alike_nodes(experiment.cluster)
    available = {pool.group.accelerator: pool.num_devices for pool in pools}
    wanted: dict[str, int] = {}
    for stage in stages:
        wanted[stage.accelerator] = wanted.get(stage.accelerator, 0) + stage.dp * stage.tp
    if wanted != available:
        return f"devices {_counts(wanted)} are given, the cluster has {_counts(available)}"
    if experiment.training.global_batch_size % (stages[0].dp * micro_batch_size):
        return f"DP {stages[0].dp} x micro-batches of {micro_batch_size} do not divide the global batch"
    return ""


def _counts(devices: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(devices.items()))
