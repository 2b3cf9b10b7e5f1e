"""Which physical nodes and devices take which places of a new plan, so that as few bytes as possible move.

Nodes that nothing tells apart may change places, and so may the devices inside a node: the plan takes as long. What a
device has to be given depends on nothing but its own place, so the best choice is an assignment of places to devices
inside each pair of nodes, and then one of nodes to nodes; both are solved exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from poseidon.cost import alike_nodes
from poseidon.inputs import Cluster
from poseidon.plan import NodeDevices, Pipeline
from poseidon.replan.assignment import Floats, least_cost_assignment
from poseidon.replan.holdings import Holding, Key

Device = tuple[int, int]
"""(node of the new cluster, device within it)."""
STAY_BYTES = 0.5
"""Where two choices move as many bytes, devices and nodes keep the places that the search gave them."""


@dataclass(frozen=True)
class Placed:
    """What each device of the new cluster has, and what the plan wants of each place."""

    kept: Mapping[Device, Holding]
    """By physical device."""
    wanted: Mapping[Device, Holding]
    """By place, as the search gave them out."""
    piece_bytes: Mapping[Device, Mapping[Key, float]]
    """By place."""


def kept_bytes(wanted: Holding, kept: Holding, sizes: Mapping[Key, float]) -> float:
    """What a device that has `kept` need not be given for `wanted`."""
    return sum(shard.overlap(kept[key]) * sizes[key] for key, shard in wanted.items() if key in kept)


def best_places(pipeline: Pipeline, cluster: Cluster, placed: Placed) -> Pipeline:
    """The pipeline on the nodes and devices that have most of what it needs."""
    target: dict[Device, Device] = {}
    for pool in alike_nodes(cluster):
        target |= _of_pool(pool.nodes, pool.group.devices, placed)
    return _moved(pipeline, target)


def _of_pool(nodes: Sequence[int], num_devices: int, placed: Placed) -> dict[Device, Device]:
    """The physical device of each place on nodes that are alike."""
    size = len(nodes)
    saved = np.zeros((size, size))
    inside: dict[tuple[int, int], list[int]] = {}
    wanted_parts = [_parts(placed.wanted, node, num_devices) for node in nodes]
    kept_parts = [_parts(placed.kept, node, num_devices) for node in nodes]
    for row, place in enumerate(nodes):
        for column, node in enumerate(nodes):
            if wanted_parts[row] & kept_parts[column]:
                savings = _savings(place, node, num_devices, placed)
                inside[row, column] = least_cost_assignment(_costs(savings))
                saved[row, column] = sum(savings[i, j] for i, j in enumerate(inside[row, column]))
    target: dict[Device, Device] = {}
    for row, column in enumerate(least_cost_assignment(_costs(saved))):
        devices = inside.get((row, column), list(range(num_devices)))
        target |= {(nodes[row], i): (nodes[column], j) for i, j in enumerate(devices)}
    return target


def _costs(savings: Floats) -> Floats:
    """Least cost is most bytes saved; staying counts a little."""
    return np.asarray(float(savings.max(initial=0.0)) - savings + STAY_BYTES * (1 - np.eye(len(savings))))


def _parts(holdings: Mapping[Device, Holding], node: int, num_devices: int) -> set[Key]:
    return {key for device in range(num_devices) for key in holdings.get((node, device), {})}


def _savings(place: int, node: int, num_devices: int, placed: Placed) -> Floats:
    """[place within the node][device within the node]: bytes that need not move."""
    savings = np.zeros((num_devices, num_devices))
    for i in range(num_devices):
        wanted = placed.wanted.get((place, i))
        if wanted is None:
            continue
        sizes = placed.piece_bytes[place, i]
        for j in range(num_devices):
            savings[i, j] = kept_bytes(wanted, placed.kept.get((node, j), {}), sizes)
    return savings


def _moved(pipeline: Pipeline, target: Mapping[Device, Device]) -> Pipeline:
    """The pipeline with each place on its physical device; ranks keep their places."""

    def moved(part: NodeDevices) -> NodeDevices:
        devices = [target[part.node, device] for device in part.devices]
        return NodeDevices(devices[0][0], tuple(device for _, device in devices))

    stages = tuple(replace(stage, devices=tuple(map(moved, stage.devices))) for stage in pipeline.stages)
    idle = sorted((moved(part) for part in pipeline.idle), key=lambda part: part.node)
    ordered = tuple(NodeDevices(part.node, tuple(sorted(part.devices))) for part in idle)
    return replace(pipeline, stages=stages, idle=ordered)
