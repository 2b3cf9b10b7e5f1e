"""What a report is about: one simulated iteration, with a name and words for its stages."""

from __future__ import annotations

from dataclasses import dataclass

from poseidon.errors import InputError, Mistake
from poseidon.output.numbers import plural, ranges
from poseidon.output.plan_view import shape_line
from poseidon.plan.plan import Pipeline, Plan, PlannedStage
from poseidon.plan.timing import pipeline_order, pipeline_times
from poseidon.report.messages import Messages, messages_of
from poseidon.schedule import Order
from poseidon.simulate import StagesFile, StageTimes, Timeline, build_blocking_graph, build_graph, simulate
from poseidon.simulate.timeline import Transfers

MAX_OPERATIONS = 4_000_000
"""Operations that are simulated for a report; as many as a stages file may ask for."""


@dataclass(frozen=True)
class StageWords:
    """What a stage is called: beside its row, and in full."""

    short: str
    full: str


@dataclass(frozen=True, eq=False)
class Simulated:
    """A simulated iteration with all its messages; `plan` is None for a stages file.

    `num_devices` has the devices of each stage (1 each where they are not known): what weighs a stage's waiting.
    """

    title: str
    shape: str
    times: StageTimes
    timeline: Timeline
    messages: Messages
    words: tuple[StageWords, ...]
    num_devices: tuple[int, ...]
    plan: Plan | None = None

    @property
    def iteration_time_ms(self) -> float:
        """The simulated time of the iteration."""
        return self.timeline.iteration_time_ms


def simulated_plan(plan: Plan, file: str) -> Simulated:
    """The plan's iteration; raises InputError, which names `file`, where it can't be simulated."""
    pipeline = plan.pipeline
    operations = 2 * pipeline.pp * pipeline.num_micro_batches * pipeline.num_chunks
    if operations > MAX_OPERATIONS:
        message = f"makes {operations:,} operations; at most {MAX_OPERATIONS:,} are accepted"
        raise InputError(Mistake(file, "num_micro_batches", message))
    try:
        order = pipeline_order(pipeline)
    except ValueError as error:
        raise InputError(Mistake(file, "schedule", str(error))) from None
    times = pipeline_times(pipeline)
    timeline, messages = _simulated(order, times, "overlapped", file)
    return Simulated(
        title=f"{plan.experiment.model.name} on {plan.experiment.cluster.name}",
        shape=shape_line(pipeline),
        times=times,
        timeline=timeline,
        messages=messages,
        words=tuple(_words(pipeline, number) for number in range(pipeline.pp)),
        num_devices=tuple(stage.num_devices for stage in pipeline.stages),
        plan=plan,
    )


def simulated_stages(stages: StagesFile, file: str, name: str) -> Simulated:
    """A stages file's iteration; `name` is its title, `file` what an InputError names whose order can't be run."""
    order = stages.order
    timeline, messages = _simulated(order, stages.times, stages.transfers, file)
    chunks = f" with {order.num_chunks} chunks" if order.num_chunks > 1 else ""
    how = ", transfers block" if stages.transfers == "blocking" else ""
    micro_batches = plural(order.num_micro_batches, "micro-batch", "micro-batches")
    words = tuple(StageWords("", f"Stage {number}") for number in range(order.num_stages))
    return Simulated(
        title=name,
        shape=f"{plural(order.num_stages, 'stage')}, {stages.schedule}{chunks}, {micro_batches}{how}",
        times=stages.times,
        timeline=timeline,
        messages=messages,
        words=words,
        num_devices=(1,) * order.num_stages,
    )


def _simulated(order: Order, times: StageTimes, transfers: Transfers, file: str) -> tuple[Timeline, Messages]:
    try:
        graph = build_graph(order) if transfers == "overlapped" else build_blocking_graph(order)
    except ValueError as error:  # an order that needs transfers to be overlapped
        raise InputError(Mistake(file, "transfers", str(error))) from None
    timeline = simulate(graph, times)
    return timeline, messages_of(graph, times, timeline)


def _words(pipeline: Pipeline, number: int) -> StageWords:
    stage = pipeline.stages[number]
    nodes = f"node{'s' if len(stage.nodes) > 1 else ''} {ranges(stage.nodes)}"
    full = f"Stage {number}: {stage.accelerator}, {nodes}, DP {stage.dp} x TP {stage.tp}, {layers_text(stage)}"
    return StageWords(stage.accelerator, full)


def layers_text(stage: PlannedStage) -> str:
    """``layers 0-3``; with chunks ``layers 0-1, 8-9``."""
    parts = [str(first) if end == first + 1 else f"{first}-{end - 1}" for first, end in stage.layer_ranges]
    return f"layers {', '.join(parts)}"
