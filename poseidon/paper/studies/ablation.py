"""The paper's two prunings, each alone, both and none, on setting 3: the best time so far over the search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from poseidon.paper.request import Request
from poseidon.paper.searching import planned
from poseidon.paper.study import Row, Study
from poseidon.plan.plan import Plan
from poseidon.search.result import TerminationReason
from poseidon.sweep.schema import Column

EXPERIMENT = "setting3"
BATCH_FACTORS = ((1, 2), (1, 1), (2, 1))
"""Global batches as parts of the setting's own: numerator, denominator. The paper names none."""
EXACT = "exact"


@dataclass(frozen=True)
class Variant:
    """A search that is compared."""

    name: str
    policy: str
    stage_pruning: bool = True
    layer_pruning: bool = True


VARIANTS = (
    Variant("none", "paper", stage_pruning=False, layer_pruning=False),
    Variant("layer-level", "paper", stage_pruning=False),
    Variant("stage-level", "paper", layer_pruning=False),
    Variant("both", "paper"),
    Variant(EXACT, "exact"),
)
"""The four of the paper's Figure 11, and the exact search beside them."""

_FLOATS = pa.list_(pa.field("element", pa.float64()))
COLUMNS = (
    Column("experiment", pa.string(), "name of the experiment"),
    Column("global_batch_size", pa.int32(), "sequences of an iteration"),
    Column("pruning", pa.string(), "none, layer-level, stage-level or both (policy paper); exact: the policy exact"),
    Column("warmup_samples", pa.int32(), "random configurations that are timed first, the same for all"),
    Column("seed", pa.int64(), "of these"),
    Column("time_limit_s", pa.float64(), "seconds after which the search is stopped"),
    Column("termination", pa.string(), "why the search stopped"),
    Column("complete", pa.bool_(), "whether the search came to its end"),
    Column("status", pa.string(), "what is known of the plan at the end"),
    Column("best_ms", pa.float64(), "iteration time of the best plan at the end"),
    Column("search_s", pa.float64(), "seconds of the search"),
    Column("simulations", pa.int64(), "simulator calls"),
    Column("search_nodes", pa.int64(), "search nodes"),
    Column("curve_s", _FLOATS, "seconds at each improvement of the best plan"),
    Column("curve_ms", _FLOATS, "iteration time of the best plan from then on"),
)


def rows(request: Request) -> Iterator[Row]:
    """A row for each batch and variant, all in this process: with the same seed they come upon plans in one order."""
    own = request.experiment(EXPERIMENT).training.global_batch_size
    for numerator, denominator in BATCH_FACTORS:
        for variant in VARIANTS:
            batch = own * numerator // denominator
            yield from request.part(f"{batch} {variant.name}", partial(_rows, request, batch, variant))


def _rows(request: Request, batch: int, variant: Variant) -> Iterator[Row]:
    request.tell(f"{EXPERIMENT}, global batch {batch}: pruning {variant.name}, at most {request.time_limit_s:g} s")
    search = {
        "policy": variant.policy,
        "stage_pruning": variant.stage_pruning,
        "layer_pruning": variant.layer_pruning,
        "time_limit_s": request.time_limit_s,
    }
    experiment = request.experiment(EXPERIMENT, training={"global_batch_size": batch}, search=search)
    answer = planned(experiment)
    did = answer.search
    row: Row = {
        "experiment": EXPERIMENT,
        "global_batch_size": batch,
        "pruning": variant.name,
        "warmup_samples": experiment.search.warmup_samples,
        "seed": experiment.search.seed,
        "time_limit_s": request.time_limit_s,
        "termination": str(did.termination),
        "complete": did.termination is TerminationReason.COMPLETE,
        "status": str(answer.status),
        "search_s": did.seconds,
        "simulations": did.simulations,
        "search_nodes": did.nodes,
        "curve_s": [seconds for seconds, _ in did.curve],
        "curve_ms": [time_ms for _, time_ms in did.curve],
    }
    yield row | ({"best_ms": answer.pipeline.iteration_time_ms} if isinstance(answer, Plan) else {})


STUDY = Study("ablation", "Best time over the search, with and without each pruning", COLUMNS, rows, (EXPERIMENT,))
