"""Whether the times and the memory of every stage follow from the inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from poseidon.cost.memory import memory_budget, state_bytes
from poseidon.cost.problem import LayerCost, Matrix
from poseidon.plan.finding import Finding, Verdict
from poseidon.plan.plan import Pipeline, PlannedStage
from poseidon.plan.rebuilt import Rebuilt
from poseidon.plan.timing import pipeline_order
from poseidon.profile.profile import Row
from poseidon.schedule import Action

TOLERANCE = 1e-9
"""Relative; sums of a few dozen doubles may be added in another order."""


def check_stage_times(rebuilt: Rebuilt, pipeline: Pipeline) -> Finding:
    """Forward, backward, sends and all-reduce of every stage, worked out anew from profile and links."""
    mistakes = [*_shape_mistakes(rebuilt, pipeline), *_time_mistakes(rebuilt, pipeline)]
    if mistakes:
        return Finding("stage times", Verdict.WRONG, "; ".join(mistakes[:3]))
    return Finding("stage times", Verdict.RIGHT, "forward, backward, sends and all-reduce follow from the inputs")


def _shape_mistakes(rebuilt: Rebuilt, pipeline: Pipeline) -> Iterator[str]:
    choice = rebuilt.choice
    pairs = {
        "dp": (pipeline.dp, choice.dp),
        "pp": (pipeline.pp, choice.num_stages),
        "micro_batch_size": (pipeline.micro_batch_size, choice.micro_batch_size),
        "num_micro_batches": (pipeline.num_micro_batches, choice.num_micro_batches),
        "schedule": (pipeline.schedule, choice.schedule),
        "num_chunks": (pipeline.num_chunks, choice.num_chunks),
        "recompute": (pipeline.recompute, choice.recompute),
    }
    for name, (found, expected) in pairs.items():
        if found != expected:
            yield f"{name} is {found}, but outer choice {choice.name!r} has {expected}"
    if pipeline.depths and max(pipeline.depths) > rebuilt.problem.most_depth:
        yield f"a link has depth {max(pipeline.depths)}; at most {rebuilt.problem.most_depth} is searched"


def _time_mistakes(rebuilt: Rebuilt, pipeline: Pipeline) -> Iterator[str]:
    for index, stage in enumerate(pipeline.stages):
        kind = rebuilt.choice.layout.placements[rebuilt.kinds[index]]
        if (stage.tp, stage.accelerator) != (kind.tp, kind.accelerator):
            yield f"stage {index} is {stage.accelerator} with TP {stage.tp}, but its kind is {kind.name}"
        parts = [_chunk_costs(rebuilt, pipeline, index, chunk) for chunk in range(pipeline.num_chunks)]
        forward_ms, backward_ms = _sends(rebuilt, pipeline, index)
        expected = {
            "forward_ms": ([sum(c.forward_ms for c in costs) for costs in parts], stage.forward_ms),
            "backward_ms": ([sum(c.backward_ms for c in costs) for costs in parts], stage.backward_ms),
            "all_reduce_ms": ([sum(c.all_reduce_ms for costs in parts for c in costs)], (stage.all_reduce_ms,)),
            "send_forward_ms": ([forward_ms], (stage.send_forward_ms,)),
            "send_backward_ms": ([backward_ms], (stage.send_backward_ms,)),
        }
        for name, (worked_out, given) in expected.items():
            if not _close(worked_out, given):
                yield f"stage {index}: {name} is {_numbers(given)}, worked out {_numbers(worked_out)}"


def _chunk_costs(rebuilt: Rebuilt, pipeline: Pipeline, index: int, chunk: int) -> list[LayerCost]:
    """The costs of everything that a chunk holds, one by one."""
    problem = rebuilt.problem
    kind = problem.kinds[rebuilt.kinds[index]]
    first, end = pipeline.stages[index].layer_ranges[chunk]
    costs = [kind.layers[problem.type_of_layer(layer)] for layer in range(first, end)]
    if index == 0 and chunk == 0:
        costs.append(kind.first)
    if index == pipeline.pp - 1 and chunk == pipeline.num_chunks - 1:
        costs.append(kind.last)
    return costs


def _sends(rebuilt: Rebuilt, pipeline: Pipeline, index: int) -> tuple[float, float]:
    """Time of an activation to the next stage and of a gradient to the previous one.

    With chunks they also go around the ends, which is always taken to leave the node.
    """
    last = pipeline.pp - 1
    around = rebuilt.problem.inter_node_ms if pipeline.num_chunks > 1 else None
    kinds = rebuilt.kinds
    if index < last:
        forward_ms = _links(rebuilt, pipeline, index)[kinds[index]][kinds[index + 1]]
    else:
        forward_ms = around[kinds[last]][kinds[0]] if around else 0.0
    if index > 0:
        backward_ms = _links(rebuilt, pipeline, index - 1)[kinds[index]][kinds[index - 1]]
    else:
        backward_ms = around[kinds[0]][kinds[last]] if around else 0.0
    return forward_ms, backward_ms


def _links(rebuilt: Rebuilt, pipeline: Pipeline, boundary: int) -> Matrix:
    """Times over the boundary between a stage and the next one: neighbours on one node use its inner links."""
    nodes = [pipeline.stages[stage].nodes for stage in (boundary, boundary + 1)]
    within = len(nodes[0]) == 1 and nodes[0] == nodes[1]
    return rebuilt.problem.intra_node_ms if within else rebuilt.problem.inter_node_ms


def _close(numbers: Sequence[float], others: Sequence[float]) -> bool:
    return len(numbers) == len(others) and all(
        math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-12) for a, b in zip(numbers, others, strict=True)
    )


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)


def check_memory(rebuilt: Rebuilt, pipeline: Pipeline) -> Finding:
    """The memory of every stage, counted anew by replaying its operations, against the plan and the limit."""
    order = pipeline_order(pipeline)
    mistakes, fullest = [], 0.0
    for index, stage in enumerate(pipeline.stages):
        needed, limit = _needed_bytes(rebuilt, pipeline, index, order.stages[index])
        fullest = max(fullest, needed / limit)
        if abs(needed - stage.memory.total_bytes) > 1 + TOLERANCE * needed:
            mistakes.append(
                f"stage {index} takes {needed / 1e9:.3f} GB, the plan says {stage.memory.total_bytes / 1e9:.3f}"
            )
        if abs(limit - stage.memory.limit_bytes) > 1:
            mistakes.append(
                f"stage {index} has a limit of {limit / 1e9:.3f} GB, the plan says {stage.memory.limit_bytes / 1e9:.3f}"
            )
        if needed > limit + 1:
            mistakes.append(f"stage {index} takes {needed / 1e9:.3f} GB of {limit / 1e9:.3f}")
    if mistakes:
        return Finding("memory", Verdict.WRONG, "; ".join(mistakes[:3]))
    return Finding("memory", Verdict.RIGHT, f"every stage fits; the fullest takes {100 * fullest:.1f} % of its limit")


def _needed_bytes(rebuilt: Rebuilt, pipeline: Pipeline, index: int, actions: Sequence[Action]) -> tuple[float, float]:
    """What one device of a stage needs (contract, "Memory of a stage"), and its limit."""
    experiment, stage = rebuilt.builder.experiment, pipeline.stages[index]
    chunks = [_chunk_rows(rebuilt, stage, index, chunk, pipeline) for chunk in range(pipeline.num_chunks)]
    rows = [row for chunk in chunks for row in chunk]
    training = experiment.training
    state = sum(state_bytes(row.weight_bytes, stage.dp, training).total for row in rows)
    held = _peak_bytes(actions, [sum(row.activation_bytes for row in chunk) for chunk in chunks])
    budget = memory_budget(
        experiment.cluster.accelerators[stage.accelerator],
        training,
        experiment.search.max_memory_fraction,
    )
    recomputed = max(row.recomputed_bytes for row in rows)
    return state + held + recomputed + budget.reserve_bytes, budget.limit_bytes


def _chunk_rows(rebuilt: Rebuilt, stage: PlannedStage, index: int, chunk: int, pipeline: Pipeline) -> list[Row]:
    model = rebuilt.builder.experiment.model
    rows = rebuilt.builder.rows(rebuilt.choice, rebuilt.choice.layout.placements[rebuilt.kinds[index]])
    by_type = dict(zip(model.distinct_layer_types, rows.layers, strict=True))
    first, end = stage.layer_ranges[chunk]
    held = [by_type[name] for name in model.layer_types[first:end]]
    if index == 0 and chunk == 0:
        held.append(rows.embedding)
    if index == pipeline.pp - 1 and chunk == pipeline.num_chunks - 1:
        held.append(rows.head_alone if pipeline.pp == 1 else rows.head)
    return held


def _peak_bytes(actions: Sequence[Action], chunk_bytes: Sequence[float]) -> float:
    """Most activation bytes held at once, one operation after the other."""
    held = [0] * len(chunk_bytes)
    peak = 0.0
    for action in actions:
        held[action.chunk] += 1 if action.kind == "F" else -1
        peak = max(peak, sum(count * size for count, size in zip(held, chunk_bytes, strict=True)))
    return peak
