"""Random small problems, solved exhaustively: is the best ridge allocation the optimum?"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa

from poseidon.cost.problem import Kind, LayerCost, Matrix, Problem
from poseidon.paper.request import Request
from poseidon.paper.searching import searched
from poseidon.paper.study import Row, Study
from poseidon.search.evaluate import configuration_times
from poseidon.search.options import SearchOptions
from poseidon.search.result import SearchResult, Solution, SolutionStatus
from poseidon.sweep.schema import Column

SCHEDULES = ("1f1b", "eager_1f1b")
NUM_PROBLEMS = 1000
"""Problems drawn for each schedule."""
SEED = 20260906
ROUNDING = 1e-9
"""Fraction by which times that count as equal may differ."""
_INTS = pa.list_(pa.field("element", pa.int32()))
_TEXTS = pa.list_(pa.field("element", pa.string()))

COLUMNS = (
    Column("schedule", pa.string(), "pipeline schedule"),
    Column("number", pa.int32(), "of the draw; the same problem but for the schedule has the same number"),
    Column("num_stages", pa.int32(), "pipeline stages"),
    Column("num_layers", pa.int32(), "layers"),
    Column("num_micro_batches", pa.int32(), "micro-batches"),
    Column("configurations", pa.int64(), "feasible configurations, all of them simulated"),
    Column("ridges", pa.int64(), "configurations of them that are ridges, all of them simulated"),
    Column("optimum_ms", pa.float64(), "time of the optimum"),
    Column("optimum_kinds", _TEXTS, "its kinds in pipeline order"),
    Column("optimum_layers", _INTS, "its layers"),
    Column("ridge_ms", pa.float64(), "time of the best ridge; absent where no ridge fits"),
    Column("ridge_kinds", _TEXTS, "its kinds in pipeline order"),
    Column("ridge_layers", _INTS, "its layers"),
    Column("assumptions_hold", pa.bool_(), "whether assumptions (1) to (4) of Theorem 2 hold for the optimum"),
)


def rows(request: Request, num_problems: int = NUM_PROBLEMS) -> Iterator[Row]:
    """A row for each schedule and problem that has a feasible configuration; every configuration is simulated."""
    for schedule in SCHEDULES:
        request.tell(f"{num_problems:,} random small problems under {schedule}: best ridge and optimum")
        draw = random.Random(SEED)
        for number in range(num_problems):
            problem = random_problem(draw, schedule, f"{schedule} {number}")
            everything = searched([problem], SearchOptions(policy="brute-force"))
            if everything.best is not None:
                yield {"schedule": schedule, "number": number} | _row(problem, everything)


def _row(problem: Problem, everything: SearchResult) -> Row:
    options = SearchOptions(policy="paper", stage_pruning=False, warmup_samples=0)
    ridges = searched([problem], options)
    optimum = everything.best
    assert optimum is not None
    assert everything.status is SolutionStatus.OPTIMAL
    row: Row = {
        "num_stages": problem.num_stages,
        "num_layers": problem.num_layers,
        "num_micro_batches": problem.num_micro_batches,
        "configurations": everything.counters.simulations,
        "ridges": ridges.counters.simulations,
        "optimum_ms": optimum.iteration_time_ms,
        **_stages("optimum", optimum),
        "assumptions_hold": assumptions_hold(optimum),
    }
    if ridges.best is not None:
        row |= {"ridge_ms": ridges.best.iteration_time_ms, **_stages("ridge", ridges.best)}
    return row


def _stages(prefix: str, solution: Solution) -> Row:
    kinds = solution.problem.kinds
    return {
        f"{prefix}_kinds": [kinds[stage.kind].name for stage in solution.stages],
        f"{prefix}_layers": [stage.num_layers for stage in solution.stages],
    }


def random_problem(draw: random.Random, schedule: str, name: str) -> Problem:
    """Two types with one ratio of backward to forward, M >= 2 N, transfers of up to (r - 1) / 2 of a layer's forward.

    No embedding, head or all-reduce, and memory limits that rise along the pipeline: what the proof assumes.
    """
    counts = [draw.randint(1, 4), draw.randint(1, 2)]
    num_stages = sum(counts)
    num_layers = num_stages * 2 + draw.randint(0, 4)
    ratio, forward_ms = draw.uniform(1.6, 2.4), (10.0, 10.0 * draw.uniform(1.0, 1.4))
    most_ms = (ratio - 1) / 2 * min(forward_ms)
    own_ms, other_ms = (draw.uniform(0, most_ms) for _ in range(2))
    between = ((own_ms, max(own_ms, other_ms)), (max(own_ms, other_ms), own_ms))
    least = -(-num_layers // num_stages)
    limits = sorted(least + draw.randint(0, 2) for _ in range(num_stages))
    layers = [LayerCost(own, own * ratio) for own in forward_ms]
    kinds = [_kind(*parts, limits) for parts in zip(("A", "B"), counts, layers, strict=True)]
    num_micro_batches = num_stages * draw.randint(2, 3)
    return _problem(name, schedule, num_layers, num_micro_batches, kinds, between)


def _kind(name: str, stages: int, layer: LayerCost, limits: list[int]) -> Kind:
    nothing = LayerCost()
    return Kind(name, stages, 1, (layer,), nothing, nothing, tuple((limit,) for limit in limits))


def _problem(
    name: str, schedule: str, num_layers: int, num_micro_batches: int, kinds: list[Kind], between: Matrix
) -> Problem:
    return Problem(
        name=name,
        schedule=schedule,
        num_chunks=1,
        num_micro_batches=num_micro_batches,
        num_layers=num_layers,
        num_stages=sum(kind.stages for kind in kinds),
        assignment="stage",
        kinds=tuple(kinds),
        intra_node_ms=between,
        inter_node_ms=between,
    )


def assumptions_hold(solution: Solution) -> bool:
    """Assumptions (1) to (4) of Theorem 2 (paper, appendix B) for one configuration."""
    times = configuration_times(solution.problem, solution.stages)
    forward, backward = times.forward_ms[:, 0], times.backward_ms[:, 0]
    ratios = backward / forward
    ratio = float(ratios.min())
    transfer_ms = max(float(times.send_forward_ms.max()), float(times.send_backward_ms.max()))
    one_ratio = ratio > 1 and float(ratios.max()) <= ratio * (1 + ROUNDING)
    hidden = transfer_ms <= (ratio - 1) / 2 * float(forward.min()) * (1 + ROUNDING)
    long_enough = solution.problem.num_micro_batches >= 2 * solution.problem.num_stages
    alpha = max(2 / 3, ratio / (1 + ratio))
    balanced = float(forward.min()) >= alpha * float(forward.max()) * (1 - ROUNDING)
    return bool(one_ratio and hidden and long_enough and balanced)


STUDY = Study("ridge-problems", "Best ridge and optimum of random small problems", COLUMNS, rows, experiments=())
