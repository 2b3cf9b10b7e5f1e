"""The trace is what the Trace Event Format asks for, and says what the simulator says."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from poseidon.plan.plan import Plan
from poseidon.report import Simulated, simulated_plan, trace_json

NEEDED: dict[str, dict[str, tuple[type, ...]]] = {
    "X": {"name": (str,), "cat": (str,), "ts": (float, int), "dur": (float, int)},
    "M": {"name": (str,), "args": (dict,)},
    "s": {"name": (str,), "cat": (str,), "id": (int,), "ts": (float, int)},
    "t": {"name": (str,), "cat": (str,), "id": (int,), "ts": (float, int)},
    "f": {"name": (str,), "cat": (str,), "id": (int,), "ts": (float, int), "bp": (str,)},
}
"""The fields that the document's sections on complete, metadata and flow events ask for, beside pid and tid."""
METADATA = {
    "process_name": "name",
    "thread_name": "name",
    "process_sort_index": "sort_index",
    "thread_sort_index": "sort_index",
}


def events_of(simulated: Simulated) -> list[dict[str, Any]]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    document = json.loads(trace_json(simulated), parse_constant=refuse)
    assert document["displayTimeUnit"] == "ms"
    events: list[dict[str, Any]] = document["traceEvents"]
    return events


def by_thread(events: list[dict[str, Any]]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """The slices (start, end) of each thread in nanoseconds, by their starts."""
    threads: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in events:
        if event["ph"] == "X":
            start = round(event["ts"] * 1e3)
            threads.setdefault((event["pid"], event["tid"]), []).append((start, start + round(event["dur"] * 1e3)))
    return {thread: sorted(slices) for thread, slices in threads.items()}


def test_every_event_has_the_fields_of_its_phase(random_iteration: Simulated) -> None:
    for event in events_of(random_iteration):
        for field, kinds in {"pid": (int,), "tid": (int,), **NEEDED[event["ph"]]}.items():
            assert isinstance(event[field], kinds), (event, field)
        if event["ph"] == "M":
            assert set(event["args"]) == {METADATA[event["name"]]}


def test_processes_and_threads_have_numbers_that_mean_nothing_else(random_iteration: Simulated) -> None:
    """To Perfetto 0 is the idle thread, and a thread with its process's number the main one, whatever its name."""
    places = {(event["pid"], event["tid"]) for event in events_of(random_iteration)}
    assert min(number for place in places for number in place) > 0
    assert len({tid for _, tid in places}) == len(places)
    assert not {pid for pid, _ in places} & {tid for _, tid in places}


def test_times_stay_exact_when_a_viewer_cuts_them_to_nanoseconds(random_iteration: Simulated) -> None:
    for event in events_of(random_iteration):
        for time in (event.get("ts", 0), event.get("dur", 0)):
            assert int(time * 1000) == time * 1000


def test_slices_of_a_thread_follow_each_other(random_iteration: Simulated) -> None:
    """Viewers refuse slices that overlap in part; ours never overlap at all."""
    for slices in by_thread(events_of(random_iteration)).values():
        assert all(before[1] <= after[0] for before, after in pairwise(slices))


def test_every_operation_and_every_message_that_takes_time_is_there(random_iteration: Simulated) -> None:
    events, timeline, messages = events_of(random_iteration), random_iteration.timeline, random_iteration.messages
    compute = [event for event in events if event["ph"] == "X" and event["cat"] not in ("all-reduce", "message")]
    expected = sorted(
        (item.stage, item.action.operation(timeline.order.num_chunks), item.start_ms, item.end_ms)
        for item in timeline.operations()
    )
    found = sorted((e["pid"] - 1, e["name"], e["ts"] / 1e3, (e["ts"] + e["dur"]) / 1e3) for e in compute)
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    assert [x for row in found for x in row[2:]] == pytest.approx([x for row in expected for x in row[2:]], abs=1e-4)
    travelling = int((messages.arrived_ms > messages.sent_ms).sum())
    assert sum(event["ph"] == "X" and event["cat"] == "message" for event in events) == travelling


def test_an_arrow_leads_from_slice_to_slice(random_iteration: Simulated) -> None:
    events = events_of(random_iteration)
    threads = by_thread(events)
    flows: dict[int, list[dict[str, Any]]] = {}
    for event in events:
        if event["ph"] in "stf":
            flows.setdefault(event["id"], []).append(event)
            at, slices = round(event["ts"] * 1e3), threads[event["pid"], event["tid"]]
            assert any(start <= at <= end for start, end in slices)
    assert len(flows) == len(random_iteration.messages.sender)
    for arrow in flows.values():
        assert "".join(event["ph"] for event in arrow) in ("sf", "stf")
        assert [event["ts"] for event in arrow] == sorted(event["ts"] for event in arrow)


def test_a_plan_has_a_named_process_for_each_stage(quickstart: Plan) -> None:
    events = events_of(simulated_plan(quickstart, "plan.json"))
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert len(names) == quickstart.pipeline.pp
    assert names[0] == "Stage 0: A6000, node 3, DP 2 x TP 2, layers 0-3"
    lanes = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {"compute", "sends"} <= lanes
