"""The layers of optimal plans, stage by stage: do they rise and then fall among the stages of one type?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from poseidon.cost.costs import costs
from poseidon.inputs.experiment import Experiment
from poseidon.paper.request import SETTINGS, Request
from poseidon.paper.searching import planned, searched
from poseidon.paper.study import Row, Study
from poseidon.plan.plan import NoPlan, Pipeline
from poseidon.search.options import SearchOptions
from poseidon.search.result import TerminationReason
from poseidon.sweep.schema import Column

BATCH_FACTORS = ((1, 2), (1, 1), (2, 1))
"""Global batches as parts of the setting's own: numerator, denominator."""
_INTS = pa.list_(pa.field("element", pa.int32()))
_TEXTS = pa.list_(pa.field("element", pa.string()))

COLUMNS = (
    Column("experiment", pa.string(), "name of the experiment"),
    Column("global_batch_size", pa.int32(), "sequences of an iteration"),
    Column("status", pa.string(), "what the exact search says of its plan"),
    Column("outer_choice", pa.string(), "the plan's outer choice"),
    Column("iteration_time_ms", pa.float64(), "the plan's iteration time"),
    Column("accelerators", _TEXTS, "accelerator type of each stage, in pipeline order"),
    Column("layers", _INTS, "layers of each stage"),
    Column("broken_types", _TEXTS, "types whose layers rise again after they fell; none: a ridge"),
    Column("ridge_ms", pa.float64(), "where the plan is no ridge: the best ridge of its outer choice that was found"),
    Column("ridge_complete", pa.bool_(), "whether the search for that ridge came to its end"),
    Column("search_s", pa.float64(), "seconds of the exact search"),
)


def rows(request: Request) -> Iterator[Row]:
    """A row for each setting and batch; a batch that a setting allows no plan for is left out."""
    for name in SETTINGS:
        own = request.experiment(name).training.global_batch_size
        for numerator, denominator in BATCH_FACTORS:
            batch = own * numerator // denominator
            request.tell(f"{name}, global batch {batch}: layers of the optimal plan")
            training, search = {"global_batch_size": batch}, {"time_limit_s": request.time_limit_s}
            yield from _row(request, name, request.experiment(name, training=training, search=search))


def _row(request: Request, name: str, experiment: Experiment) -> Iterator[Row]:
    answer = planned(experiment, request.backend)
    if isinstance(answer, NoPlan):
        return
    pipeline = answer.pipeline
    accelerators = [stage.accelerator for stage in pipeline.stages]
    layers = [sum(stage.layers) for stage in pipeline.stages]
    broken = broken_types(accelerators, layers)
    row: Row = {
        "experiment": name,
        "global_batch_size": experiment.training.global_batch_size,
        "status": str(answer.status),
        "outer_choice": pipeline.outer_choice,
        "iteration_time_ms": pipeline.iteration_time_ms,
        "accelerators": accelerators,
        "layers": layers,
        "broken_types": list(broken),
        "search_s": answer.search.seconds,
    }
    yield row | (_best_ridge(request, experiment, pipeline) if broken else {})


def _best_ridge(request: Request, experiment: Experiment, pipeline: Pipeline) -> Row:
    """The best ridge of the plan's outer choice, by the paper's policy."""
    problem = next(problem for choice, problem in costs(experiment) if choice.name == pipeline.outer_choice)
    result = searched([problem], SearchOptions(policy="paper", time_limit_s=request.time_limit_s), request.backend)
    row: Row = {"ridge_complete": result.termination is TerminationReason.COMPLETE}
    return row | ({} if result.best is None else {"ridge_ms": result.best.iteration_time_ms})


def broken_types(accelerators: Sequence[str], layers: Sequence[int]) -> tuple[str, ...]:
    """The types whose stages, in pipeline order, hold more layers again after they held fewer (Theorem 2)."""
    return tuple(
        name
        for name in dict.fromkeys(accelerators)
        if not is_ridge([count for own, count in zip(accelerators, layers, strict=True) if own == name])
    )


def is_ridge(layers: Sequence[int]) -> bool:
    """Whether numbers first rise and then fall (either part may be missing, equal neighbours are neither)."""
    falls = False
    for before, after in zip(layers, layers[1:], strict=False):
        if after > before and falls:
            return False
        falls = falls or after < before
    return True


STUDY = Study("ridge", "Layers of optimal plans over the stages", COLUMNS, rows)
