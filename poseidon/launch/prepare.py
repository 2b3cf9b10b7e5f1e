"""From a launcher's call to the same call under a plan: what `poseidon launch` does before it starts anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from poseidon.launch.apply import Applied, applied
from poseidon.launch.choices import Choices
from poseidon.launch.find import Origin, plan_for
from poseidon.launch.framework import Framework
from poseidon.launch.launcher import LauncherCall
from poseidon.plan.plan import NoPlan, Plan
from poseidon.search.watch import Progress


@dataclass(frozen=True)
class Prepared:
    """A call that is ready to run."""

    framework: Framework
    plan: Plan
    origin: Origin
    applied: Applied
    notes: tuple[str, ...]


def prepared(
    call: LauncherCall, choices: Choices, report: Callable[[Progress], None] | None = None
) -> Prepared | NoPlan:
    """Plans for a call and applies the plan, or says why there is none; InputError for what can't be planned."""
    found = plan_for(call, choices, report)
    if isinstance(found.plan, NoPlan):
        return found.plan
    result = applied(found.plan, found.file, found.job, call, choices)
    notes = (*found.notes, *found.job.notes, *result.notes)
    return Prepared(found.job.framework, found.plan, found.origin, result, notes)
