"""The records of a stages file and what must agree in them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from poseidon.inputs.fields import Count
from poseidon.inputs.file_model import PROBLEM, FileModel, Problem, is_number, shown
from poseidon.schedule import Action, Order, Placement, SplitSchedule, check_order, find_schedule, parse_operation
from poseidon.simulate.timeline import Transfers

MAX_MS = 1e12
MAX_BYTES = 1e18
MAX_OPERATIONS = 4_000_000
"""Operations of all stages that a file may ask for."""
MAX_ORDER_PROBLEMS = 20
"""Mistakes of an order that are listed."""

Milliseconds = Annotated[float, Field(strict=True, ge=0, le=MAX_MS)]


def _as_list(value: Any, most: float, kind: str, unit: str) -> Any:
    """One number stands for a list of one; anything else is left for the list's own checks."""
    if isinstance(value, list | tuple):
        return value
    if not is_number(value):
        message = f"expected a number, or a list with a number for each chunk, got {shown(value)}"
    elif not 0 <= value <= most:
        message = f"{shown(value)} is not a {kind}: 0 to {most:g} {unit} are accepted"
    else:
        return (value,)
    raise PydanticCustomError(PROBLEM, "{message}", {"message": message})


def _as_times(value: Any) -> Any:
    return _as_list(value, MAX_MS, "time", "ms")


def _as_sizes(value: Any) -> Any:
    return _as_list(value, MAX_BYTES, "size", "bytes")


PerChunk = Annotated[tuple[Milliseconds, ...], BeforeValidator(_as_times), Field(min_length=1)]
Size = Annotated[float, Field(strict=True, ge=0, le=MAX_BYTES)]
ChunkBytes = Annotated[tuple[Size, ...], BeforeValidator(_as_sizes), Field(min_length=1)]
OperationTexts = tuple[Annotated[str, Field(strict=True, max_length=100)], ...]


class StageEntry(FileModel):
    """One stage; times are per micro-batch, except that of the all-reduce."""

    forward_ms: PerChunk
    """Forward; with several chunks a list."""
    backward_ms: PerChunk
    """Full backward; with several chunks a list."""
    input_ms: PerChunk | None = None
    """Input part of a split backward; default: half of the backward."""
    weight_ms: PerChunk | None = None
    """Weight part of a split backward; default: what the input part leaves of the backward."""
    send_forward_ms: Milliseconds = 0.0
    """To the next stage; the last stage's goes to the first stage's next chunk."""
    send_backward_ms: Milliseconds = 0.0
    """To the previous stage; the first stage's goes to the last stage's previous chunk."""
    all_reduce_ms: Milliseconds = 0.0
    """Once per iteration, after the stage's last operation."""
    activation_bytes: ChunkBytes | None = None
    """What one micro-batch's forward keeps for its backward; with several chunks a list."""
    weight_input_bytes: ChunkBytes | None = None
    """What of it a split backward still holds between its input and its weight part; default: all of it."""

    def record_checks(self) -> Iterator[Problem]:
        """Every list has a number for each chunk, and the input part is a part of the backward."""
        for name in ("backward_ms", "input_ms", "weight_ms", "activation_bytes", "weight_input_bytes"):
            times = getattr(self, name)
            if times is not None and len(times) != len(self.forward_ms):
                yield Problem((name,), f"has {len(times)} chunks, but forward_ms has {len(self.forward_ms)}")
        if (
            self.input_ms is not None
            and self.weight_ms is None
            and any(map(float.__gt__, self.input_ms, self.backward_ms))
        ):
            yield Problem(("input_ms",), "is more than backward_ms; then weight_ms must be given, too")
        if self.weight_input_bytes is not None and self.activation_bytes is None:
            yield Problem(("weight_input_bytes",), "needs activation_bytes, too")

    def split_ms(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Times of the input and of the weight part of a split backward, chunk by chunk."""
        inputs = self.input_ms or tuple(time / 2 for time in self.backward_ms)
        rest = tuple(max(0.0, whole - part) for whole, part in zip(self.backward_ms, inputs, strict=True))
        return inputs, self.weight_ms or rest


class StagesModel(FileModel):
    """A whole stages file, without its `schema`."""

    schedule: Annotated[str, Field(strict=True, max_length=100)]
    """Name of the schedule; with `operations` a mere label."""
    num_micro_batches: Count
    """Micro-batches of one iteration."""
    num_chunks: Count = 1
    """Chunks of layers per stage."""
    depths: tuple[Count, ...] = ()
    """Depth of each link between stages, for adaptive_1f1b."""
    transfers: Transfers = "overlapped"
    """Whether activations and gradients travel beside the computation, or the stages stand still meanwhile."""
    placement: Placement | None = None
    """How chunks run through the stages of `operations`: loop (default) or v; a schedule has its own."""
    stages: Annotated[tuple[StageEntry, ...], Field(min_length=1)]
    """The stages in pipeline order."""
    operations: tuple[OperationTexts, ...] | None = None
    """For each stage its operations in order (``F0``; with chunks ``F0.1``); replaces the schedule's own order."""

    def record_checks(self) -> Iterator[Problem]:
        """The times fit the chunks, and the schedule or the operations can be run."""
        for index, stage in enumerate(self.stages):
            if len(stage.forward_ms) != self.num_chunks:
                message = f"has {len(stage.forward_ms)} numbers; num_chunks asks for {self.num_chunks}"
                yield Problem(("stages", index, "forward_ms"), message)
        num_operations = 2 * len(self.stages) * self.num_micro_batches * self.num_chunks
        if num_operations > MAX_OPERATIONS:
            message = f"makes {num_operations:,} operations; at most {MAX_OPERATIONS:,} are accepted"
            yield Problem(("num_micro_batches",), message)
        elif self.operations is None:
            yield from self._schedule_problems()
        elif len(self.operations) != len(self.stages):
            yield Problem(
                ("operations",),
                f"has {len(self.operations)} list(s), but each of the {len(self.stages)} stages needs one",
            )
        else:
            yield from islice(self._order_problems(self.operations), MAX_ORDER_PROBLEMS)
        if len({stage.activation_bytes is None for stage in self.stages}) > 1:
            yield Problem(("stages",), "have activation_bytes in part: give it for every stage or for none")

    def _schedule_problems(self) -> Iterator[Problem]:
        try:
            schedule = find_schedule(self.schedule)
        except ValueError as error:
            yield Problem(("schedule",), str(error))
            return
        reason = schedule.check_shape(len(self.stages), self.num_micro_batches, self.num_chunks, depths=self.depths)
        if reason is not None:
            yield Problem(("schedule",), reason)
        own = schedule.placement if isinstance(schedule, SplitSchedule) else "loop"
        if self.placement not in (None, own):
            yield Problem(("placement",), f"{schedule.name} runs its chunks in a {own}: leave placement out")

    def _order_problems(self, operations: tuple[OperationTexts, ...]) -> Iterator[Problem]:
        readable = True
        for stage, texts in enumerate(operations):
            for position, text in enumerate(texts):
                try:
                    parse_operation(text)
                except ValueError as error:
                    readable = False
                    yield Problem(("operations", stage, position), str(error))
        if readable:
            for mistake in check_order(self._given_order(operations)):
                location = ("operations", mistake.stage, mistake.position)
                exists = mistake.position < len(operations[mistake.stage])
                yield Problem(location if exists else location[:2], mistake.message)

    def order(self) -> Order:
        """The order of the operations: the file's own, else the schedule's."""
        if self.operations is not None:
            return self._given_order(self.operations)
        sizes = (len(self.stages), self.num_micro_batches, self.num_chunks)
        return find_schedule(self.schedule).order(*sizes, depths=self.depths)

    def _given_order(self, operations: tuple[OperationTexts, ...]) -> Order:
        actions: dict[str, Action] = {text: parse_operation(text) for texts in operations for text in texts}
        stages = tuple(tuple(actions[text] for text in texts) for texts in operations)
        return Order(len(stages), self.num_micro_batches, self.num_chunks, stages, self.placement or "loop")
