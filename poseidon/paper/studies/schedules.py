"""Setting 2 under each schedule and batch: throughput of the best plan."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import pyarrow as pa

from poseidon.compare.entry import fullest_fraction
from poseidon.paper.request import Request
from poseidon.paper.searching import planned
from poseidon.paper.study import Row, Study
from poseidon.plan.plan import NoPlan, Pipeline
from poseidon.sweep.schema import Column

EXPERIMENT = "setting2"
PAPER_SCHEDULES = ("1f1b", "eager_1f1b", "interleaved_1f1b")
"""Those of the paper's Figure 10."""
SCHEDULES = (*PAPER_SCHEDULES, "adaptive_1f1b")
BATCHES = (32, 64, 128, 256, 512)
FREE, OF_TABLE_1 = "free", "of table 1"
DEGREES: dict[str, dict[str, int]] = {FREE: {}, OF_TABLE_1: {"fixed_dp": 2, "fixed_tp": 1}}
"""Parallel degrees that the plans may have: any, or those of the paper's own plan of setting 2 (Table 1: 16 stages), so
that nothing but the schedule and what it makes of stages, layers and micro-batches differs.
"""

COLUMNS = (
    Column("experiment", pa.string(), "name of the experiment"),
    Column("global_batch_size", pa.int32(), "sequences of an iteration"),
    Column("schedule", pa.string(), "the schedule that all plans use"),
    Column("degrees", pa.string(), "free, or of table 1: DP 2 and TP 1, as in the paper's plan"),
    Column("status", pa.string(), "optimal, feasible, infeasible or unknown"),
    Column("reason", pa.string(), "why there is no plan; empty when there is one"),
    Column("termination", pa.string(), "why the search stopped"),
    Column("tokens_per_second", pa.float64(), "global batch x sequence length / iteration time"),
    Column("iteration_time_ms", pa.float64(), "iteration time of the best plan"),
    Column("gap", pa.float64(), "proven distance from the optimum, a fraction of the iteration time"),
    Column("outer_choice", pa.string(), "the plan's outer choice"),
    Column("pp", pa.int32(), "pipeline stages"),
    Column("dp", pa.int32(), "data-parallel degree"),
    Column("bubble_fraction", pa.float64(), "the part of the device time in which stages wait"),
    Column("fullest_memory_fraction", pa.float64(), "part of its limit that the fullest stage takes"),
    Column("search_s", pa.float64(), "seconds of the search"),
)


def rows(request: Request, batches: tuple[int, ...] = BATCHES) -> Iterator[Row]:
    """A row for each choice of degrees, batch and schedule, with or without a plan."""
    for degrees, batch, schedule in product(DEGREES, batches, SCHEDULES):
        key = f"{degrees} {batch} {schedule}"
        yield from request.part(key, partial(_rows, request, degrees, batch, schedule))


def _rows(request: Request, degrees: str, batch: int, schedule: str) -> Iterator[Row]:
    request.tell(f"{EXPERIMENT}, global batch {batch}, degrees {degrees}: best plan under {schedule}")
    training = {"global_batch_size": batch, "schedules": [schedule]}
    search: dict[str, object] = {"time_limit_s": request.time_limit_s, **DEGREES[degrees]}
    experiment = request.experiment(EXPERIMENT, training=training, search=search)
    answer = planned(experiment, request.backend)
    row: Row = {
        "experiment": EXPERIMENT,
        "global_batch_size": batch,
        "schedule": schedule,
        "degrees": degrees,
        "status": str(answer.status),
        "reason": answer.reason if isinstance(answer, NoPlan) else "",
        "termination": str(answer.search.termination),
        "search_s": answer.search.seconds,
    }
    yield row if isinstance(answer, NoPlan) else row | {"gap": answer.gap} | _pipeline(answer.pipeline)


def _pipeline(pipeline: Pipeline) -> Row:
    return {
        "tokens_per_second": pipeline.tokens_per_second,
        "iteration_time_ms": pipeline.iteration_time_ms,
        "outer_choice": pipeline.outer_choice,
        "pp": pipeline.pp,
        "dp": pipeline.dp,
        "bubble_fraction": pipeline.bubble_fraction,
        "fullest_memory_fraction": fullest_fraction(pipeline),
    }


STUDY = Study("schedules", "Throughput of the best plan under each schedule and batch", COLUMNS, rows, (EXPERIMENT,))
