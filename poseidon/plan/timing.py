"""Times a planned pipeline with the project's simulator."""

from __future__ import annotations

from collections.abc import Sequence

from poseidon.plan.plan import CriticalPathShares, Pipeline
from poseidon.schedule import Order, get_schedule
from poseidon.simulate import OperationStep, StageTimes, Timeline, TransferStep, simulate, stage_times


def pipeline_order(pipeline: Pipeline) -> Order:
    """The operations of every stage; ValueError where the schedule refuses the shape."""
    sizes = (pipeline.pp, pipeline.num_micro_batches, pipeline.num_chunks)
    return get_schedule(pipeline.schedule).order(*sizes, depths=pipeline.depths)


def pipeline_times(pipeline: Pipeline) -> StageTimes:
    """The stages' times as the plan gives them."""
    stages = pipeline.stages
    return stage_times(
        [stage.forward_ms for stage in stages],
        [stage.backward_ms for stage in stages],
        send_forward_ms=[stage.send_forward_ms for stage in stages],
        send_backward_ms=[stage.send_backward_ms for stage in stages],
        all_reduce_ms=[stage.all_reduce_ms for stage in stages],
    )


def pipeline_timeline(pipeline: Pipeline) -> Timeline:
    """The simulated iteration of a pipeline."""
    return simulate(pipeline_order(pipeline), pipeline_times(pipeline))


def critical_path_shares(timeline: Timeline) -> CriticalPathShares:
    """What the critical path consists of."""
    stages = [0.0] * len(timeline.stages)
    transfers = all_reduce = 0.0
    for step in timeline.critical_path:
        duration = step.end_ms - step.start_ms
        if isinstance(step, OperationStep):
            stages[step.stage] += duration
        elif isinstance(step, TransferStep):
            transfers += duration
        else:
            all_reduce += duration
    total = timeline.iteration_time_ms or 1.0
    return CriticalPathShares(tuple(share / total for share in stages), transfers / total, all_reduce / total)


def bubble_fraction(timeline: Timeline, num_devices: Sequence[int]) -> float:
    """The part of the device time that is bubble; `num_devices` has the devices of each stage."""
    waiting = sum(count * use.bubble_ms for count, use in zip(num_devices, timeline.stages, strict=True))
    total = timeline.iteration_time_ms * sum(num_devices)
    return waiting / total if total else 0.0
