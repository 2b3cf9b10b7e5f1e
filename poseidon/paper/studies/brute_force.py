"""Brute force of settings 1 and 2, outer choice by outer choice, beside the exact search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from poseidon.cost.costs import costs
from poseidon.cost.problem import Problem
from poseidon.paper.keep import Keep
from poseidon.paper.request import Request
from poseidon.paper.searching import searched
from poseidon.paper.stages_text import stages_text
from poseidon.paper.study import Row, Study
from poseidon.search.count import count_configurations
from poseidon.search.journal import key_of
from poseidon.search.options import SearchOptions
from poseidon.search.result import SearchResult, TerminationReason
from poseidon.search.shard import Context
from poseidon.search.tolerance import OPTIMAL
from poseidon.sweep.schema import Column

MOST_CONFIGURATIONS: Mapping[str, int | None] = {"setting1": None, "setting2": 10**9, "setting3": 0}
"""Outer choices with more configurations are not enumerated: they are sampled and extrapolated. None: no such limit."""
SAMPLE_S = 3.0
"""Seconds of brute force on an outer choice that is not enumerated, to learn how long a configuration takes."""

COLUMNS = (
    Column("experiment", pa.string(), "name of the experiment"),
    Column("outer_choice", pa.string(), "the outer choice"),
    Column("num_stages", pa.int32(), "pipeline stages"),
    Column("num_micro_batches", pa.int32(), "micro-batches of an iteration"),
    Column("configurations", pa.string(), "feasible configurations, counted by dynamic programming: an exact integer"),
    Column("treatment", pa.string(), "enumerated, or sampled: begun for some seconds"),
    Column("simulated", pa.int64(), "configurations simulated"),
    Column("complete", pa.bool_(), "whether the enumeration came to its end"),
    Column("cpu_s", pa.float64(), "CPU seconds of the enumeration, all workers together"),
    Column("workers", pa.int32(), "processes that enumerated"),
    Column("backend", pa.string(), "in-process, local or ray"),
    Column("best_ms", pa.float64(), "time of the best configuration, where all were simulated"),
    Column("best_plan", pa.string(), "its stages"),
    Column("exact_status", pa.string(), "what the exact search says of its plan"),
    Column("exact_ms", pa.float64(), "time of the exact search's plan"),
    Column("exact_plan", pa.string(), "its stages"),
    Column("exact_s", pa.float64(), "seconds of the exact search"),
    Column("exact_simulations", pa.int64(), "configurations that the exact search simulated"),
)


def rows(request: Request, most: Mapping[str, int | None] = MOST_CONFIGURATIONS) -> Iterator[Row]:
    """A row for each outer choice of each experiment in `most`, those with the fewest configurations first.

    Needs the full node-level space: `assignment` is node. Finished rows are kept in `request.progress`, and an
    enumeration that the time limit cut short goes on from its journal the next time.
    """
    keep = Keep.of(request.progress, "brute-force")
    for name, limit in most.items():
        problems = [problem for _, problem in costs(request.experiment(name, search={"assignment": "node"}))]
        counted = sorted(((count_configurations(p), p.name, p) for p in problems), key=lambda item: item[:2])
        for number, _, problem in counted:
            if limit is None or number <= limit:
                yield _enumerated(request, keep, name, problem, number)
            else:
                yield _sampled(request, name, problem, number)


def _enumerated(request: Request, keep: Keep, experiment: str, problem: Problem, number: int) -> Row:
    options = SearchOptions(policy="brute-force", time_limit_s=request.time_limit_s)
    key = key_of(Context((problem,), options))
    kept = keep.row(key)
    if kept is not None:
        return kept | {"experiment": experiment}  # another one may have the same outer choice
    request.tell(f"{experiment}, {problem.name}: brute force of {number:,} configurations")
    result = searched([problem], options, request.backend, keep.journal(key))
    backend = request.backend
    row = _common(request, experiment, problem, number) | {
        "treatment": "enumerated",
        **_work(result),
        "workers": 1 if backend is None else backend.num_workers,
        "backend": "in-process" if backend is None else backend.name,
    }
    if row["complete"]:
        keep.put(key, row)
    return row


def _sampled(request: Request, experiment: str, problem: Problem, number: int) -> Row:
    request.tell(f"{experiment}, {problem.name}: {number:,} configurations, {SAMPLE_S:g} s of them")
    limit_s = min(SAMPLE_S, request.time_limit_s)
    result = searched([problem], SearchOptions(policy="brute-force", time_limit_s=limit_s))
    return _common(request, experiment, problem, number) | {
        "treatment": "sampled",
        **_work(result),
        "workers": 1,
        "backend": "in-process",
    }


def _work(result: SearchResult) -> Row:
    """What was enumerated, and the best of it if that is all."""
    complete = result.termination is TerminationReason.COMPLETE
    row: Row = {"simulated": result.counters.simulations, "complete": complete, "cpu_s": result.cpu_seconds}
    if complete and result.best is not None:
        row |= {"best_ms": result.best.iteration_time_ms, "best_plan": stages_text(result.best)}
    return row


def _common(request: Request, experiment: str, problem: Problem, number: int) -> Row:
    """What the outer choice is, and what the exact search says of it."""
    exact = searched([problem], SearchOptions(time_limit_s=request.time_limit_s), request.backend)
    row: Row = {
        "experiment": experiment,
        "outer_choice": problem.name,
        "num_stages": problem.num_stages,
        "num_micro_batches": problem.num_micro_batches,
        "configurations": str(number),
        "exact_status": str(exact.status),
        "exact_s": exact.seconds,
        "exact_simulations": exact.counters.simulations,
    }
    if exact.best is not None:
        row |= {"exact_ms": exact.best.iteration_time_ms, "exact_plan": stages_text(exact.best)}
    return row


def same_time(row: Row) -> bool:
    """Whether brute force and the exact search found the same optimum, or both that there is none."""
    best, exact = row.get("best_ms"), row.get("exact_ms")
    if best is None or exact is None:
        return best is exact
    return bool(abs(best - exact) <= OPTIMAL * exact)


def same_plan(row: Row) -> bool:
    """Whether both plans have the same stages with the same layers, or there is none."""
    return bool(row.get("best_plan") == row.get("exact_plan"))


STUDY = Study(
    "brute-force",
    "Brute force beside the exact search, outer choice by outer choice",
    COLUMNS,
    rows,
    experiments=tuple(MOST_CONFIGURATIONS),
)
