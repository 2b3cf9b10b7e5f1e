"""The iteration as a trace that Perfetto and Chrome's trace viewer load.

The format is the JSON of the "Trace Event Format" document of the Chromium project (Google, 2016): complete events
(``X``) in microseconds, metadata (``M``) that name processes and threads, flow events (``s``, ``t``, ``f``) for arrows.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from typing import Any

from poseidon.report.breakdown import stage_of
from poseidon.report.simulated import Simulated

TICKS_PER_US = 8
"""Times are eighths of a microsecond. Viewers turn microseconds into whole nanoseconds and cut off the rest; an eighth
is exact in both, so that a slice ends where the next one begins, not a nanosecond later (Perfetto would nest the two).
"""
THREADS_PER_STAGE = 100_000
"""Threads have numbers of their own, not below 1: to Perfetto, 0 is the idle thread, and one with its process's number
the main thread."""
COMPUTE = 0
"""Thread of a stage's operations; messages that it sends follow, in as many threads as are under way at once."""
WORDS = {"F": "forward", "B": "backward", "I": "backward, input part", "W": "backward, weight part"}

Event = dict[str, Any]


def trace_json(simulated: Simulated) -> str:
    """The trace document: one process for each stage, threads for operations and for messages that it sends."""
    events = [*_metadata(simulated), *_operations(simulated), *_all_reduces(simulated), *_messages(simulated)]
    # Viewers bind an arrow's end to the slice that is open at its time, so slices come first.
    order = {"M": 0, "X": 1, "s": 2, "t": 2, "f": 2}
    events.sort(key=lambda event: (event["ph"] != "M", event.get("ts", 0.0), order[event["ph"]]))
    document = {
        "displayTimeUnit": "ms",
        "otherData": {"title": simulated.title, "shape": simulated.shape, "written by": "poseidon report"},
        "traceEvents": events,
    }
    return json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _metadata(simulated: Simulated) -> Iterator[Event]:
    digits = len(str(len(simulated.words) - 1))
    for stage, words in enumerate(simulated.words):
        # Perfetto sorts processes by name: 02 goes before 10.
        name = f"Stage {stage:0{digits}}{words.full.removeprefix(f'Stage {stage}')}"
        yield _named("process_name", stage, COMPUTE, {"name": name})
        yield _named("process_sort_index", stage, COMPUTE, {"sort_index": stage})
        yield _named("thread_name", stage, COMPUTE, {"name": "compute"})
        yield _named("thread_sort_index", stage, COMPUTE, {"sort_index": COMPUTE})


def _named(name: str, stage: int, thread: int, args: dict[str, Any]) -> Event:
    return {"ph": "M", "name": name, **_place(stage, thread), "args": args}


def _ticks(ms: float) -> int:
    return round(ms * 1000 * TICKS_PER_US)


def _place(stage: int, thread: int) -> Event:
    return {"pid": stage + 1, "tid": (stage + 1) * THREADS_PER_STAGE + thread}


def _slice(
    name: str, category: str, stage: int, thread: int, start_ms: float, end_ms: float, args: dict[str, Any]
) -> Event:
    start, end = _ticks(start_ms), _ticks(end_ms)
    times = {"ts": start / TICKS_PER_US, "dur": (end - start) / TICKS_PER_US}
    return {"ph": "X", "name": name, "cat": category, **_place(stage, thread), **times, "args": args}


def _operations(simulated: Simulated) -> Iterator[Event]:
    num_chunks = simulated.timeline.order.num_chunks
    for item in simulated.timeline.operations():
        action = item.action
        args = {"micro-batch": action.microbatch, "chunk": action.chunk}
        name, category = action.operation(num_chunks), WORDS[action.kind]
        yield _slice(name, category, item.stage, COMPUTE, item.start_ms, item.end_ms, args)


def _all_reduces(simulated: Simulated) -> Iterator[Event]:
    starts = simulated.messages.all_reduce_ms.tolist()
    for stage, (start, use) in enumerate(zip(starts, simulated.timeline.stages, strict=True)):
        if use.all_reduce_ms > 0:
            yield _slice("all-reduce", "all-reduce", stage, COMPUTE, start, start + use.all_reduce_ms, {})


def _messages(simulated: Simulated) -> Iterator[Event]:
    """A slice for each message on its sender, and an arrow from operation over message to operation.

    Slices of a thread must not overlap in part, so messages under way at once have threads of their own.
    """
    timeline, messages = simulated.timeline, simulated.messages
    stages = stage_of(timeline).tolist()
    actions = [action for stage in timeline.order.stages for action in stage]
    starts, ends = timeline.start_ms.tolist(), timeline.end_ms.tolist()
    lanes = [_Lanes() for _ in timeline.stages]
    columns = (messages.sent_ms, messages.arrived_ms, messages.sender, messages.receiver)
    rows = sorted(zip(*(column.tolist() for column in columns), strict=True))
    for number, (sent, arrived, sender, receiver) in enumerate(rows):
        stage, to_stage = stages[sender], stages[receiver]
        name = actions[sender].operation(timeline.order.num_chunks)
        flow = {"name": name, "cat": "message", "id": number}
        yield {"ph": "s", **flow, **_place(stage, COMPUTE), "ts": _middle(starts[sender], ends[sender])}
        if arrived > sent:
            thread = COMPUTE + 1 + lanes[stage].take(sent, arrived)
            args = {"from stage": stage, "to stage": to_stage}
            yield _slice(f"{name} to stage {to_stage}", "message", stage, thread, sent, arrived, args)
            yield {"ph": "t", **flow, **_place(stage, thread), "ts": _middle(sent, arrived)}
        end = _middle(starts[receiver], ends[receiver])
        yield {"ph": "f", "bp": "e", **flow, **_place(to_stage, COMPUTE), "ts": end}
    for stage, lane in enumerate(lanes):
        yield from _lane_names(stage, lane.count)


def _lane_names(stage: int, count: int) -> Sequence[Event]:
    return [
        event
        for lane in range(count)
        for event in (
            _named("thread_name", stage, COMPUTE + 1 + lane, {"name": "sends" if count == 1 else f"sends {lane + 1}"}),
            _named("thread_sort_index", stage, COMPUTE + 1 + lane, {"sort_index": COMPUTE + 1 + lane}),
        )
    ]


def _middle(start_ms: float, end_ms: float) -> float:
    return _ticks(0.5 * (start_ms + end_ms)) / TICKS_PER_US


class _Lanes:
    """Gives spans, in the order of their starts, to as few lanes as they need."""

    def __init__(self) -> None:
        self.count = 0
        self._busy: list[tuple[float, int]] = []
        self._free: list[int] = []

    def take(self, start: float, end: float) -> int:
        """The lowest lane that is free from `start` on."""
        while self._busy and self._busy[0][0] <= start:
            heapq.heappush(self._free, heapq.heappop(self._busy)[1])
        if not self._free:
            heapq.heappush(self._free, self.count)
            self.count += 1
        lane = heapq.heappop(self._free)
        heapq.heappush(self._busy, (end, lane))
        return lane
