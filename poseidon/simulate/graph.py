"""The graph of an order: built once, then evaluated with any number of different weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poseidon.schedule import Order
from poseidon.simulate._longest_path import LongestPath
from poseidon.simulate.listing import Listing, list_operations
from poseidon.simulate.operations import NONE, Operations, collect_operations, refusal
from poseidon.simulate.size import GraphSize
from poseidon.simulate.stage_times import StageTimes


class Weights(NamedTuple):
    """What the kernel needs to time one candidate, as contiguous float64 arrays."""

    durations: NDArray[np.float64]
    """[slot]: slots are (kind, chunk, stage) in C order; kinds are F and B, then I and W if some backward is split."""
    transfers: NDArray[np.float64]
    """[link]: forward from each stage, then backward from each stage."""
    all_reduce: NDArray[np.float64]
    """[stage]."""


@dataclass(frozen=True, eq=False)
class Graph:
    """An order's operations, what they wait for, and the kernel that finds the longest path; see `build_graph`."""

    order: Order
    operations: Operations
    listing: Listing
    kernel: LongestPath

    @property
    def num_stages(self) -> int:
        """Number of pipeline stages."""
        return self.operations.num_stages

    def size(self, num_pipelines: int = 1) -> GraphSize:
        """Numbers of nodes and edges for as many identical pipelines, counted from the graph itself."""
        return GraphSize(
            num_pipelines=num_pipelines,
            num_stages=self.num_stages,
            num_operations=len(self.operations.stage),
            num_messages=int(np.count_nonzero(self.operations.sender != NONE)),
            num_successions=int(np.count_nonzero(self.operations.previous != NONE)),
        )

    def weights(self, times: StageTimes) -> Weights:
        """The weights of the graph for these times; ValueError if they belong to another shape."""
        durations = stage_durations(self.operations, times)
        return Weights(durations, np.concatenate([times.send_forward_ms, times.send_backward_ms]), times.all_reduce_ms)


def stage_durations(operations: Operations, times: StageTimes) -> NDArray[np.float64]:
    """[slot]: how long operations of a slot take; ValueError if the times belong to another shape."""
    shape, expected = (times.num_stages, times.num_chunks), (operations.num_stages, operations.num_chunks)
    if shape != expected:
        raise ValueError(f"times of (stages, chunks) = {shape} do not fit a graph of {expected}")
    kinds = (times.forward_ms, times.backward_ms, times.input_ms, times.weight_ms)[: operations.num_kinds]
    return np.concatenate([kind.T.ravel() for kind in kinds])


def build_graph(order: Order) -> Graph:
    """The graph of an order (paper section 4.1); ValueError says what is wrong with an order that cannot be run."""
    operations = collect_operations(order)
    listing = list_operations(operations)
    if listing is None:
        raise refusal(order)
    arrays = (listing.previous, listing.sender, listing.slot, listing.link, listing.last)
    return Graph(order, operations, listing, LongestPath(*arrays, listing.num_links))
