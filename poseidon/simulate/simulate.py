"""Times an order: one call from an order and its times to a timeline, or to the iteration time alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from poseidon.schedule import Order
from poseidon.simulate._longest_path import NUM_LANES
from poseidon.simulate.blocking import BlockingGraph, build_blocking_graph
from poseidon.simulate.blocking_path import blocking_path, node_starts
from poseidon.simulate.critical_path import critical_path
from poseidon.simulate.graph import Graph, Weights, build_graph
from poseidon.simulate.operations import NONE, Indices
from poseidon.simulate.stage_times import StageTimes
from poseidon.simulate.timeline import StageUse, Timeline, Transfers


def simulate(
    order: Order | Graph | BlockingGraph, times: StageTimes, *, transfers: Transfers = "overlapped"
) -> Timeline:
    """The timeline of an order (or of its graph, if it is timed again and again) with these times.

    Each operation starts as soon as the one before it on its stage has ended and its activation or gradient has
    arrived; transfers run beside computation (paper section 4.1), or hold the stages up if they are ``blocking``; each
    stage's all-reduce follows its last operation. A graph has its kind of transfers already. ValueError for an order
    that cannot be run, or times of another shape.
    """
    if isinstance(order, Order):
        order = build_graph(order) if transfers == "overlapped" else build_blocking_graph(order)
    return _overlapped(order, times) if isinstance(order, Graph) else _blocking(order, times)


def _overlapped(graph: Graph, times: StageTimes) -> Timeline:
    weights = graph.weights(times)
    listed = np.empty(len(graph.listing.entries))
    iteration_time_ms = graph.kernel.ends(*weights, listed)
    end_ms = np.empty_like(listed)
    end_ms[graph.listing.entries] = listed
    start_ms = _starts(graph, weights, end_ms)
    for array in (start_ms, end_ms):
        array.setflags(write=False)
    return Timeline(
        order=graph.order,
        iteration_time_ms=iteration_time_ms,
        start_ms=start_ms,
        end_ms=end_ms,
        stages=_stage_uses(graph.listing.slot, weights, iteration_time_ms),
        critical_path=critical_path(graph.order, graph.operations, start_ms, end_ms, weights.all_reduce),
    )


def _blocking(graph: BlockingGraph, times: StageTimes) -> Timeline:
    weights, listing = graph.weights(times), graph.listing
    listed = np.empty(len(listing.entries))
    iteration_time_ms = graph.kernel.ends(*weights, listed)
    end_ms = np.empty_like(listed)
    end_ms[listing.entries] = listed
    start_ms = node_starts(graph, end_ms)
    path = blocking_path(graph, start_ms, end_ms, weights.all_reduce)
    num_operations, num_durations = len(graph.operations.stage), len(weights.durations) // 2
    slots = listing.slot[listing.entries < num_operations] % num_durations
    num_stages_durations = num_durations - graph.operations.num_links - 1
    compute = Weights(weights.durations[:num_stages_durations], weights.transfers, weights.all_reduce)
    starts, ends = start_ms[:num_operations].copy(), end_ms[:num_operations].copy()
    for array in (starts, ends):
        array.setflags(write=False)
    return Timeline(
        order=graph.order,
        iteration_time_ms=iteration_time_ms,
        start_ms=starts,
        end_ms=ends,
        stages=_stage_uses(slots, compute, iteration_time_ms),
        critical_path=path,
        transfers="blocking",
    )


def iteration_time(graph: Graph, times: StageTimes) -> float:
    """The iteration time alone, in milliseconds."""
    return graph.kernel.time(*graph.weights(times))


def iteration_times(graph: Graph, candidates: Sequence[StageTimes]) -> list[float]:
    """The iteration time of each candidate, in milliseconds; several are evaluated at once, with the same results."""
    results: list[float] = []
    for first in range(0, len(candidates), NUM_LANES):
        group = [graph.weights(times) for times in candidates[first : first + NUM_LANES]]
        lanes = group + group[-1:] * (NUM_LANES - len(group))
        columns = [np.stack(arrays, axis=1) for arrays in zip(*lanes, strict=True)]
        out = np.empty(NUM_LANES)
        graph.kernel.times(columns[0], columns[1], columns[2], out)
        results += out[: len(group)].tolist()
    return results


def _starts(graph: Graph, weights: Weights, end_ms: NDArray[np.float64]) -> NDArray[np.float64]:
    """When each operation starts, by the kernel's own sums: exactly an end, or an end plus a transfer."""
    operations, listing = graph.operations, graph.listing
    incoming = np.where(listing.link < 0, 0.0, weights.transfers[listing.link])
    slots = np.empty_like(listing.slot)
    slots[listing.entries] = listing.slot
    free = np.where(operations.previous == NONE, 0.0, end_ms[operations.previous])
    arrival = np.where(operations.sender == NONE, 0.0, end_ms[operations.sender] + incoming[slots])
    return np.maximum(free, arrival)


def _stage_uses(slots: Indices, weights: Weights, iteration_time_ms: float) -> tuple[StageUse, ...]:
    """`slots` has one entry per operation."""
    num_stages = len(weights.all_reduce)
    totals = np.bincount(slots, minlength=len(weights.durations)) * weights.durations
    uses = []
    for compute_ms, all_reduce_ms in zip(
        totals.reshape(-1, num_stages).sum(axis=0).tolist(), weights.all_reduce.tolist(), strict=True
    ):
        busy_ms = compute_ms + all_reduce_ms
        # A stage without bubble may miss the iteration time by rounding.
        uses.append(StageUse(compute_ms, all_reduce_ms, busy_ms, max(0.0, iteration_time_ms - busy_ms)))
    return tuple(uses)
