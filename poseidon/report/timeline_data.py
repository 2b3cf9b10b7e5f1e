"""The timeline as the page's script reads it: flat lists over all operations, so that 40,000 of them stay small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from poseidon.report.messages import Times
from poseidon.report.simulated import Simulated
from poseidon.simulate import AllReduceStep, OperationStep, Step

MOST_DRAWN = 400_000
"""Operations of a page; more make a file that browsers open slowly (about 33 bytes each), and a trace viewer is the
better place."""
NS_DIGITS = 6
"""Decimals of a millisecond that are kept: nanoseconds."""


def timeline_to_json(simulated: Simulated) -> dict[str, Any] | None:
    """The lists, or None for more operations than a page draws.

    Operations are numbered stage by stage. `sender` is the operation whose message one takes (-1: none), `sent` and
    `wire` when that left and how long it took, the latter as an index into `wire_ms`. A step of `path` is
    [operation, -1, start, end], [sender, receiver's stage, start, end] or [-1, stage, start, end]: an all-reduce.
    """
    timeline = simulated.timeline
    order = timeline.order
    if order.num_operations > MOST_DRAWN:
        return None
    actions = [action for stage in order.stages for action in stage]
    data: dict[str, Any] = {
        "iteration_ms": timeline.iteration_time_ms,
        "num_chunks": order.num_chunks,
        "stages": [_stage_to_json(simulated, stage) for stage in range(order.num_stages)],
        "kinds": "".join(action.kind for action in actions),
        "microbatch": [action.microbatch for action in actions],
        "start": _rounded(timeline.start_ms),
        **_messages_to_json(simulated, len(actions)),
        "path": _path_to_json(simulated),
    }
    if order.num_chunks > 1:
        data["chunk"] = [action.chunk for action in actions]
    return data


def _stage_to_json(simulated: Simulated, stage: int) -> dict[str, Any]:
    times, words = simulated.times, simulated.words[stage]
    by_kind = {"F": times.forward_ms, "B": times.backward_ms, "I": times.input_ms, "W": times.weight_ms}
    [all_reduce_start] = _rounded([simulated.messages.all_reduce_ms[stage]])
    return {
        "short": words.short,
        "full": words.full,
        "count": len(simulated.timeline.order.stages[stage]),
        "ms": {kind: per_stage[stage].tolist() for kind, per_stage in by_kind.items()},
        "all_reduce": [all_reduce_start, simulated.timeline.stages[stage].all_reduce_ms],
    }


def _rounded(values: Sequence[float] | Times) -> list[float]:
    return [round(float(value), NS_DIGITS) for value in values]


def _messages_to_json(simulated: Simulated, num_operations: int) -> dict[str, Any]:
    messages = simulated.messages
    took = np.round(messages.arrived_ms - messages.sent_ms, NS_DIGITS)
    wires, wire = np.unique(took, return_inverse=True)
    senders, sent = np.full(num_operations, -1), np.zeros(num_operations)
    by_operation = np.zeros(num_operations, dtype=np.int64)
    senders[messages.receiver] = messages.sender
    sent[messages.receiver] = messages.sent_ms
    by_operation[messages.receiver] = wire
    data = {"sender": senders.tolist(), "wire": by_operation.tolist(), "wire_ms": wires.tolist()}
    # Overlapped messages leave when their operation ends: the script knows that.
    return {**data, "sent": _rounded(sent)} if simulated.timeline.transfers == "blocking" else data


def _path_to_json(simulated: Simulated) -> list[list[float]]:
    timeline = simulated.timeline
    places = {
        (stage, action): number
        for number, (stage, action) in enumerate(
            (stage, action) for stage, actions in enumerate(timeline.order.stages) for action in actions
        )
    }

    def written(step: Step) -> list[float]:
        start, end = _rounded([step.start_ms, step.end_ms])
        if isinstance(step, AllReduceStep):
            return [-1, step.stage, start, end]
        number = places[step.stage, step.action]
        return [number, -1 if isinstance(step, OperationStep) else step.to_stage, start, end]

    return [written(step) for step in timeline.critical_path]
