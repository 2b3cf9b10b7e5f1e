"""A simulated iteration, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

from rich.console import RenderableType
from rich.text import Text

from poseidon.output.console import Columns, rendered
from poseidon.output.numbers import milliseconds, milliseconds_column, percent
from poseidon.schedule import in_flight
from poseidon.simulate import AllReduceStep, OperationStep, Step, Timeline, TransferStep

SHOWN_STEPS = 24
"""Steps of the critical path that are written out; the first and the last ones."""


def timeline_text(timeline: Timeline, stream: TextIO, *, operations: bool, peak_bytes: Sequence[float] = ()) -> str:
    """Iteration time, stages and critical path; with `operations` also when each operation starts and ends.

    `peak_bytes` has each stage's largest activations, where they are known.
    """
    whole = timeline.iteration_time_ms
    how = ", transfers block" if timeline.transfers == "blocking" else ""
    parts: list[RenderableType] = [
        Text(f"{milliseconds(whole)} ms an iteration, bubble {percent(timeline.bubble_fraction)}{how}", style="bold"),
        Text(""),
        _stages(timeline, stream, peak_bytes),
        Text(""),
        Text(f"Critical path: {_path(timeline)}"),
    ]
    if operations:
        parts += [Text(""), _operations(timeline, stream)]
    return rendered(parts, stream)


def _stages(timeline: Timeline, stream: TextIO, peak_bytes: Sequence[float]) -> RenderableType:
    columns = Columns(stream)
    columns.number("Stage", "Compute ms", "All-reduce ms", "Busy ms", "Bubble ms", "Bubble", "In flight")
    if peak_bytes:
        columns.number("Peak GB")
    held = in_flight(timeline.order)
    times = [
        milliseconds_column([getattr(stage, name) for stage in timeline.stages])
        for name in ("compute_ms", "all_reduce_ms", "busy_ms", "bubble_ms")
    ]
    for index, stage in enumerate(timeline.stages):
        peak = [f"{peak_bytes[index] / 1e9:.2f}"] if peak_bytes else []
        share = stage.bubble_ms / timeline.iteration_time_ms if timeline.iteration_time_ms else 0.0
        columns.row(str(index), *(column[index] for column in times), percent(share), f"{held[index]:.4g}", *peak)
    return columns.table()


def _operations(timeline: Timeline, stream: TextIO) -> RenderableType:
    columns = Columns(stream)
    columns.number("Stage", "Operation", "Start ms", "End ms")
    starts, ends = milliseconds_column(timeline.start_ms.tolist()), milliseconds_column(timeline.end_ms.tolist())
    for item, start, end in zip(timeline.operations(), starts, ends, strict=True):
        columns.row(str(item.stage), item.action.operation(timeline.order.num_chunks), start, end)
    return columns.table()


def _path(timeline: Timeline) -> str:
    """The path as ``stage 0: F0 > 1: F0 B0``, shortened in the middle."""
    steps = [step for step in timeline.critical_path if not isinstance(step, TransferStep)]
    if len(steps) <= SHOWN_STEPS:
        return _written(steps, timeline)
    half = SHOWN_STEPS // 2
    hidden = len(steps) - 2 * half
    return f"{_written(steps[:half], timeline)} ... {hidden:,} more ... {_written(steps[-half:], timeline)}"


def _written(steps: Sequence[Step], timeline: Timeline) -> str:
    words: list[str] = []
    stage = -1
    for step in steps:
        if step.stage != stage:
            stage = step.stage
            words.append(f"> stage {stage}:" if words else f"stage {stage}:")
        words.append(
            step.action.operation(timeline.order.num_chunks) if isinstance(step, OperationStep) else "all-reduce"
        )
    return " ".join(words)


def timeline_to_json(timeline: Timeline, *, operations: bool, peak_bytes: Sequence[float] = ()) -> dict[str, Any]:
    """The answer of ``poseidon simulate`` (contract, "Stages file")."""
    stages: list[dict[str, Any]] = [
        {
            "compute_ms": stage.compute_ms,
            "all_reduce_ms": stage.all_reduce_ms,
            "busy_ms": stage.busy_ms,
            "bubble_ms": stage.bubble_ms,
            "in_flight": held,
        }
        for stage, held in zip(timeline.stages, in_flight(timeline.order), strict=True)
    ]
    for entry, peak in zip(stages, peak_bytes, strict=False):
        entry["peak_activation_bytes"] = peak
    if operations:
        for stage in stages:
            stage["operations"] = []
        for item in timeline.operations():
            name = item.action.operation(timeline.order.num_chunks)
            entry = {"operation": name, "start_ms": item.start_ms, "end_ms": item.end_ms}
            stages[item.stage]["operations"].append(entry)
    return {
        "iteration_time_ms": timeline.iteration_time_ms,
        "bubble_fraction": timeline.bubble_fraction,
        "transfers": timeline.transfers,
        "stages": stages,
        "critical_path": [_step(step, timeline.order.num_chunks) for step in timeline.critical_path],
    }


def _step(step: Step, num_chunks: int) -> dict[str, Any]:
    times = {"start_ms": step.start_ms, "end_ms": step.end_ms}
    if isinstance(step, AllReduceStep):
        return {"stage": step.stage, "all_reduce": True, **times}
    name = step.action.operation(num_chunks)
    if isinstance(step, TransferStep):
        return {"stage": step.stage, "to_stage": step.to_stage, "transfer": name, **times}
    return {"stage": step.stage, "operation": name, **times}
