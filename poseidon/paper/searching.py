"""One search of a study: as anywhere, but Ctrl-C ends the study instead of the search alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from poseidon.cost.problem import Problem
from poseidon.inputs.experiment import Experiment
from poseidon.plan.plan import NoPlan, Plan
from poseidon.planner import find_plan
from poseidon.search.backend import Backend
from poseidon.search.options import SearchOptions
from poseidon.search.result import SearchResult, TerminationReason
from poseidon.search.solve import solve


def searched(
    problems: Sequence[Problem],
    options: SearchOptions,
    backend: Backend | None = None,
    journal: Path | None = None,
) -> SearchResult:
    """The result over all problems, going on from a journal that is there; raises KeyboardInterrupt after Ctrl-C."""
    result = solve(problems, options, backend=backend, journal=journal, resume=True)
    _give_on(result.termination)
    return result


def planned(experiment: Experiment, backend: Backend | None = None) -> Plan | NoPlan:
    """The best plan of an experiment, or why there is none. Raises KeyboardInterrupt after Ctrl-C."""
    answer = find_plan(experiment, backend=backend)
    _give_on(answer.search.termination)
    return answer


def _give_on(termination: TerminationReason) -> None:
    if termination is TerminationReason.INTERRUPTED:
        raise KeyboardInterrupt
