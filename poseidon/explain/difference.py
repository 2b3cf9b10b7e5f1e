"""Two plans side by side: what differs in their inputs and settings, and where the difference in time comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.explain.runs import runs
from poseidon.inputs import Experiment
from poseidon.inputs.file_model import shown
from poseidon.plan import Pipeline, Plan
from poseidon.plan.time_breakdown import PART_NAMES, TimeBreakdown, pipeline_breakdown

STEP_MS = 2.0**-20
"""Differences are rounded to this, about a nanosecond."""


def _stepped(ms: float) -> float:
    return round(ms / STEP_MS) * STEP_MS


@dataclass(frozen=True)
class Differs:
    """A setting with its value in each plan, as text."""

    name: str
    this: str
    other: str


@dataclass(frozen=True)
class Comparison:
    """A plan (this) and another one of the same model, batch and sequence."""

    this: Pipeline
    other: Pipeline
    this_time: TimeBreakdown
    other_time: TimeBreakdown
    inputs: tuple[Differs, ...]
    """What differs in what the plans were made for."""
    settings: tuple[Differs, ...]
    """What differs in the plans themselves."""

    @property
    def difference_ms(self) -> float:
        """What the other plan takes longer, to `STEP_MS`."""
        return _stepped(self.other.iteration_time_ms - self.this.iteration_time_ms)

    @property
    def parts_ms(self) -> tuple[float, float, float, float]:
        """The same by `PART_NAMES`: compute of the busiest stage, transfers, bubble, all-reduce.

        Whole multiples of `STEP_MS`, which floating point adds without rounding: they add up to `difference_ms`.
        """
        pairs = zip(self.other_time.parts, self.this_time.parts, strict=True)
        parts = [_stepped(other - this) for other, this in pairs]
        largest = max(range(len(parts)), key=lambda index: abs(parts[index]))
        parts[largest] += self.difference_ms - sum(parts)
        return (parts[0], parts[1], parts[2], parts[3])

    @property
    def main_part(self) -> str:
        """The name of the part that explains most of the difference."""
        sign = 1 if self.difference_ms >= 0 else -1
        return PART_NAMES[max(range(4), key=lambda index: sign * self.parts_ms[index])]


def compared(this: Plan, other: Plan, this_file: str, other_file: str) -> Comparison:
    """Sets two plans side by side; raises InputError for plans of another model, batch or sequence."""
    require_same_job(this.experiment, other.experiment, this_file, other_file)
    return Comparison(
        this=this.pipeline,
        other=other.pipeline,
        this_time=pipeline_breakdown(this.pipeline),
        other_time=pipeline_breakdown(other.pipeline),
        inputs=tuple(_input_differences(this.experiment, other.experiment)),
        settings=tuple(_settings(this.pipeline, other.pipeline)),
    )


def require_same_job(this: Experiment, other: Experiment, this_file: str, other_file: str) -> None:
    """Raises InputError unless an iteration of both does the same: model, global batch, sequence length."""
    pairs: list[tuple[str, Any, Any]] = [
        (f"model.{name}", value, getattr(other.model, name)) for name, value in this.model if name != "name"
    ]
    pairs += [
        (f"training.{name}", getattr(this.training, name), getattr(other.training, name))
        for name in ("global_batch_size", "seq_length")
    ]
    mistakes = [
        Mistake(
            other_file,
            f"inputs.{name}",
            f"is {shown(theirs)}, but {shown(ours)} in {this_file}: "
            "only iterations of the same model, batch and sequence can be compared",
        )
        for name, ours, theirs in pairs
        if ours != theirs
    ]
    if mistakes:
        raise InputError(mistakes[:1])


def _input_differences(this: Experiment, other: Experiment) -> Iterator[Differs]:
    """Cluster, profile and settings, field by field; what only steers the search is left out."""
    steering = {"top", "seed", "warmup_samples", "time_limit_s", "node_limit", "gap"}
    if _without_name(this.cluster.model_dump()) != _without_name(other.cluster.model_dump()):
        sizes = [f"{item.cluster.name}, {item.cluster.num_devices} devices" for item in (this, other)]
        yield Differs("cluster", *sizes)
    if this.profile != other.profile:
        yield Differs("profile", this.profile, other.profile)
    for part in ("training", "search"):
        for name, value in getattr(this, part):
            theirs = getattr(getattr(other, part), name)
            if value != theirs and name not in steering:
                yield Differs(f"{part}.{name}", _text(value), _text(theirs))


def _without_name(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "name"}


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)


def _settings(this: Pipeline, other: Pipeline) -> Iterator[Differs]:
    for name, ours, theirs in zip(SETTING_NAMES, _setting_texts(this), _setting_texts(other), strict=True):
        if ours != theirs:
            yield Differs(name, ours, theirs)


SETTING_NAMES = (
    "DP",
    "TP",
    "PP",
    "micro-batch size",
    "micro-batches",
    "schedule",
    "chunks",
    "recompute",
    "devices in use",
    "accelerators in order",
    "layers",
)


def _setting_texts(pipeline: Pipeline) -> tuple[str, ...]:
    stages = pipeline.stages
    dp = runs([str(stage.dp) for stage in stages]) if pipeline.dp_differs else str(pipeline.dp)
    tp = runs([str(stage.tp) for stage in stages]) if pipeline.tp is None else str(pipeline.tp)
    return (
        dp,
        tp,
        str(pipeline.pp),
        str(pipeline.micro_batch_size),
        str(pipeline.num_micro_batches),
        pipeline.schedule,
        str(pipeline.num_chunks),
        pipeline.recompute,
        str(pipeline.num_devices),
        runs([stage.accelerator for stage in stages]),
        runs(["+".join(map(str, stage.layers)) for stage in stages]),
    )
