"""How many configurations the space of each setting holds, counted by dynamic programming."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa

from poseidon.cost.costs import costs
from poseidon.paper.request import SCALE_SETTINGS, SETTINGS, Request
from poseidon.paper.study import Row, Study
from poseidon.search.count import count_configurations
from poseidon.sweep.schema import Column

CASES = (
    *((setting, scope) for setting in SETTINGS for scope in ("uniform", "per-stage")),
    *((setting, "uniform") for setting in SCALE_SETTINGS),
)
"""At scale the space with TP per stage, which holds the other, takes too long to count."""


def _run(request: Request) -> Iterator[Row]:
    for setting, scope in CASES:

        def measure(setting: str = setting, scope: str = scope) -> list[Row]:
            request.tell(f"{setting}, TP {scope}")
            return [_row(request, setting, scope)]

        yield from request.part(f"{setting} {scope}", measure)


def _row(request: Request, setting: str, scope: str) -> Row:
    """The count of as many outer choices as `time_limit_s` allows."""
    started = time.perf_counter()
    total = num_counted = 0
    reason = ""
    problems = [problem for _, problem in costs(request.experiment(setting, search={"tp": scope}))]
    for problem in problems:
        if time.perf_counter() - started > request.time_limit_s:
            reason = reason or f"stopped after {request.time_limit_s:g} s"
            break
        try:
            total += count_configurations(problem)
            num_counted += 1
        except ValueError as error:
            reason = f"{problem.name}: {error}"
    return {
        "setting": setting,
        "scope": scope,
        "num_configurations": str(total),
        "is_complete": num_counted == len(problems),
        "outer_choices": len(problems),
        "outer_choices_counted": num_counted,
        "reason": reason,
        "seconds": time.perf_counter() - started,
    }


STUDY = Study(
    name="spaces",
    title="how many configurations the spaces hold",
    columns=(
        Column("setting", pa.string(), "name of the experiment"),
        Column("scope", pa.string(), "TP degrees: uniform, or any for each stage (per-stage)"),
        Column("num_configurations", pa.string(), "orders x allocations within memory, decimal digits"),
        Column("is_complete", pa.bool_(), "whether all outer choices were counted; else there are more"),
        Column("outer_choices", pa.int32(), "outer choices"),
        Column("outer_choices_counted", pa.int32(), "outer choices that were counted"),
        Column("reason", pa.string(), "why some were not; empty where all were"),
        Column("seconds", pa.float64(), "seconds of the counting"),
    ),
    run=_run,
)
