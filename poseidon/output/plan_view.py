"""A plan as people read it: what it is, what is proven, its stages, what limits it, what the search did."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TextIO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from poseidon.output.console import Columns, is_unicode, rendered
from poseidon.output.numbers import gigabytes, milliseconds, milliseconds_column, percent, plural, ranges
from poseidon.plan.plan import Pipeline, Plan, PlannedStage, SearchSummary
from poseidon.search.result import SolutionStatus, TerminationReason

BAR_WIDTH = 10


def plan_text(plan: Plan, stream: TextIO | None = None) -> str:
    """The whole plan as text for `stream` (standard output)."""
    target = stream or sys.stdout
    return rendered(list(_parts(plan, target)), target)


def _parts(plan: Plan, stream: TextIO) -> Iterator[RenderableType]:
    experiment, pipeline = plan.experiment, plan.pipeline
    yield Text(f"{experiment.model.name} on {experiment.cluster.name}: {proof_words(plan)}", style="bold")
    yield Text(shape_line(pipeline))
    if pipeline.depths:
        yield Text(f"Depths of the links: {' '.join(map(str, pipeline.depths))}")
    yield Text(
        f"{milliseconds(pipeline.iteration_time_ms)} ms an iteration, {pipeline.tokens_per_second:,.0f} tokens/s, "
        f"MFU {percent(pipeline.mfu)}, bubble {percent(pipeline.bubble_fraction)}"
    )
    yield Text("")
    yield _stage_table(pipeline, stream)
    yield Text("")
    yield Text(limits_line(pipeline))
    if pipeline.idle:
        idle = ", ".join(f"node {part.node}: {ranges(part.devices)}" for part in pipeline.idle[:20])
        count = sum(len(part.devices) for part in pipeline.idle)
        yield Text(f"Idle: {plural(count, 'device')} ({idle}{', ...' if len(pipeline.idle) > 20 else ''})")
    if plan.alternatives:
        yield Text("")
        yield _alternatives(plan, stream)
        yield Text("")
    yield Text(search_line(plan.search))


def proof_words(plan: Plan) -> str:
    """What is known about the plan."""
    if plan.status is SolutionStatus.OPTIMAL:
        return "proven optimal"
    if not plan.lower_bound_ms:
        return f"found by policy {plan.search.policy}, nothing proven"
    stopped = "" if plan.search.termination is TerminationReason.COMPLETE else f" ({plan.search.termination})"
    return f"proven within {percent(plan.gap)} of the optimum{stopped}"


def degrees_text(pipeline: Pipeline) -> str:
    """``DP 2 x TP 2 x PP 7``."""
    tp = f"TP {pipeline.tp}" if pipeline.tp is not None else "TP by stage"
    dp = "DP by stage" if pipeline.dp_differs else f"DP {pipeline.dp}"
    return f"{dp} x {tp} x PP {pipeline.pp}"


def shape_line(pipeline: Pipeline) -> str:
    """Degrees, batch and schedule in one line."""
    sequences = pipeline.dp * pipeline.micro_batch_size
    size = f"{sequences} over the replicas" if pipeline.dp_differs else str(pipeline.micro_batch_size)
    chunks = f" with {pipeline.num_chunks} chunks" if pipeline.num_chunks > 1 else ""
    recompute = "" if pipeline.recompute == "none" else f", recompute {pipeline.recompute}"
    return (
        f"{degrees_text(pipeline)} on {plural(pipeline.num_devices, 'device')}, "
        f"{pipeline.schedule}{chunks}, {plural(pipeline.num_micro_batches, 'micro-batch', 'micro-batches')} "
        f"of {size}{recompute}"
    )


def _stage_table(pipeline: Pipeline, stream: TextIO) -> Table:
    columns = Columns(stream)
    columns.number("Stage")
    columns.name("Nodes", "Type")
    columns.number("DPxTP", "Layers", "Memory GB", "Fwd ms", "Bwd ms", "Bubble")
    columns.name("Balance")
    slowest = max(_work_ms(stage) for stage in pipeline.stages)
    forward_ms = milliseconds_column([sum(stage.forward_ms) for stage in pipeline.stages])
    backward_ms = milliseconds_column([sum(stage.backward_ms) for stage in pipeline.stages])
    for index, stage in enumerate(pipeline.stages):
        memory = stage.memory
        columns.row(
            str(index),
            ranges(stage.nodes),
            stage.accelerator,
            f"{stage.dp}x{stage.tp}",
            "+".join(map(str, stage.layers)),
            f"{gigabytes(memory.total_bytes)} / {gigabytes(memory.limit_bytes)}",
            forward_ms[index],
            backward_ms[index],
            percent(stage.bubble_ms / pipeline.iteration_time_ms),
            bar(_work_ms(stage) / slowest, unicode=is_unicode(stream)),
        )
    return columns.table()


def bar(fraction: float, *, unicode: bool) -> str:
    """A bar of at most `BAR_WIDTH` cells, in eighths of a cell where blocks can be drawn."""
    eighths = round(8 * BAR_WIDTH * fraction)
    if not unicode:
        return "#" * round(eighths / 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _work_ms(stage: PlannedStage) -> float:
    """Forward and backward of one micro-batch: what the bar shows."""
    return sum(stage.forward_ms) + sum(stage.backward_ms)


def limits_line(pipeline: Pipeline) -> str:
    """What the iteration time consists of."""
    shares = pipeline.critical_path
    first, end = shares.bottleneck
    within = sum(shares.stages[first:end])
    types = "/".join(dict.fromkeys(stage.accelerator for stage in pipeline.stages[first:end]))
    if end - first == 1:
        who, whose = f"stage {first} ({types})", "its forwards and backwards are"
    else:
        who = f"stages {first}-{end - 1} together ({types})"
        whose = "their forwards and backwards are"
    parts = [f"{whose} {percent(within)} of the critical path"]
    parts += [f"those of other stages {percent(sum(shares.stages) - within)}"] if end - first < pipeline.pp else []
    parts += [f"transfers {percent(shares.transfers)}", f"gradient all-reduce {percent(shares.all_reduce)}"]
    return f"Limited by {who}: {', '.join(parts)}."


def _alternatives(plan: Plan, stream: TextIO) -> Table:
    """The plan and the next best ones, with how much slower they are."""
    columns = Columns(stream, "Next best, one for each outer choice")
    columns.number("#", "ms", "slower", "DP", "TP", "PP", "micro-batch")
    columns.name("schedule")
    best_ms = plan.pipeline.iteration_time_ms
    for number, other in enumerate(plan.alternatives, start=2):
        chunks = f" x{other.num_chunks}" if other.num_chunks > 1 else ""
        columns.row(
            str(number),
            milliseconds(other.iteration_time_ms),
            percent(other.iteration_time_ms / best_ms - 1),
            str(other.dp),
            str(other.tp) if other.tp is not None else "by stage",
            str(other.pp),
            str(other.micro_batch_size),
            other.schedule + chunks,
        )
    return columns.table()


def search_line(search: SearchSummary) -> str:
    """What the search did."""
    lines = [
        f"Search: {search.policy}, {plural(search.outer_choices, 'outer choice')}, "
        f"{plural(search.nodes, 'search node')}, {plural(search.simulations, 'simulation')}, {search.seconds:.2f} s."
    ]
    return "\n".join([*lines, *(f"Warning: {warning}" for warning in search.warnings)])
