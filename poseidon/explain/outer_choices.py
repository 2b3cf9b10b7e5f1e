"""What a fresh search of a plan's inputs says of every outer choice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from poseidon.cost import OuterChoice, ProblemBuilder, Refusal, Shortfall, costs, outer_choices
from poseidon.cost.outer import recompute_modes
from poseidon.cost.problem import Problem
from poseidon.cost.shortfall import choice_shortfall
from poseidon.inputs import Experiment
from poseidon.plan import Pipeline, Plan
from poseidon.plan.time_breakdown import TimeBreakdown, pipeline_breakdown
from poseidon.planner import find_plan
from poseidon.profile import load_profile
from poseidon.search.exact import bound
from poseidon.search.result import TerminationReason


@dataclass(frozen=True)
class Weighed:
    """What is known of one outer choice: its best plan, or a time that none of its plans beats, or why it has none."""

    name: str
    num_stages: int
    bound_ms: float
    """No plan of it is faster; infinite where it has none."""
    pipeline: Pipeline | None = None
    """Its best plan, where the search worked it out."""
    time: TimeBreakdown | None = None
    """Of the pipeline."""
    shortfall: Shortfall | None = None
    """What it is short of, where memory is why it has no plan."""

    @property
    def fits(self) -> bool:
        """Whether it may have a plan."""
        return math.isfinite(self.bound_ms)

    @property
    def least_ms(self) -> float:
        """The time of its plan, or the bound."""
        return self.bound_ms if self.pipeline is None else self.pipeline.iteration_time_ms


@dataclass(frozen=True)
class Survey:
    """All outer choices of an experiment, the fastest first."""

    weighed: tuple[Weighed, ...]
    refusals: tuple[Refusal, ...]
    """Candidates that the model, the nodes, the batch or the schedule rule out before any search."""
    is_complete: bool
    """Whether the plans are proven to be the best of their outer choices."""
    seconds: float


def survey(experiment: Experiment, top: int | None, time_limit_s: float | None) -> Survey:
    """Searches an experiment afresh for the best plans of its `top` best outer choices (None: of all).

    The policy is `exact` whatever the experiment says. Raises InputError as `find_plan`.
    """
    profile = load_profile(experiment, recompute=recompute_modes(experiment))
    choices = list(costs(experiment, profile))
    count = max(1, len(choices) if top is None else min(top, len(choices)))
    plan = find_plan(exact(experiment, count, time_limit_s))
    complete = plan.search.termination is TerminationReason.COMPLETE
    found: Mapping[str, Pipeline] = {}
    slowest_ms = 0.0
    if isinstance(plan, Plan):
        pipelines = (plan.pipeline, *plan.alternatives)
        found = {pipeline.outer_choice: pipeline for pipeline in pipelines}
        slowest_ms = pipelines[-1].iteration_time_ms if complete else plan.lower_bound_ms
    # A complete search leaves no plan faster than those that it reports.
    exhausted = complete and len(found) < count
    builder = ProblemBuilder(experiment, profile)
    weighed = [_weighed(builder, *item, found, math.inf if exhausted else slowest_ms) for item in choices]
    ordered = tuple(sorted(weighed, key=lambda item: (item.least_ms, item.name)))
    return Survey(ordered, outer_choices(experiment).refusals, complete, plan.search.seconds)


def exact(experiment: Experiment, top: int, time_limit_s: float | None) -> Experiment:
    """The experiment, to be searched by the policy `exact` for its `top` best plans."""
    updates = {"policy": "exact", "cost_model": "dag", "gap": 0.0, "top": min(top, 1000), "time_limit_s": time_limit_s}
    return experiment.model_copy(update={"search": experiment.search.model_copy(update=updates)})


def _weighed(
    builder: ProblemBuilder,
    choice: OuterChoice,
    problem: Problem,
    found: Mapping[str, Pipeline],
    slowest_ms: float,
) -> Weighed:
    pipeline = found.get(choice.name)
    if pipeline is not None:
        time_ms = pipeline.iteration_time_ms
        return Weighed(choice.name, choice.num_stages, time_ms, pipeline, pipeline_breakdown(pipeline))
    bound_ms = max(bound(problem).bound_ms, slowest_ms)
    shortfall = None if math.isfinite(bound_ms) else choice_shortfall(builder, choice, problem)
    return Weighed(choice.name, choice.num_stages, bound_ms, shortfall=shortfall)


def refusal_reasons(refusals: tuple[Refusal, ...]) -> Iterator[tuple[str, int]]:
    """Each reason with how many candidates it ruled out, the most frequent first."""
    counts: dict[str, int] = {}
    for refusal in refusals:
        counts[refusal.reason] = counts.get(refusal.reason, 0) + 1
    yield from sorted(counts.items(), key=lambda item: (-item[1], item[0]))
