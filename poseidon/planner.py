"""From an experiment to a plan: costs, search, plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from poseidon.cost import ProblemBuilder, costs, memory_shortfall
from poseidon.cost.outer import OuterChoice, recompute_modes
from poseidon.cost.problem import Problem
from poseidon.errors import InputError, Mistake
from poseidon.inputs import Experiment, SearchSettings
from poseidon.plan import NoPlan, Plan, SearchSummary, assured, build_plan
from poseidon.profile import Profile, load_profile
from poseidon.rival_planner import rival_plan
from poseidon.search.backend import Backend
from poseidon.search.options import RIVALS, SearchOptions
from poseidon.search.result import SearchResult, SolutionStatus
from poseidon.search.solve import solve
from poseidon.search.static_policy import static_refusal
from poseidon.search.warm_start import EarlierPlan, EarlierStage
from poseidon.search.watch import Progress

Narrow = Callable[[OuterChoice, Problem], Problem | None]
"""Makes the problem of an outer choice smaller, or drops it (None)."""


def find_plan(
    experiment: Experiment,
    report: Callable[[Progress], None] | None = None,
    start: Plan | None = None,
    backend: Backend | None = None,
    journal: Path | None = None,
    *,
    resume: bool = False,
    narrow: Narrow | None = None,
) -> Plan | NoPlan:
    """The best plan of an experiment, checked (`poseidon.plan.check`), or why there is none.

    `report` is called with the progress a few times a second; `start` is an earlier plan, of this cluster or of one
    much like it, that the search begins from. `backend` is where to search (default: in this process); `journal` is the
    file that keeps the progress of a search that is not over, which another one goes on from with `resume`. `narrow`
    leaves a part of the space to search. Ctrl-C ends the search with the best plan so far. Raises InputError when the
    model, the cluster and the batch allow no outer choice at all, the profile can't be used or the journal is of
    another search.
    """
    if experiment.search.policy in RIVALS:
        return rival_plan(experiment, report)
    started = time.perf_counter()
    profile = load_profile(experiment, recompute=recompute_modes(experiment))
    choices = list(_narrowed(costs(experiment, profile), narrow))
    earlier = None if start is None else earlier_plan(start)
    problems = (problem for _, problem in choices)
    result = solve(problems, search_options(experiment), report, earlier, backend, journal, resume=resume)
    summary = _summary(experiment, result, time.perf_counter() - started, backend)
    if not result.solutions:
        return NoPlan(result.status, _reason(experiment, profile, result), summary)
    named = {choice.name: choice for choice, _ in choices}
    assert len(named) == len(choices), "two outer choices have the same name"
    return assured(build_plan(ProblemBuilder(experiment, profile), named, result, summary))


def _narrowed(
    choices: Iterator[tuple[OuterChoice, Problem]], narrow: Narrow | None
) -> Iterator[tuple[OuterChoice, Problem]]:
    for choice, problem in choices:
        smaller = problem if narrow is None else narrow(choice, problem)
        if smaller is not None:
            yield choice, smaller


def earlier_plan(plan: Plan) -> EarlierPlan:
    """What a warm start needs of a plan."""
    pipeline = plan.pipeline
    stages = tuple(EarlierStage(stage.kind, stage.layers) for stage in pipeline.stages)
    return EarlierPlan(pipeline.outer_choice, stages, pipeline.depths)


def search_options(experiment: Experiment) -> SearchOptions:
    """The options of the search that an experiment asks for; raises InputError for values that the search refuses."""
    settings: SearchSettings = experiment.search
    file = next(iter(experiment.files), experiment.name)
    refusals = [static_refusal(schedule) for schedule in experiment.training.schedules]
    if settings.cost_model == "eq1" and (refusal := next(filter(None, refusals), None)):
        raise InputError(Mistake(file, "search.cost_model", refusal))
    try:
        return SearchOptions(
            policy=settings.policy,
            gap=settings.gap,
            time_limit_s=settings.time_limit_s,
            node_limit=settings.node_limit,
            top=settings.top,
            seed=settings.seed,
            warmup_samples=settings.warmup_samples,
            stage_pruning=settings.stage_pruning,
            layer_pruning=settings.layer_pruning,
            cost_model=settings.cost_model,
        )
    except ValueError as error:
        raise InputError(Mistake(file, "search", str(error))) from None


def _summary(experiment: Experiment, result: SearchResult, seconds: float, backend: Backend | None) -> SearchSummary:
    counters = result.counters
    return SearchSummary(
        policy=experiment.search.policy,
        termination=result.termination,
        seconds=seconds,
        outer_choices=result.num_problems,
        nodes=counters.search_nodes,
        simulations=counters.simulations,
        pruned=dict(counters.pruned),
        workers=1 if backend is None else backend.num_workers,
        backend="in-process" if backend is None else backend.name,
        warnings=result.warnings,
        curve=result.curve,
    )


def _reason(experiment: Experiment, profile: Profile, result: SearchResult) -> str:
    """What binds, or how far the search came."""
    if result.status is SolutionStatus.UNKNOWN:
        return f"stopped ({result.termination}) after {result.seconds:.1f} s, before any plan was found"
    shortfall = memory_shortfall(experiment, profile)
    if shortfall is not None:
        return str(shortfall)
    return (
        "no plan fits: all layers would find room, but in no order of stages that the assignment and the vendors' "
        "communication allow; try search: {assignment: stage} or {allow_idle: true}"
    )
