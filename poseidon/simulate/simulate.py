"""Times an order: one call from an order and its times to a timeline, or to the iteration time alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from poseidon.schedule import Order
from poseidon.simulate._longest_path import NUM_LANES
from poseidon.simulate.critical_path import critical_path
from poseidon.simulate.graph import Graph, Weights, build_graph
from poseidon.simulate.operations import NONE
from poseidon.simulate.stage_times import StageTimes
from poseidon.simulate.timeline import StageUse, Timeline


def simulate(order: Order | Graph, times: StageTimes) -> Timeline:
    """The timeline of an order (or of its graph, if it is timed again and again) with these times.

    Each operation starts as soon as the one before it on its stage has ended and its activation or gradient has
    arrived; transfers run beside computation; each stage's all-reduce follows its last operation (paper section 4.1).
    ValueError for an order that cannot be run, or times of another shape.
    """
    graph = order if isinstance(order, Graph) else build_graph(order)
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
        stages=_stage_uses(graph, weights, iteration_time_ms),
        critical_path=critical_path(graph.order, graph.operations, start_ms, end_ms, weights.all_reduce),
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


def _stage_uses(graph: Graph, weights: Weights, iteration_time_ms: float) -> tuple[StageUse, ...]:
    num_stages, slots = graph.num_stages, graph.listing.slot
    totals = np.bincount(slots, minlength=len(weights.durations)) * weights.durations
    uses = []
    for compute_ms, all_reduce_ms in zip(
        totals.reshape(-1, num_stages).sum(axis=0).tolist(), weights.all_reduce.tolist(), strict=True
    ):
        busy_ms = compute_ms + all_reduce_ms
        # A stage without bubble may miss the iteration time by rounding.
        uses.append(StageUse(compute_ms, all_reduce_ms, busy_ms, max(0.0, iteration_time_ms - busy_ms)))
    return tuple(uses)
