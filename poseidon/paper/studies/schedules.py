"""Setting 2 under each schedule and batch: throughput of the best plan."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

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

COLUMNS = (
    Column("experiment", pa.string(), "name of the experiment"),
    Column("global_batch_size", pa.int32(), "sequences of an iteration"),
    Column("schedule", pa.string(), "the schedule that all plans use"),
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
    """A row for each batch and schedule, with or without a plan."""
    for batch in batches:
        for schedule in SCHEDULES:
            yield from request.part(f"{batch} {schedule}", partial(_rows, request, batch, schedule))


def _rows(request: Request, batch: int, schedule: str) -> Iterator[Row]:
    request.tell(f"{EXPERIMENT}, global batch {batch}: best plan under {schedule}")
    training = {"global_batch_size": batch, "schedules": [schedule]}
    experiment = request.experiment(EXPERIMENT, training=training, search={"time_limit_s": request.time_limit_s})
    answer = planned(experiment, request.backend)
    row: Row = {
        "experiment": EXPERIMENT,
        "global_batch_size": batch,
        "schedule": schedule,
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
