"""What faster links, one more node or a faster accelerator would give: a new search for each."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from poseidon.errors import InputError
from poseidon.inputs.experiment import ANALYTIC, Experiment, experiment_from_resolved
from poseidon.output.plan_view import shape_line
from poseidon.plan.plan import NoPlan, Pipeline, Plan
from poseidon.planner import find_plan
from poseidon.profile.file import read_profile, write_profile
from poseidon.report.changes import Change, changed, changes_of
from poseidon.report.measured_change import changed_profile
from poseidon.search.options import RIVALS
from poseidon.search.result import SolutionStatus, TerminationReason

DEFAULT_TIME_LIMIT_S = 5.0
"""Of one search. The shipped settings take less than a second each; a report should take no minutes."""

Announce = Callable[[int, int, str], None]
"""Is told which search begins: number, how many there are, what it is for."""


@dataclass(frozen=True)
class Answer:
    """What the search after one change found."""

    change: Change
    status: str
    """As in a plan; ``infeasible`` or ``unknown`` without one, ``refused`` where the change can't be made."""
    pipeline: Pipeline | None
    gap: float | None
    reason: str
    """Why there is no plan."""
    seconds: float

    @property
    def iteration_time_ms(self) -> float | None:
        """Of the plan, if there is one."""
        return None if self.pipeline is None else self.pipeline.iteration_time_ms

    @property
    def tokens_per_second(self) -> float | None:
        """Of the plan, if there is one."""
        return None if self.pipeline is None else self.pipeline.tokens_per_second

    @property
    def found(self) -> str:
        """The plan in one line, or why there is none."""
        return self.reason if self.pipeline is None else shape_line(self.pipeline)

    def gain(self, base_tokens_per_second: float) -> float | None:
        """Throughput over what it is now, minus 1; None without a plan."""
        return None if self.tokens_per_second is None else self.tokens_per_second / base_tokens_per_second - 1


@dataclass(frozen=True)
class Sensitivity:
    """The answers, and what they are compared with.

    `base_is_plan` tells whether that is the plan itself; otherwise it is a search like the others without any change,
    as a plan that is not proven could also get better by searching on.
    """

    answers: tuple[Answer, ...]
    base_iteration_time_ms: float
    base_tokens_per_second: float
    base_is_plan: bool
    time_limit_s: float
    interrupted: bool = False
    """Ctrl-C came: the answers after it are missing."""


def find_sensitivity(plan: Plan, time_limit_s: float, announce: Announce) -> Sensitivity:
    """Searches once for each change; InputError where the plan's own inputs can't be searched any more.

    Every search begins from the plan, so that what can only make it faster never looks slower. Ctrl-C ends them all.
    """
    changes = changes_of(plan.experiment)
    searches_base = needs_base_search(plan)
    total = len(changes) + searches_base
    base, interrupted = plan, False
    answers: list[Answer] = []
    try:
        if searches_base:
            announce(1, total, "the plan's own cluster, searched again")
            base = _searched_again(plan, time_limit_s)
        for number, change in enumerate(changes, start=1 + searches_base):
            announce(number, total, change.label)
            answers.append(_answer(plan, change, time_limit_s))
    except KeyboardInterrupt:
        interrupted = True
    return Sensitivity(
        tuple(answers),
        base.pipeline.iteration_time_ms,
        base.pipeline.tokens_per_second,
        base_is_plan=base is plan,
        time_limit_s=time_limit_s,
        interrupted=interrupted,
    )


def needs_base_search(plan: Plan) -> bool:
    """Whether the exact search could find a better plan than this one without any change."""
    search = plan.experiment.search
    proven = plan.status is SolutionStatus.OPTIMAL and search.cost_model == "dag"
    return not proven or search.policy in RIVALS


def _settings(time_limit_s: float) -> dict[str, Any]:
    """Search settings of all searches: exact, and short."""
    return {"policy": "exact", "cost_model": "dag", "top": 1, "time_limit_s": time_limit_s}


def _searched_again(plan: Plan, time_limit_s: float) -> Plan:
    """The exact search of the plan's own experiment, which begins from it."""
    data = plan.experiment.resolved()
    data["search"] |= _settings(time_limit_s)
    found = _search(experiment_from_resolved(data), plan)
    return found if isinstance(found, Plan) else plan


def _answer(plan: Plan, change: Change, time_limit_s: float) -> Answer:
    started = time.perf_counter()
    try:
        with _experiment(plan.experiment, change, _settings(time_limit_s)) as experiment:
            found = _search(experiment, plan)
    except InputError as error:
        # Without the file: the change is in none.
        reason = str(replace(error.mistakes[0], file=""))
        return Answer(change, "refused", None, None, reason, time.perf_counter() - started)
    seconds = time.perf_counter() - started
    if isinstance(found, NoPlan):
        return Answer(change, str(found.status), None, None, found.reason, seconds)
    return Answer(change, str(found.status), found.pipeline, found.gap, "", seconds)


def _search(experiment: Experiment, plan: Plan) -> Plan | NoPlan:
    """The answer of a search that begins from the plan; KeyboardInterrupt where Ctrl-C ended it."""
    found = find_plan(experiment, start=plan)
    if found.search.termination is TerminationReason.INTERRUPTED:
        raise KeyboardInterrupt
    return found


@contextmanager
def _experiment(experiment: Experiment, change: Change, settings: Mapping[str, Any]) -> Iterator[Experiment]:
    """The experiment after a change; a profile file is changed in a copy that exists for as long as it is used."""
    data = changed(experiment, change, settings)
    if experiment.profile == ANALYTIC or change.kind == "node":
        yield experiment_from_resolved(data, change.label)
        return
    profile = read_profile(experiment.profile, experiment.training.recompute_modes[0])
    with tempfile.TemporaryDirectory(prefix="poseidon-report-") as directory:
        copy = Path(directory) / "profile.json"
        write_profile(changed_profile(profile, change), copy)
        yield experiment_from_resolved({**data, "profile": str(copy)}, change.label)
