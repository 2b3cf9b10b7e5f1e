"""Warm-up counts from 0 to 20,000: simulator calls of the paper's search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from poseidon.paper.request import Request
from poseidon.paper.searching import planned
from poseidon.paper.study import Row, Study
from poseidon.plan.plan import Plan
from poseidon.search.result import TerminationReason
from poseidon.sweep.schema import Column

EXPERIMENTS = ("setting1", "setting2", "setting4", "setting5")
"""Those on which the paper's search ends by itself in about a second: on setting 3 it takes minutes."""
COUNTS = (0, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
"""Those of the paper's Figure 12."""
SEEDS = (0, 1, 2, 3, 4)

COLUMNS = (
    Column("experiment", pa.string(), "name of the experiment"),
    Column("warmup_samples", pa.int32(), "random configurations that are timed first"),
    Column("seed", pa.int64(), "of these"),
    Column("simulations", pa.int64(), "simulator calls of the whole search, warm-up included"),
    Column("search_s", pa.float64(), "seconds of the search"),
    Column("complete", pa.bool_(), "whether the search came to its end"),
    Column("best_ms", pa.float64(), "iteration time of the plan"),
)


def rows(
    request: Request,
    experiments: Sequence[str] = EXPERIMENTS,
    counts: Sequence[int] = COUNTS,
    seeds: Sequence[int] = SEEDS,
) -> Iterator[Row]:
    """A row for each experiment, count and seed (one seed without warm-up: nothing is drawn), all in this process."""
    for name in experiments:
        for count in counts:
            own = seeds if count else seeds[:1]
            yield from request.part(f"{name} {count}", partial(_rows, request, name, count, own))


def _rows(request: Request, name: str, count: int, seeds: Sequence[int]) -> Iterator[Row]:
    request.tell(f"{name}: the paper's search after {count:,} warm-up samples")
    for seed in seeds:
        yield _row(request, name, count, seed)


def _row(request: Request, name: str, count: int, seed: int) -> Row:
    search = {"policy": "paper", "warmup_samples": count, "seed": seed, "time_limit_s": request.time_limit_s}
    answer = planned(request.experiment(name, search=search))
    row: Row = {
        "experiment": name,
        "warmup_samples": count,
        "seed": seed,
        "simulations": answer.search.simulations,
        "search_s": answer.search.seconds,
        "complete": answer.search.termination is TerminationReason.COMPLETE,
    }
    return row | ({"best_ms": answer.pipeline.iteration_time_ms} if isinstance(answer, Plan) else {})


STUDY = Study("warm-up", "Simulator calls over the warm-up count", COLUMNS, rows, EXPERIMENTS)
