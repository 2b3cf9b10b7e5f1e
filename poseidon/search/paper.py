"""The policy `paper`: the search of the Poseidon paper (arXiv 2609.06086, section 4.2), and what its answer proves."""

from __future__ import annotations

import math
from dataclasses import replace

from poseidon.search.enumeration import Enumeration
from poseidon.search.exact_policy import exact_search
from poseidon.search.options import SearchOptions
from poseidon.search.result import SearchResult, SolutionStatus, TerminationReason
from poseidon.search.ridge_assumptions import failing_assumptions
from poseidon.search.run import Run
from poseidon.search.shard import Context
from poseidon.search.tolerance import proven_bound
from poseidon.search.watch import Watch


def paper_search(run: Run) -> SearchResult:
    """Warm-up, enumeration and proof.

    The enumeration is the paper's: every outer choice in turn, stage by stage; a branch is dropped where Eq. 2 exceeds
    the best time so far (`stage_pruning`) or where the layers of one kind rise again after they fell (`layer_pruning`);
    every complete configuration is simulated. Stage pruning loses nothing (Theorem 1). Layer pruning may where the
    assumptions of Theorem 2 fail; for those problems the bound of the exact policy decides whether the plan is optimal.
    `seconds` includes that proof. Raises ValueError for a problem whose schedule refuses its shape.
    """
    enumeration = enumerate_as_paper(run)
    unproven = unproven_problems(enumeration)
    bound_ms = _bound_ms(enumeration, unproven, run)
    seconds = run.watch.seconds
    enumeration.count_cut_configurations()
    result = enumeration.result(bound_ms, seconds)
    if result.best is not None and result.status is SolutionStatus.OPTIMAL:
        # Which problems needed the proof by the exact policy depends on what was pruned first.
        result = replace(result, lower_bound_ms=proven_bound(result.best.iteration_time_ms))
    return replace(result, warnings=result.warnings + _warnings(result, enumeration, unproven))


def enumerate_as_paper(run: Run) -> Enumeration:
    """The paper's search alone: warm-up and enumeration, until done, out of time or interrupted."""
    enumeration = Enumeration(run)
    try:
        enumeration.warm_up(run.context.options.warmup_samples)
        enumeration.run()
    except KeyboardInterrupt:
        run.watch.interrupt()
    return enumeration


def unproven_problems(enumeration: Enumeration) -> dict[int, tuple[str, ...]]:
    """Index of each problem that may hold a faster configuration, with what the proof of Theorem 2 misses there.

    Problems whose enumeration did not end have no reasons.
    """
    unproven: dict[int, tuple[str, ...]] = {}
    for index, space in enumerate(enumeration.spaces):
        if not enumeration.complete[index]:
            unproven[index] = ()
        elif enumeration.has_layer_cuts[index] and (failing := failing_assumptions(space)):
            unproven[index] = failing
    return unproven


def _bound_ms(enumeration: Enumeration, unproven: dict[int, tuple[str, ...]], run: Run) -> float:
    """A time that no configuration of the unproven problems can beat; from the exact policy if there is time."""
    watch = run.watch
    if not unproven:
        return math.inf
    if not enumeration.is_complete or watch.must_stop():
        return min(enumeration.open_bound_ms(index) for index in unproven)
    limit_s = run.context.options.time_limit_s
    left_s = None if limit_s is None else max(limit_s - watch.seconds, 1e-3)
    problems = tuple(run.context.problems[index] for index in unproven)
    context = Context(problems, SearchOptions(time_limit_s=left_s))
    exact = exact_search(Run(context, run.backend, Watch(left_s)))
    if exact.termination is TerminationReason.INTERRUPTED:
        watch.interrupt()
    watch.must_stop()  # notes that the time is up, if it is
    return exact.lower_bound_ms


def _warnings(result: SearchResult, enumeration: Enumeration, unproven: dict[int, tuple[str, ...]]) -> tuple[str, ...]:
    warnings = []
    names = [space.problem.name for space in enumeration.spaces]
    failing = {names[index]: reasons for index, reasons in unproven.items() if reasons}
    if failing and result.status is not SolutionStatus.OPTIMAL:
        best = result.best.problem.name if result.best else ""
        name = best if best in failing else next(iter(failing))
        warnings.append(
            "layer-level pruning is exact only under the assumptions of Theorem 2, which fail in "
            f"{len(failing)} of {len(names)} outer choices; in {name}: {'; '.join(failing[name])}"
        )
    if enumeration.uncounted:
        warnings.append("some outer choices are too large to count the configurations behind their cut branches")
    return tuple(warnings)
