"""Hands the cluster's devices to the stages of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from poseidon.cost.placement import Placement
from poseidon.inputs.cluster import Cluster
from poseidon.plan.plan import NodeDevices

Device = tuple[int, int]
"""(node, device within the node)."""


class _Shelf:
    """The devices of the nodes that one or several kinds draw from, in the order in which they are taken."""

    def __init__(self, placement: Placement) -> None:
        self.nodes = [(node, part.group.devices) for part in placement.parts for node in part.nodes]
        self.index = 0
        self.used = 0

    def skip_begun(self) -> None:
        """Leaves the rest of a node that was begun."""
        if self.used:
            self.index, self.used = self.index + 1, 0

    def take(self, count: int) -> tuple[NodeDevices, ...]:
        """The next `count` devices: inside one node, or whole nodes."""
        if self.used and self.used + count > self.nodes[self.index][1]:
            self.skip_begun()
        taken: list[NodeDevices] = []
        while count:
            node, size = self.nodes[self.index]
            end = min(size, self.used + count)
            taken.append(NodeDevices(node, tuple(range(self.used, end))))
            count -= end - self.used
            self.index, self.used = (self.index + 1, 0) if end == size else (self.index, end)
        return tuple(taken)


def stage_devices(placements: Sequence[Placement], assignment: str) -> tuple[tuple[NodeDevices, ...], ...]:
    """The devices of each stage, given the kind of each stage in pipeline order.

    Kinds take their nodes in pipeline order (contract, "Problem"). Under `assignment` ``node`` a node that was begun is
    left for good when the pipeline goes on elsewhere.
    """
    shelves: dict[tuple[int, ...], _Shelf] = {}
    current: _Shelf | None = None
    result = []
    for placement in placements:
        shelf = shelves.setdefault(placement.parts[0].nodes, _Shelf(placement))
        if assignment == "node" and current is not None and current is not shelf:
            current.skip_begun()
        current = shelf
        result.append(shelf.take(placement.devices_per_stage))
    return tuple(result)


def idle_devices(cluster: Cluster, stages: Sequence[Sequence[NodeDevices]]) -> tuple[NodeDevices, ...]:
    """The cluster's devices that no stage uses, node by node."""
    used = {(part.node, device) for parts in stages for part in parts for device in part.devices}
    sizes = [group.devices for group in cluster.nodes for _ in range(group.count)]
    free = ((node, [d for d in range(size) if (node, d) not in used]) for node, size in enumerate(sizes))
    return tuple(NodeDevices(node, tuple(devices)) for node, devices in free if devices)
