"""The records of a problem line and what must agree in them (docs/problem-format.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from poseidon.cost.problem import Kind, LayerCost, Matrix, Pool
from poseidon.inputs.fields import PRINTABLE, Count, CountOrZero, LayerCount, Switch
from poseidon.inputs.file_model import FileModel, Problem
from poseidon.schedule import get_schedule

MAX_MS = 1e12
MAX_OPERATIONS = 10_000_000
"""Operations of all stages that a problem may ask for."""


def _as_list(value: Any) -> Any:
    """One limit stands for a list of one; anything else is left for the list's own checks."""
    return (value,) if isinstance(value, int) else value


Label = Annotated[str, Field(strict=True, min_length=1, max_length=1_000, pattern=PRINTABLE)]
Milliseconds = Annotated[float, Field(strict=True, ge=0, le=MAX_MS)]
Limits = Annotated[tuple[CountOrZero, ...], BeforeValidator(_as_list), Field(min_length=1)]
Rows = tuple[tuple[Milliseconds | None, ...], ...]


class LayerTimes(FileModel):
    """Times of one layer, or of what a stage has on top of its layers."""

    forward_ms: Milliseconds = 0.0
    backward_ms: Milliseconds = 0.0
    all_reduce_ms: Milliseconds = 0.0

    def cost(self) -> LayerCost:
        """As the search knows it."""
        return LayerCost(self.forward_ms, self.backward_ms, self.all_reduce_ms)


class KindEntry(FileModel):
    """What a stage can run on; its times are those of one layer, either of every type or type by type."""

    name: Label
    stages: Annotated[CountOrZero, Field(le=100_000)]
    """Stages that it fills: exactly so many; at most so many where devices may stay idle or are shared."""
    stages_per_node: Count = 1
    forward_ms: Milliseconds | None = None
    backward_ms: Milliseconds | None = None
    all_reduce_ms: Milliseconds = 0.0
    layers: dict[Label, LayerTimes] | None = None
    """Times of a layer of each type, instead of the three above."""
    first: LayerTimes = LayerTimes()
    """On top on the pipeline's first stage."""
    last: LayerTimes = LayerTimes()
    """On top on the pipeline's last stage."""
    max_layers: tuple[Limits, ...]
    """Most layers at each place of the pipeline; in place of a number a list with one for each first layer."""
    pool: Label | None = None
    """The pool that it takes devices from."""
    devices: Count = 1
    """Devices of the pool that a stage takes."""

    @classmethod
    def cross_checks(cls, data: Mapping[str, Any]) -> Iterator[Problem]:
        """Times are given in one of the two forms."""
        if "layers" not in data:
            for name in ("forward_ms", "backward_ms"):
                if data.get(name) is None:
                    yield Problem((name,), "is missing (or give layers: the times of a layer of each type)")

    def kind(self, type_names: tuple[str, ...]) -> Kind:
        """As the search knows it, with costs in the order of the type names."""
        times = LayerTimes(
            forward_ms=self.forward_ms or 0.0, backward_ms=self.backward_ms or 0.0, all_reduce_ms=self.all_reduce_ms
        )
        return Kind(
            name=self.name,
            stages=self.stages,
            stages_per_node=self.stages_per_node,
            layers=tuple((self.layers[name] if self.layers else times).cost() for name in type_names),
            first=self.first.cost(),
            last=self.last.cost(),
            max_layers=self.max_layers,
            pool=self.pool or "",
            devices=self.devices,
        )


class TransferTimes(FileModel):
    """Times over a boundary between two stages, for each pair of kinds; null where they cannot talk."""

    intra_node: Rows
    inter_node: Rows


class PoolEntry(FileModel):
    """Devices that several kinds share."""

    devices: Count
    devices_per_node: Count

    def pool(self, name: str) -> Pool:
        """As the search knows it."""
        return Pool(name, self.devices, self.devices_per_node)


class ProblemModel(FileModel):
    """A whole problem, without its `schema`."""

    name: Label
    schedule: Annotated[str, Field(strict=True, max_length=100)]
    num_chunks: Annotated[Count, Field(le=1_000)] = 1
    num_micro_batches: Count
    num_layers: LayerCount
    num_stages: Count | None = None
    """Stages of the pipeline; default: those of the kinds together."""
    assignment: Literal["node", "stage"] = "node"
    kinds: Annotated[tuple[KindEntry, ...], Field(min_length=1, max_length=64)]
    transfer_ms: TransferTimes
    layer_types: tuple[Label, ...] = ()
    """Type of each layer, in order; default: all of one type."""
    pools: dict[Label, PoolEntry] = Field(default_factory=dict)
    allow_idle: Switch = False
    """Whether devices may stay without a stage."""
    most_depth: Annotated[Count, Field(le=16)] = 1
    """Largest depth of a link between stages (adaptive_1f1b)."""

    @property
    def type_names(self) -> tuple[str, ...]:
        """The distinct layer types in the order of their first appearance."""
        return tuple(dict.fromkeys(self.layer_types)) or ("layer",)

    @property
    def pipeline_stages(self) -> int:
        """Stages of the pipeline."""
        return self.num_stages if self.num_stages is not None else sum(kind.stages for kind in self.kinds)

    @property
    def num_places(self) -> int:
        """Entries of `max_layers` that are needed (see `poseidon.cost.problem.places`)."""
        stages = self.pipeline_stages
        return stages + (self.most_depth - 1) * stages * (stages - 1) // 2

    def record_checks(self) -> Iterator[Problem]:
        """Sizes agree, names exist, and the schedule can run the shape."""
        if len({kind.name for kind in self.kinds}) < len(self.kinds):
            yield Problem(("kinds",), "two kinds have the same name; names must differ")
        yield from self._stage_problems()
        if self.layer_types and len(self.layer_types) != self.num_layers:
            message = f"has {len(self.layer_types)} entries; one for each of the {self.num_layers} layers is needed"
            yield Problem(("layer_types",), message)
        if self.num_chunks > 1 and len(self.type_names) > 1:
            yield Problem(("num_chunks",), "more than one chunk needs layers of one type")
        for index, kind in enumerate(self.kinds):
            yield from self._kind_problems(kind, ("kinds", index))
        for name, rows in (("intra_node", self.transfer_ms.intra_node), ("inter_node", self.transfer_ms.inter_node)):
            if len(rows) != len(self.kinds) or any(len(row) != len(self.kinds) for row in rows):
                message = f"must be {len(self.kinds)} rows of {len(self.kinds)} numbers, one for each pair of kinds"
                yield Problem(("transfer_ms", name), message)

    def _stage_problems(self) -> Iterator[Problem]:
        total = sum(kind.stages for kind in self.kinds)
        if self.pipeline_stages < 1:
            yield Problem(("kinds",), "no kind fills a stage; at least one stage is needed")
            return
        if self.num_stages not in (None, total) and not (self.allow_idle or self.pools):
            yield Problem(("num_stages",), f"is {self.num_stages}, but the kinds' stages add up to {total}")
        num_operations = 2 * self.pipeline_stages * self.num_micro_batches * self.num_chunks
        if num_operations > MAX_OPERATIONS:
            message = f"makes {num_operations:,} operations; at most {MAX_OPERATIONS:,} are accepted"
            yield Problem(("num_micro_batches",), message)
            return
        yield from self._schedule_problems()

    def _schedule_problems(self) -> Iterator[Problem]:
        try:
            schedule = get_schedule(self.schedule)
        except ValueError as error:
            yield Problem(("schedule",), str(error))
            return
        has_depths = schedule.name == "adaptive_1f1b"
        if self.most_depth > 1 and not has_depths:
            yield Problem(("most_depth",), f"{schedule.name} has no depths to choose: only 1 is accepted")
        depths = (1,) * (self.pipeline_stages - 1) if has_depths else ()
        reason = schedule.check_shape(self.pipeline_stages, self.num_micro_batches, self.num_chunks, depths=depths)
        if reason is not None:
            yield Problem(("schedule",), reason)

    def _kind_problems(self, kind: KindEntry, location: tuple[str | int, ...]) -> Iterator[Problem]:
        if len(kind.max_layers) < self.num_places:
            message = f"has {len(kind.max_layers)} entries; one for each of the {self.num_places} places is needed"
            yield Problem((*location, "max_layers"), message)
        for place, row in enumerate(kind.max_layers):
            if len(row) not in (1, self.num_layers):
                message = f"has {len(row)} entries; one for each of the {self.num_layers} first layers is needed"
                yield Problem((*location, "max_layers", place), message)
        if kind.layers is not None:
            missing = [name for name in self.type_names if name not in kind.layers]
            if missing:
                yield Problem((*location, "layers"), f"has no times for layer type {', '.join(missing)}")
        if kind.pool is not None and kind.pool not in self.pools:
            yield Problem((*location, "pool"), f"{kind.pool!r} is not declared in pools")


def matrix(rows: Rows) -> Matrix:
    """Transfer times as the search knows them: infinite where two kinds cannot talk."""
    return tuple(tuple(float("inf") if value is None else value for value in row) for row in rows)
