"""What the page says about a plan beside its timeline: memory, stages, alternatives, search, sensitivity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from poseidon.output.numbers import gigabytes, milliseconds, milliseconds_column, percent, plural, ranges
from poseidon.output.plan_view import degrees_text, limits_line, proof_words
from poseidon.plan.plan import Pipeline, Plan
from poseidon.report.breakdown import Breakdown
from poseidon.report.figures import Part, gain_bars, memory_bar
from poseidon.report.sensitivity import Answer, Sensitivity
from poseidon.report.simulated import layers_text
from poseidon.report.words import NO_GAIN, gain_words, kept_together, share_words
from poseidon.search.result import SolutionStatus

Row = tuple[str, ...]


@dataclass(frozen=True)
class MemoryRow:
    """A stage's memory: its parts, the limit's place in percent of the bar, and the sum in words."""

    parts: tuple[Part, ...]
    limit: float
    words: str


@dataclass(frozen=True)
class SensitivityRow:
    """One change: bar, gain and new time in words, and what was found."""

    label: str
    bar: Part | None
    gain: str
    time: str
    found: str
    brief: str
    note: str


def plan_context(
    plan: Plan, iteration_ms: float, breakdown: Breakdown, sensitivity: Sensitivity | str | None
) -> dict[str, Any]:
    """Everything that the template shows of a plan, in words; `iteration_ms` is the simulated time."""
    pipeline = plan.pipeline
    found = sensitivity if isinstance(sensitivity, Sensitivity) else None
    return {
        "value": plan,
        "pipeline": pipeline,
        "proof": proof_words(plan),
        "is_optimal": plan.status is SolutionStatus.OPTIMAL,
        "mismatch": _mismatch(pipeline, iteration_ms),
        "limits": kept_together(limits_line(pipeline)),
        "idle": [f"node {part.node}: {ranges(part.devices)}" for part in pipeline.idle],
        "num_idle": sum(len(part.devices) for part in pipeline.idle),
        "memory": list(_memory_rows(pipeline)),
        "stages": list(_stage_rows(pipeline, breakdown)),
        "alternatives": list(_alternative_rows(plan)),
        "search": list(_search_rows(plan)),
        "inputs": list(_input_rows(plan)),
        "files": list(plan.experiment.files.items()),
        "sensitivity": found,
        "sensitivity_reason": sensitivity if isinstance(sensitivity, str) else "",
        "sensitivity_rows": [] if found is None else list(sensitivity_rows(found)),
    }


def _mismatch(pipeline: Pipeline, iteration_ms: float) -> str:
    """What is wrong with a plan whose own time is not the simulated one; empty otherwise."""
    if abs(pipeline.iteration_time_ms - iteration_ms) <= TOLERANCE * iteration_ms:
        return ""
    return (
        f"The plan says {milliseconds(pipeline.iteration_time_ms)} ms an iteration, its stages take "
        f"{milliseconds(iteration_ms)} ms: poseidon verify says what is wrong with it."
    )


TOLERANCE = 1e-9
"""Relative, as `poseidon verify` has it."""


def _memory_rows(pipeline: Pipeline) -> Iterator[MemoryRow]:
    scale = max(max(stage.memory.limit_bytes, stage.memory.total_bytes) for stage in pipeline.stages)
    for stage in pipeline.stages:
        memory = stage.memory
        words = f"{gigabytes(memory.total_bytes)} / {gigabytes(memory.limit_bytes)} GB"
        limit = 100 * memory.limit_bytes / scale if scale else 0.0
        yield MemoryRow(memory_bar(memory, scale), round(limit, 4), words)


def _stage_rows(pipeline: Pipeline, breakdown: Breakdown) -> Iterator[Row]:
    stages = pipeline.stages
    forward_ms = milliseconds_column([sum(stage.forward_ms) for stage in stages])
    backward_ms = milliseconds_column([sum(stage.backward_ms) for stage in stages])
    send_ms = milliseconds_column([stage.send_forward_ms for stage in stages])
    all_reduce_ms = milliseconds_column([stage.all_reduce_ms for stage in stages])
    for number, (stage, parts) in enumerate(zip(stages, breakdown.stages, strict=True)):
        yield (
            str(number),
            stage.accelerator,
            ranges(stage.nodes),
            f"{stage.dp} x {stage.tp}",
            "+".join(map(str, stage.layers)),
            layers_text(stage).removeprefix("layers "),
            forward_ms[number],
            backward_ms[number],
            send_ms[number],
            all_reduce_ms[number],
            gigabytes(stage.memory.total_bytes),
            f"{stage.memory.in_flight:.4g}",
            share_words(stage.bubble_ms / pipeline.iteration_time_ms if pipeline.iteration_time_ms else 0.0),
            share_words(parts.exposed_transfer_ms / parts.total_ms if parts.total_ms else 0.0),
        )


def _alternative_rows(plan: Plan) -> Iterator[Row]:
    best_ms = plan.pipeline.iteration_time_ms
    for number, pipeline in enumerate((plan.pipeline, *plan.alternatives), start=1):
        slower = pipeline.iteration_time_ms / best_ms - 1 if best_ms else 0.0
        chunks = f" x {pipeline.num_chunks} chunks" if pipeline.num_chunks > 1 else ""
        yield (
            str(number) if number > 1 else "1 (this plan)",
            milliseconds(pipeline.iteration_time_ms),
            percent(slower) if number > 1 else "-",
            "by stage" if pipeline.dp_differs else str(pipeline.dp),
            "by stage" if pipeline.tp is None else str(pipeline.tp),
            str(pipeline.pp),
            str(pipeline.micro_batch_size),
            pipeline.schedule + chunks,
            pipeline.recompute,
            percent(pipeline.bubble_fraction),
        )


def _search_rows(plan: Plan) -> Iterator[Row]:
    search = plan.search
    yield "Status", proof_words(plan)
    yield "Iteration time", f"{milliseconds(plan.pipeline.iteration_time_ms)} ms"
    known = plan.lower_bound_ms > 0
    yield "Lower bound", f"{milliseconds(plan.lower_bound_ms)} ms" if known else "none is known"
    yield "Gap", percent(plan.gap) if known else "not known"
    yield "Policy", search.policy
    yield "Ended", str(search.termination)
    yield "Seconds", f"{search.seconds:.2f}"
    yield (
        "Effort",
        (
            f"{plural(search.outer_choices, 'outer choice')}, {plural(search.nodes, 'search node')}, "
            f"{plural(search.simulations, 'simulation')}"
        ),
    )
    yield "Where", f"{search.backend}, {plural(search.workers, 'worker')}"
    if search.pruned:
        yield "Branches cut", ", ".join(f"{rule} {count:,}" for rule, count in search.pruned.items())
    for warning in search.warnings:
        yield "Warning", warning


def _input_rows(plan: Plan) -> Iterator[Row]:
    experiment = plan.experiment
    training = experiment.training
    yield "Experiment", experiment.name
    yield "Model", f"{experiment.model.name}, {plural(experiment.model.num_layers, 'layer')}"
    nodes = sum(group.count for group in experiment.cluster.nodes)
    devices = plural(experiment.cluster.num_devices, "device")
    yield "Cluster", f"{experiment.cluster.name}, {plural(nodes, 'node')}, {devices}"
    batch = f"global batch {training.global_batch_size:,}"
    yield "Training", f"{batch}, {training.seq_length:,} tokens a sequence, {training.precision}"
    yield "Profile", experiment.profile


def sensitivity_rows(sensitivity: Sensitivity) -> Iterator[SensitivityRow]:
    """The answers in words, in the order of the searches."""
    base = sensitivity.base_tokens_per_second
    gains = [answer.gain(base) for answer in sensitivity.answers]
    for answer, gain, bar in zip(sensitivity.answers, gains, gain_bars(gains), strict=True):
        time = "-" if answer.iteration_time_ms is None else f"{milliseconds(answer.iteration_time_ms)} ms"
        brief = answer.reason if answer.pipeline is None else degrees_text(answer.pipeline)
        note = note_of(answer, gain)
        yield SensitivityRow(answer.change.label, bar, gain_words(gain), time, answer.found, brief, note)


def note_of(answer: Answer, gain: float | None) -> str:
    """What must be known to read an answer right; empty where there is nothing."""
    if answer.status == "unknown":
        return "no plan was found in time"
    if answer.change.kind == "node" and (gain is None or gain < -NO_GAIN):
        return "nothing faster was found with every device in use: the new node would stay idle"
    if answer.status == "feasible" and answer.gap is not None:
        return f"proven within {percent(answer.gap)} of the best"
    return ""
