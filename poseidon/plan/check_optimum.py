"""Whether there is a better plan: an independent lower bound, then plain enumeration of what it leaves open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from poseidon.cost.costs import costs
from poseidon.cost.outer import recompute_modes
from poseidon.cost.problem import Problem
from poseidon.errors import InputError
from poseidon.plan.check_bound import lower_bound
from poseidon.plan.check_graph import SpaceGraph, Steps
from poseidon.plan.check_trial import Trial
from poseidon.plan.finding import Finding, Verdict
from poseidon.plan.plan import Plan
from poseidon.profile import load_profile
from poseidon.search.result import SolutionStatus

NAME = "lower bound"
OPTIMAL = 1e-9
"""A bound within this fraction of the time proves a plan optimal (contract)."""


@dataclass(frozen=True)
class Effort:
    """How much work the search for a better plan may be."""

    everything_steps: int = 20_000
    """Partial configurations that are looked at to try everything, without any bound."""
    everything_operations: int = 1_000_000
    """Operations that are replayed for it, about a microsecond each."""
    steps: int = 500_000
    """Steps of the bound's dynamic programs, and partial configurations that it leaves; some ten microseconds each."""
    operations: int = 10_000_000
    """Operations that are replayed in all, about a microsecond each."""


def check_bound(plan: Plan) -> Finding:
    """The lower bound, the gap and the status say the same."""
    time_ms, bound_ms = plan.pipeline.iteration_time_ms, plan.lower_bound_ms
    proven = bound_ms >= (1 - OPTIMAL) * time_ms
    gap = 0.0 if proven else (time_ms - bound_ms) / time_ms
    if bound_ms > time_ms:
        detail = f"the lower bound {bound_ms:.3f} ms is more than the iteration time {time_ms:.3f} ms"
    elif (plan.status is SolutionStatus.OPTIMAL) != proven:
        detail = f"the status is {plan.status}, but the lower bound is {100 * bound_ms / time_ms:.4f} % of the time"
    elif not math.isclose(gap, plan.gap, rel_tol=1e-6, abs_tol=1e-12):
        detail = f"the gap is {plan.gap:.3g}, worked out {gap:.3g}"
    else:
        return Finding("status", Verdict.RIGHT, f"{plan.status}: gap {100 * gap:.3g} %, as time and lower bound say")
    return Finding("status", Verdict.WRONG, detail)


def check_optimum(plan: Plan, effort: Effort) -> Finding:
    """No pipeline of any outer choice is faster than the plan's lower bound.

    A choice is ruled out by the lower bound of `check_bound`, or by trying all of its configurations. What neither can
    do within the effort is said.
    """
    if not plan.lower_bound_ms:
        return Finding(NAME, Verdict.RIGHT, "none is claimed: the plan may not be the fastest")
    if plan.pipeline.is_given:
        return Finding(NAME, Verdict.WRONG, "stages given one by one are in no space that a bound could hold for")
    claim_ms = plan.lower_bound_ms * (1 - OPTIMAL)
    try:
        profile = load_profile(plan.experiment, recompute=recompute_modes(plan.experiment))
        problems = [problem for _, problem in costs(plan.experiment, profile)]
    except InputError as error:
        return Finding(NAME, Verdict.NOT_CHECKED, str(error).splitlines()[0])
    return _searched(plan, problems, claim_ms, effort)


def _searched(plan: Plan, problems: Sequence[Problem], claim_ms: float, effort: Effort) -> Finding:
    trial = Trial(Steps(effort.everything_steps), effort.everything_operations)
    if better := _faster(trial, problems, claim_ms, everything=True):
        return _refuted(plan, better)
    if not trial.is_over:
        detail = f"no faster plan among all {trial.tried:,} configurations of {len(problems)} outer choices"
        return Finding(NAME, Verdict.RIGHT, detail)
    steps = Steps(effort.steps)
    bounds = {problem.name: lower_bound(SpaceGraph(problem, steps), claim_ms, steps) for problem in problems}
    still_open = [problem for problem in problems if bounds[problem.name] < claim_ms]
    still_open.sort(key=lambda problem: bounds[problem.name])
    trial = Trial(steps, effort.operations)
    if better := _faster(trial, still_open, claim_ms):
        return _refuted(plan, better)
    ruled_out = f"{len(problems) - len(still_open)} of {len(problems)} outer choices"
    if not trial.is_over:
        rest = f", the rest by trying what it leaves ({trial.tried:,} configurations)" if still_open else ""
        return Finding(NAME, Verdict.RIGHT, f"no faster plan: {ruled_out} ruled out by an independent bound{rest}")
    shown = min(bounds.values()) / plan.pipeline.iteration_time_ms
    reach = f" and shows that no plan takes less than {100 * shown:.2f} % of this one's time" if shown > 0 else ""
    detail = (
        f"too much to try all; an independent bound rules out {ruled_out}{reach}; the rest is the search's own proof"
    )
    return Finding(NAME, Verdict.NOT_CHECKED, detail)


def _faster(
    trial: Trial, problems: Sequence[Problem], claim_ms: float, *, everything: bool = False
) -> tuple[str, float] | None:
    """The first outer choice with a faster configuration, and its time."""
    for problem in problems:
        found = trial.faster_than(problem, claim_ms, everything=everything)
        if found is not None:
            return problem.name, found
        if trial.is_over:
            break
    return None


def _refuted(plan: Plan, better: tuple[str, float]) -> Finding:
    name, time_ms = better
    detail = f"{name} has a configuration of {time_ms:.3f} ms, below the lower bound {plan.lower_bound_ms:.3f} ms"
    return Finding(NAME, Verdict.WRONG, detail)
