"""Searches over outer choices: the one entry of this room."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from poseidon.cost.problem import Problem
from poseidon.search.backend import Backend, InProcess
from poseidon.search.exact_policy import exact_search
from poseidon.search.journal import Journal
from poseidon.search.options import SearchOptions
from poseidon.search.policies import policy_of
from poseidon.search.result import SearchResult, TerminationReason
from poseidon.search.run import Run
from poseidon.search.shard import Context
from poseidon.search.warm_start import EarlierPlan
from poseidon.search.watch import Progress, Watch


def solve(
    problems: Iterable[Problem],
    options: SearchOptions | None = None,
    report: Callable[[Progress], None] | None = None,
    start: EarlierPlan | None = None,
    backend: Backend | None = None,
    journal: Path | None = None,
    *,
    resume: bool = False,
) -> SearchResult:
    """Finds the fastest configuration over all problems, with a proven bound.

    `problems` are outer choices of one experiment (names must differ); `report` is called with the progress a few times
    a second, `start` an earlier plan to begin from (policy exact). `backend` is where to search (default: in this
    process). A search that is not over when it stops leaves its progress in the file `journal`, from which another one
    goes on with `resume`. Ctrl-C ends the search with the best plan so far.

    Raises ValueError for a problem whose schedule refuses its shape, InputError for a journal that does not fit.
    """
    options = options or SearchOptions()
    watch = Watch(options.time_limit_s, report)
    context = Context(tuple(problems), options)
    kept = None if journal is None else Journal(journal, context, resume=resume)
    run = Run(context, backend or InProcess(), watch, kept)
    result = None
    try:
        policy = policy_of(options)
        result = exact_search(run, start) if policy is exact_search else policy(run)
    finally:
        if kept is not None:
            kept.close(is_over=result is not None and result.termination in OVER)
    return result


OVER = (TerminationReason.COMPLETE, TerminationReason.GAP, TerminationReason.NODE_LIMIT, TerminationReason.TOO_LARGE)
"""Nothing is left that going on could do."""
