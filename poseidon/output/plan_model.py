"""The records of a plan file, and the plan that they describe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from poseidon.cost.memory import StageMemory
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.fields import Count, CountOrZero, Name
from poseidon.inputs.file_model import FileModel, Problem
from poseidon.plan.plan import CriticalPathShares, NodeDevices, Pipeline, Plan, PlannedStage, SearchSummary
from poseidon.search.result import SolutionStatus, TerminationReason

Milliseconds = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
Bytes = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1 + 1e-9, allow_inf_nan=False)]
Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _as_list(value: Any) -> Any:
    """One value stands for a list of one."""
    return value if isinstance(value, list | tuple) else (value,)


def _as_ranges(value: Any) -> Any:
    """One pair stands for a list of one pair."""
    is_pair = isinstance(value, list | tuple) and value and not isinstance(value[0], list | tuple)
    return (value,) if is_pair else value


PerChunk = Annotated[tuple[Milliseconds, ...], BeforeValidator(_as_list), Field(min_length=1)]
Counts = Annotated[tuple[Count, ...], BeforeValidator(_as_list), Field(min_length=1)]
Ranges = Annotated[tuple[tuple[CountOrZero, CountOrZero], ...], BeforeValidator(_as_ranges), Field(min_length=1)]


class _Memory(FileModel):
    weights_bytes: Bytes
    gradients_bytes: Bytes
    optimizer_bytes: Bytes
    activations_bytes: Bytes
    recomputed_bytes: Bytes
    reserve_bytes: Bytes


class _Devices(FileModel):
    node: CountOrZero
    devices: tuple[CountOrZero, ...]

    def devices_of(self) -> NodeDevices:
        return NodeDevices(self.node, self.devices)


class _Shares(FileModel):
    stages: tuple[Fraction, ...]
    transfers: Fraction
    all_reduce: Fraction


class StageRecord(FileModel):
    """One stage of a plan file."""

    kind: Name
    accelerator: Name
    dp: Count | None = None
    """Given, with `micro_batch_size`, where stages differ in DP."""
    micro_batch_size: Count | None = None
    tp: Count
    layers: Counts
    layer_range: Ranges
    nodes: tuple[CountOrZero, ...]
    ranks: tuple[CountOrZero, ...]
    devices: tuple[tuple[CountOrZero, ...], ...]
    forward_ms: PerChunk
    backward_ms: PerChunk
    send_forward_ms: Milliseconds
    send_backward_ms: Milliseconds
    all_reduce_ms: Milliseconds
    bubble_ms: Milliseconds
    memory_bytes: Bytes
    memory_limit_bytes: Bytes
    in_flight: Number
    memory: _Memory

    def record_checks(self) -> Iterator[Problem]:
        """What is written twice is the same."""
        counts = tuple(end - first for first, end in self.layer_range)
        if counts != self.layers:
            yield Problem(("layers",), f"{list(self.layers)} is not what layer_range holds, {list(counts)}")
        if len({len(self.layers), len(self.forward_ms), len(self.backward_ms)}) > 1:
            yield Problem(("layers",), "layers, forward_ms and backward_ms need as many chunks")
        if len(self.nodes) != len(self.devices):
            yield Problem(
                ("devices",), f"has {len(self.devices)} lists; one for each of the {len(self.nodes)} nodes is needed"
            )
        num_devices = sum(map(len, self.devices))
        if self.dp is not None and self.dp * self.tp != num_devices:
            yield Problem(("dp",), f"{self.dp} x TP {self.tp} is not the {num_devices} devices of the stage")
        total = self.stage_memory().total_bytes
        if abs(total - self.memory_bytes) > 1:
            yield Problem(("memory_bytes",), f"{self.memory_bytes:,.0f} is not the sum of memory's parts, {total:,.0f}")

    def stage_memory(self) -> StageMemory:
        """The memory of one device."""
        parts = self.memory
        return StageMemory(
            weights_bytes=parts.weights_bytes,
            gradients_bytes=parts.gradients_bytes,
            optimizer_bytes=parts.optimizer_bytes,
            activations_bytes=parts.activations_bytes,
            recomputed_bytes=parts.recomputed_bytes,
            reserve_bytes=parts.reserve_bytes,
            limit_bytes=self.memory_limit_bytes,
            in_flight=self.in_flight,
        )

    def stage(self) -> PlannedStage:
        """The stage as a value."""
        return PlannedStage(
            kind=self.kind,
            accelerator=self.accelerator,
            tp=self.tp,
            layer_ranges=self.layer_range,
            devices=tuple(NodeDevices(*part) for part in zip(self.nodes, self.devices, strict=True)),
            ranks=self.ranks,
            forward_ms=self.forward_ms,
            backward_ms=self.backward_ms,
            send_forward_ms=self.send_forward_ms,
            send_backward_ms=self.send_backward_ms,
            all_reduce_ms=self.all_reduce_ms,
            bubble_ms=self.bubble_ms,
            memory=self.stage_memory(),
        )


class PipelineRecord(FileModel):
    """One configuration of a plan file."""

    iteration_time_ms: Milliseconds
    outer_choice: Name
    dp: Count
    pp: Count
    micro_batch_size: Count
    num_micro_batches: Count
    schedule: Name
    num_chunks: Count
    recompute: Name
    tokens_per_second: Number
    mfu: Number
    bubble_fraction: Fraction
    critical_path: _Shares
    stages: Annotated[tuple[StageRecord, ...], Field(min_length=1)]
    idle: tuple[_Devices, ...]
    depths: tuple[Count, ...] = ()

    def record_checks(self) -> Iterator[Problem]:
        """The stages are as many as `pp`, each with as many chunks as `num_chunks`."""
        if len(self.stages) != self.pp:
            yield Problem(("pp",), f"is {self.pp}, but there are {len(self.stages)} stages")
        if len(self.critical_path.stages) != len(self.stages):
            yield Problem(("critical_path", "stages"), f"needs one number for each of the {len(self.stages)} stages")
        sequences = self.dp * self.micro_batch_size
        for index, stage in enumerate(self.stages):
            own = None if stage.dp is None or stage.micro_batch_size is None else stage.dp * stage.micro_batch_size
            if own not in (None, sequences):
                message = f"x dp {stage.dp} is {own}, not the {sequences} sequences of a micro-batch"
                yield Problem(("stages", index, "micro_batch_size"), message)
            if len(stage.layers) != self.num_chunks:
                yield Problem(
                    ("stages", index, "layers"), f"has {len(stage.layers)} chunks; num_chunks is {self.num_chunks}"
                )

    def pipeline(self) -> Pipeline:
        """The configuration as a value."""
        shares = self.critical_path
        return Pipeline(
            outer_choice=self.outer_choice,
            schedule=self.schedule,
            dp=self.dp,
            micro_batch_size=self.micro_batch_size,
            num_micro_batches=self.num_micro_batches,
            num_chunks=self.num_chunks,
            depths=self.depths,
            recompute=self.recompute,
            iteration_time_ms=self.iteration_time_ms,
            tokens_per_second=self.tokens_per_second,
            mfu=self.mfu,
            bubble_fraction=self.bubble_fraction,
            critical_path=CriticalPathShares(shares.stages, shares.transfers, shares.all_reduce),
            stages=tuple(stage.stage() for stage in self.stages),
            idle=tuple(part.devices_of() for part in self.idle),
        )


class _Search(FileModel):
    policy: Name
    termination: TerminationReason
    seconds: Number
    outer_choices: CountOrZero
    nodes: Annotated[int, Field(ge=0)]
    simulations: Annotated[int, Field(ge=0)]
    pruned: dict[str, Annotated[int, Field(ge=0)]]
    workers: Count
    backend: Name
    warnings: tuple[str, ...]
    curve: tuple[tuple[Number, Number], ...]

    def summary(self) -> SearchSummary:
        return SearchSummary(
            policy=self.policy,
            termination=self.termination,
            seconds=self.seconds,
            outer_choices=self.outer_choices,
            nodes=self.nodes,
            simulations=self.simulations,
            pruned=self.pruned,
            workers=self.workers,
            backend=self.backend,
            warnings=self.warnings,
            curve=self.curve,
        )


class PlanRecord(PipelineRecord):
    """A whole plan file, without its `schema`."""

    status: Literal["optimal", "feasible"]
    lower_bound_ms: Milliseconds
    gap: Fraction
    alternatives: tuple[PipelineRecord, ...]
    search: _Search
    inputs: Experiment

    def plan(self) -> Plan:
        """The plan as a value."""
        return Plan(
            status=SolutionStatus(self.status),
            pipeline=self.pipeline(),
            lower_bound_ms=self.lower_bound_ms,
            gap=self.gap,
            experiment=self.inputs,
            search=self.search.summary(),
            alternatives=tuple(alternative.pipeline() for alternative in self.alternatives),
        )
