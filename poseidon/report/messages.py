"""When every activation and gradient travels, and when each stage's all-reduce begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poseidon.simulate import BlockingGraph, Graph, StageTimes, Timeline
from poseidon.simulate.blocking_path import node_starts
from poseidon.simulate.operations import NONE, Indices

Times = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Messages:
    """All messages between stages, one entry each; operations are numbered stage by stage, as in `Timeline.start_ms`.

    A message leaves at `sent_ms` and is there at `arrived_ms`. `all_reduce_ms` is [stage]: when its all-reduce begins.
    """

    sender: Indices
    receiver: Indices
    sent_ms: Times
    arrived_ms: Times
    all_reduce_ms: Times


def messages_of(graph: Graph | BlockingGraph, times: StageTimes, timeline: Timeline) -> Messages:
    """The messages of a timeline that was simulated from this graph with these times."""
    return _overlapped(graph, times, timeline) if isinstance(graph, Graph) else _blocking(graph, times)


def _overlapped(graph: Graph, times: StageTimes, timeline: Timeline) -> Messages:
    """A message leaves when its operation ends, and takes what its link takes."""
    operations, listing, weights = graph.operations, graph.listing, graph.weights(times)
    slots = np.empty_like(listing.slot)
    slots[listing.entries] = listing.slot
    receiver = np.flatnonzero(operations.sender != NONE).astype(np.int32)
    sender = operations.sender[receiver]
    links = listing.link[slots[receiver]]
    sent_ms: Times = timeline.end_ms[sender]
    took_ms = np.where(links < 0, 0.0, weights.transfers[links])
    return Messages(sender, receiver, sent_ms, sent_ms + took_ms, timeline.end_ms[operations.starts[1:] - 1])


def _blocking(graph: BlockingGraph, times: StageTimes) -> Messages:
    """A message leaves when both its stages are there: they are nodes of the graph, behind the operations."""
    listed = np.empty(len(graph.listing.entries))
    graph.kernel.ends(*graph.weights(times), listed)
    end_ms = np.empty_like(listed)
    end_ms[graph.listing.entries] = listed
    first = len(graph.operations.stage)
    nodes = slice(first, first + len(graph.messages))
    return Messages(
        np.array([message.sender for message in graph.messages], dtype=np.int32),
        np.array([message.receiver for message in graph.messages], dtype=np.int32),
        node_starts(graph, end_ms)[nodes],
        end_ms[nodes],
        end_ms[list(graph.ends)],
    )
