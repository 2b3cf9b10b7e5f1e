"""The layers of optimal plans, stage by stage: do they rise and then fall among the stages of one type?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

import pyarrow as pa

from poseidon.cost.costs import costs
from poseidon.cost.outer import OuterChoice
from poseidon.cost.problem import Problem
from poseidon.paper.request import SETTINGS, Request
from poseidon.paper.searching import searched
from poseidon.paper.study import Row, Study
from poseidon.search.options import SearchOptions
from poseidon.search.result import SearchResult, TerminationReason
from poseidon.sweep.schema import Column

BATCH_FACTORS = ((1, 2), (1, 1), (2, 1))
"""Global batches as parts of the setting's own: numerator, denominator. At its own every outer choice is looked at."""
RIDGE_S = 10.0
"""Seconds for the best ridge of an outer choice whose optimum is none (some take the paper's policy hours)."""
SETTING, OUTER_CHOICE = "setting", "outer choice"
_INTS = pa.list_(pa.field("element", pa.int32()))
_TEXTS = pa.list_(pa.field("element", pa.string()))

COLUMNS = (
    Column("experiment", pa.string(), "name of the experiment"),
    Column("global_batch_size", pa.int32(), "sequences of an iteration"),
    Column("best_of", pa.string(), "what the plan is the best of: the whole setting, or one outer choice"),
    Column("outer_choice", pa.string(), "the plan's outer choice"),
    Column("status", pa.string(), "what the exact search says of the plan"),
    Column("iteration_time_ms", pa.float64(), "the plan's iteration time"),
    Column("accelerators", _TEXTS, "accelerator type of each stage, in pipeline order"),
    Column("layers", _INTS, "layers of each stage"),
    Column("broken_types", _TEXTS, "types whose layers rise again after they fell; none: a ridge"),
    Column("ridge_ms", pa.float64(), "where the plan is no ridge: the best ridge of its outer choice that was found"),
    Column("ridge_complete", pa.bool_(), "whether the search for that ridge came to its end"),
    Column("search_s", pa.float64(), "seconds of the exact search"),
)
Choices = Sequence[tuple[OuterChoice, Problem]]


def rows(request: Request) -> Iterator[Row]:
    """A row for each setting and batch, and at the setting's own batch one for each outer choice with a plan."""
    for name in SETTINGS:
        own = request.experiment(name).training.global_batch_size
        for numerator, denominator in BATCH_FACTORS:
            batch = own * numerator // denominator
            yield from request.part(f"{name} {batch}", partial(_rows, request, name, batch, each=batch == own))


def _rows(request: Request, name: str, batch: int, *, each: bool) -> Iterator[Row]:
    experiment = request.experiment(name, training={"global_batch_size": batch})
    choices = list(costs(experiment))
    of_each = f" and of each of {len(choices)} outer choices" if each else ""
    request.tell(f"{name}, global batch {batch}: layers of the optimal plan{of_each}")
    common = {"experiment": name, "global_batch_size": batch}
    for best_of, some in [(SETTING, choices), *((OUTER_CHOICE, [choice]) for choice in choices if each)]:
        options = SearchOptions(time_limit_s=request.time_limit_s)
        result = searched([problem for _, problem in some], options, request.backend)
        if result.best is not None:
            yield {**common, "best_of": best_of} | _row(request, some, result)


def _row(request: Request, choices: Choices, result: SearchResult) -> Row:
    solution = result.best
    assert solution is not None
    choice = next(choice for choice, problem in choices if problem.name == solution.name)
    accelerators = [choice.layout.placements[stage.kind].accelerator for stage in solution.stages]
    layers = [stage.num_layers for stage in solution.stages]
    broken = broken_types(accelerators, layers)
    row: Row = {
        "outer_choice": choice.name,
        "status": str(result.status),
        "iteration_time_ms": solution.iteration_time_ms,
        "accelerators": accelerators,
        "layers": layers,
        "broken_types": list(broken),
        "search_s": result.seconds,
    }
    return row | (best_ridge(request, solution.problem) if broken else {})


def best_ridge(request: Request, problem: Problem) -> Row:
    """The best ridge of an outer choice, by the paper's policy."""
    options = SearchOptions(policy="paper", time_limit_s=min(RIDGE_S, request.time_limit_s))
    result = searched([problem], options, request.backend)
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
    for before, after in pairwise(layers):
        if after > before and falls:
            return False
        falls = falls or after < before
    return True


STUDY = Study("ridge", "Layers of optimal plans over the stages", COLUMNS, rows, SETTINGS)
