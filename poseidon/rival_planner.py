"""From an experiment to the plan of another planner (policies `metis` and `hexiscale`)."""

from __future__ import annotations

import time
from collections.abc import Callable

from poseidon.cost import ProblemBuilder
from poseidon.cost.outer import recompute_modes
from poseidon.errors import InputError, Mistake
from poseidon.inputs import Experiment
from poseidon.plan import NoPlan, Plan, SearchSummary, assured, build_plan
from poseidon.profile import load_profile
from poseidon.search.result import SearchResult, SolutionStatus
from poseidon.search.rivals import RIVAL_SEARCHES, RivalTask
from poseidon.search.watch import Progress, Watch


def rival_plan(experiment: Experiment, report: Callable[[Progress], None] | None = None) -> Plan | NoPlan:
    """The plan that the policy of `experiment.search` chooses, checked like any other; it proves nothing.

    The rival takes its stages from the cluster itself, so `search.tp` becomes per-stage in the plan's inputs. Raises
    InputError where the profile can't be used or the experiment asks for what the policy does not plan.
    """
    search = experiment.search
    if search.cost_model != "dag":
        message = f"{search.cost_model} is for the policy exact, not for {search.policy}"
        raise InputError(Mistake(next(iter(experiment.files), experiment.name), "search.cost_model", message))
    started = time.perf_counter()
    if search.target is None:
        experiment = experiment.model_copy(update={"search": search.model_copy(update={"tp": "per-stage"})})
    profile = load_profile(experiment, recompute=recompute_modes(experiment))
    answer = RIVAL_SEARCHES[search.policy](RivalTask(experiment, profile, Watch(search.time_limit_s, report)))
    summary = _summary(search.policy, answer.result, time.perf_counter() - started)
    if not answer.result.solutions:
        return NoPlan(answer.result.status, _reason(search.policy, answer.result), summary)
    return assured(build_plan(ProblemBuilder(experiment, profile), answer.choices, answer.result, summary))


def _summary(policy: str, result: SearchResult, seconds: float) -> SearchSummary:
    return SearchSummary(
        policy=policy,
        termination=result.termination,
        seconds=seconds,
        outer_choices=result.num_problems,
        nodes=result.counters.search_nodes,
        simulations=result.counters.simulations,
        pruned={},
        workers=1,
        backend="in-process",
        warnings=result.warnings,
        curve=result.curve,
    )


def _reason(policy: str, result: SearchResult) -> str:
    if result.status is SolutionStatus.UNKNOWN:
        return f"stopped ({result.termination}) after {result.seconds:.1f} s, before any plan was found"
    return (
        f"policy {policy} comes upon no plan that fits, among {result.num_problems:,} that it looks at; "
        "the policy exact looks at all of its own space and says what binds"
    )
