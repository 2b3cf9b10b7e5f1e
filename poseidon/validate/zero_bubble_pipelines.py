"""The zero-bubble paper's pipelines in our simulator."""

from __future__ import annotations

from functools import lru_cache

from poseidon.schedule import Order, SplitCost, automatic_order, find_schedule
from poseidon.simulate import StageTimes, Timeline, Transfers, simulate, stage_times
from poseidon.validate.zero_bubble_data import Setting


@lru_cache(maxsize=64)
def order_of(schedule: str, setting: Setting) -> Order:
    """The order of one of the paper's schedules, by the paper's name."""
    stages, micro_batches = setting.num_stages, setting.num_micro_batches
    match schedule:
        case "1F1B" | "ZB-H1" | "ZB-H2":
            return find_schedule(schedule).order(stages, micro_batches)
        case "1F1B-I":
            return find_schedule("interleaved_1f1b").order(stages, micro_batches, setting.num_chunks)
        case "ZB-1p" | "ZB-2p":
            limit = int(schedule[3]) * stages * setting.activation
            times = setting.forward_ms, setting.input_ms, setting.weight_ms
            cost = SplitCost(*times, setting.activation, setting.kept, limit)
            return automatic_order([cost] * stages, micro_batches, setting.transfer_ms)
    raise ValueError(f"the paper has no schedule {schedule!r}")


def timeline_of(schedule: str, setting: Setting, transfers: Transfers = "overlapped") -> Timeline:
    """The simulated iteration."""
    order = order_of(schedule, setting)
    return simulate(order, times_of(setting, order.num_chunks), transfers=transfers)


def times_of(setting: Setting, num_chunks: int) -> StageTimes:
    """The stages' times; a chunk takes its part of them, a transfer as long as ever."""
    stages = setting.num_stages

    def each(time_ms: float) -> list[list[float]]:
        return [[time_ms / num_chunks] * num_chunks] * stages

    return stage_times(
        each(setting.forward_ms),
        each(setting.input_ms + setting.weight_ms),
        input_ms=each(setting.input_ms),
        weight_ms=each(setting.weight_ms),
        send_forward_ms=[setting.transfer_ms] * stages,
        send_backward_ms=[setting.transfer_ms] * stages,
    )


def cost_ms(schedule: str, timeline: Timeline) -> float:
    """What the paper takes as the iteration's cost.

    ZB-H2, ZB-1p and ZB-2p let every stage step its optimizer and start anew by itself (paper, section 4, "post-
    validation"), so theirs is the longest time of a stage from its first forward to its end.
    """
    if schedule not in ("ZB-H2", "ZB-1p", "ZB-2p"):
        return timeline.iteration_time_ms
    starts: dict[int, float] = {}
    ends: dict[int, float] = {}
    for operation in timeline.operations():
        starts.setdefault(operation.stage, operation.start_ms)
        ends[operation.stage] = operation.end_ms
    return max(ends[stage] - start for stage, start in starts.items())
