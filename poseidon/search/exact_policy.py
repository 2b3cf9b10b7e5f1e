"""The policy `exact`: finds the fastest plan of all outer choices and proves it."""

from __future__ import annotations

import math

from poseidon.search.driver import Driver
from poseidon.search.failures import failure_warnings
from poseidon.search.result import SearchResult, SolutionStatus, TerminationReason, status_of
from poseidon.search.run import Run
from poseidon.search.shard import Action, Found
from poseidon.search.tolerance import is_optimal, proven_bound, tie_cutoff
from poseidon.search.warm_start import EarlierPlan, starting_solutions

MOST_STARTS = 16
"""Outer choices, the most promising first, to which an earlier plan is fitted."""


def exact_search(run: Run, start: EarlierPlan | None = None) -> SearchResult:
    """Searches in two passes: every promising outer choice is opened (tables, first plans), then those still open are
    searched. At the end one plan is chosen among those that are equally fast, the same on every backend.

    Raises ValueError for a problem whose schedule refuses its shape.
    """
    context = run.context
    indices = range(len(context.problems))
    driver = Driver(run, [context.bounded(index).bound_ms for index in indices])
    samples = context.options.warmup_samples
    for index in sorted(indices, key=lambda index: (driver.choices[index].bound_ms, driver.choices[index].name)):
        driver.add(index, Action.OPEN, samples)
        samples = 0
    if start is not None:
        _begin_from(start, driver)
    try:
        driver.run()
        result = _result(driver)
        if result.status is SolutionStatus.OPTIMAL and context.options.gap == 0:
            result = _chosen(driver, result)
    finally:
        driver.end()
    return result


def _begin_from(start: EarlierPlan, driver: Driver) -> None:
    """Offers the configurations that follow an earlier plan."""
    choices = sorted(driver.choices, key=lambda choice: (choice.bound_ms, choice.name))
    promising = [driver.context.problems[choice.index] for choice in choices if math.isfinite(choice.bound_ms)]
    own = [problem for problem in promising if problem.name == start.problem]
    for solution in starting_solutions([*own, *promising[:MOST_STARTS]], start):
        driver.found(Found.of(solution, driver.index_of[solution.name]))
        driver.counters.simulations += 1


def _chosen(driver: Driver, proven: SearchResult) -> SearchResult:
    """The same result with one plan in the place of each that may be one of several equally fast ones.

    Which of them a search finds first depends on what it knew at the time. The plan that is reported is the first, in
    the declared order of one outer choice alone, that is as fast.
    """
    for solution in proven.solutions:
        driver.choose(driver.index_of[solution.name], tie_cutoff(solution.iteration_time_ms))
    driver.run()
    best_ms = driver.incumbents.solutions[0].iteration_time_ms
    return _result(driver, proven, min(proven_bound(best_ms), best_ms))


def _result(driver: Driver, proven: SearchResult | None = None, lower_bound_ms: float | None = None) -> SearchResult:
    if lower_bound_ms is None:
        lower_bound_ms = min(driver.incumbents.best_ms, driver.lower_bound_ms)
    return SearchResult(
        status=status_of(driver.incumbents.best_ms, lower_bound_ms),
        termination=_termination(driver, lower_bound_ms, proven),
        solutions=driver.incumbents.solutions,
        lower_bound_ms=lower_bound_ms,
        seconds=driver.watch.seconds,
        counters=driver.counters,
        num_problems=len(driver.choices),
        warnings=_warnings(driver),
        curve=tuple(driver.incumbents.curve),
        cpu_seconds=driver.cpu_seconds,
    )


def _termination(driver: Driver, lower_bound_ms: float, before: SearchResult | None) -> TerminationReason:
    if driver.watch.stopped is not None:  # a choice that was cut short leaves the plan to chance: not over either
        return driver.watch.stopped
    if before is not None:
        return before.termination
    proven = is_optimal(driver.incumbents.best_ms, lower_bound_ms)
    if any(choice.failed for choice in driver.choices) and not proven:
        return TerminationReason.FAILED
    if any(choice.given_up for choice in driver.choices) and not proven:
        return TerminationReason.TOO_LARGE
    if any(choice.hit_node_limit for choice in driver.choices):
        return TerminationReason.NODE_LIMIT
    if driver.context.options.gap > 0 and not proven:
        return TerminationReason.GAP
    return TerminationReason.COMPLETE


def _warnings(driver: Driver) -> tuple[str, ...]:
    warnings = failure_warnings(driver)
    given_up = [choice.name for choice in driver.choices if choice.given_up]
    if given_up:
        warnings += (
            f"{len(given_up)} outer choices were only bounded, not searched: too many device states "
            f"({given_up[0]}, for one)",
        )
    if any(choice.hit_node_limit for choice in driver.choices) and driver.context.options.node_limit is None:
        warnings += (
            "interleaved outer choices were left at the default limit of search nodes; "
            "a node limit or a time limit of your own lets the search go on",
        )
    if driver.counters.bound_alarms:
        warnings += (
            f"{driver.counters.bound_alarms} search nodes had a worse bound than their parent: please report this",
        )
    return warnings
