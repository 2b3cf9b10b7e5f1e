"""The exact search under Eq. 1: finds the plan that the static formula takes for the best, and times it with the DAG.

What this plan takes longer than the plan of the policy `exact` is the price of the cost model alone: the space is the
same and both are searched exactly.
"""

from __future__ import annotations

import math

from poseidon.search.evaluate import configuration_time
from poseidon.search.result import Counters, SearchResult, Solution, TerminationReason, status_of
from poseidon.search.run import Run
from poseidon.search.space import space_of
from poseidon.search.static_optimum import StaticOptimum, StaticSearch


def static_search(run: Run) -> SearchResult:
    """The plan with the least Eq. 1 time; its time and the lower bound are those of the DAG.

    Raises ValueError, one plain sentence, for a schedule that Eq. 1 can't tell apart (`static_refusal`).
    """
    problems = run.context.problems
    for problem in problems:
        if refusal := static_refusal(problem.schedule):
            raise ValueError(refusal)
    counters, too_large = Counters(), 0
    bounds = [run.context.bounded(index).bound_ms for index in range(len(problems))]
    best: tuple[int, StaticOptimum] | None = None
    try:
        for index in sorted(range(len(problems)), key=lambda index: (bounds[index], problems[index].name)):
            if math.isinf(bounds[index]) or run.watch.must_stop():
                continue
            try:
                space = space_of(problems[index])
            except ValueError:
                too_large += 1
                continue
            cutoff_ms = math.inf if best is None else best[1].static_ms
            search = StaticSearch(space, cutoff_ms, run.watch.must_stop)
            found = search.run()
            counters.search_nodes += search.programs
            if found is not None:
                best = (index, found)
    except KeyboardInterrupt:
        run.watch.interrupt()
    return _result(run, best, min(bounds, default=math.inf), counters, too_large)


def static_refusal(schedule: str) -> str | None:
    """Why Eq. 1 can't search a schedule: it knows neither chunks nor the depth of links. None if it can."""
    if schedule not in ("interleaved_1f1b", "adaptive_1f1b"):
        return None
    return f"cost model eq1 knows no chunks and no depths of links: {schedule} can't be searched with it"


def _result(
    run: Run, best: tuple[int, StaticOptimum] | None, bound_ms: float, counters: Counters, too_large: int
) -> SearchResult:
    solutions: tuple[Solution, ...] = ()
    time_ms = math.inf
    if best is not None:
        problem = run.context.problems[best[0]]
        time_ms = configuration_time(problem, best[1].stages)
        counters.simulations += 1
        solutions = (Solution(problem, best[1].stages, time_ms),)
        bound_ms = min(bound_ms, time_ms)
    elif run.watch.stopped is None and not too_large:
        bound_ms = math.inf
    finished = TerminationReason.TOO_LARGE if too_large else TerminationReason.COMPLETE
    warnings = [f"{too_large} outer choices were left out: too many device states"] if too_large else []
    if best is not None:
        warnings.append(f"chosen by Eq. 1 ({best[1].static_ms:,.1f} ms), not by the time")
    return SearchResult(
        status=status_of(time_ms, bound_ms),
        termination=run.watch.stopped or finished,
        solutions=solutions,
        lower_bound_ms=bound_ms,
        seconds=run.watch.seconds,
        counters=counters,
        num_problems=len(run.context.problems),
        warnings=tuple(warnings),
        curve=((run.watch.seconds, solutions[0].iteration_time_ms),) if solutions else (),
    )
