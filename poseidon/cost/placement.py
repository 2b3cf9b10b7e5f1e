"""How stages of D x TP devices are cut from the nodes of a cluster.

Rank order is TP, then DP, then PP: a stage is D x TP consecutive devices of one accelerator type, inside one node or
over whole nodes. Nodes of one type make one kind of stage when they are alike; nodes of one type that differ (devices,
links, cluster) make separate kinds where a stage fits inside a node, and one kind for each cluster where a stage spans
nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from poseidon.inputs.cluster import Cluster, NodeGroup


@dataclass(frozen=True)
class AlikeNodes:
    """Nodes that nothing tells apart: one of their groups, and their numbers (from 0, in the cluster's order)."""

    group: NodeGroup
    nodes: tuple[int, ...]

    @property
    def num_devices(self) -> int:
        """Devices of all of them."""
        return len(self.nodes) * self.group.devices


@dataclass(frozen=True)
class Placement:
    """Stages of one kind, with the nodes that they fill in pipeline order.

    `parts` are the alike nodes they come from, in the order in which they are filled (one part unless a stage spans
    nodes).
    """

    name: str
    accelerator: str
    dp: int
    tp: int
    num_stages: int
    stages_per_node: int
    """1 where a stage fills a node or more."""
    parts: tuple[AlikeNodes, ...]

    @property
    def key(self) -> tuple[tuple[int, ...], int, int]:
        """Tells the placements of one cluster apart: their first nodes, DP, TP."""
        return (tuple(part.nodes[0] for part in self.parts), self.dp, self.tp)

    @property
    def devices_per_stage(self) -> int:
        """D x TP."""
        return self.dp * self.tp

    @property
    def spans_nodes(self) -> bool:
        """Whether a stage covers more than one node."""
        return self.devices_per_stage > self.parts[0].group.devices

    def nodes_of_stage(self, stage: int) -> tuple[int, ...]:
        """Node numbers of the kind's `stage`-th stage (from 0, in pipeline order)."""
        nodes = [node for part in self.parts for node in part.nodes]
        if not self.spans_nodes:
            return (nodes[stage // self.stages_per_node],)
        sizes = [part.group.devices for part in self.parts for _ in part.nodes]
        first_device, end_device = stage * self.devices_per_stage, (stage + 1) * self.devices_per_stage
        chosen, start = [], 0
        for node, size in zip(nodes, sizes, strict=True):
            if first_device <= start < end_device:
                chosen.append(node)
            start += size
        return tuple(chosen)


def alike_nodes(cluster: Cluster) -> tuple[AlikeNodes, ...]:
    """The cluster's nodes in groups that nothing tells apart, in order of first appearance."""
    collected: dict[NodeGroup, list[int]] = {}
    representative: dict[str, NodeGroup] = {}
    start = 0
    for group in cluster.nodes:
        signature = group.model_copy(update={"count": 1}).model_dump_json()
        kept = representative.setdefault(signature, group)
        collected.setdefault(kept, []).extend(range(start, start + group.count))
        start += group.count
    return tuple(AlikeNodes(group, tuple(nodes)) for group, nodes in collected.items())


def fit_refusal(devices_per_node: int, dp: int, tp: int, accelerator: str) -> str | None:
    """Why stages of D x TP devices can't be cut from such nodes; None if they can."""
    size = dp * tp
    where = f"the {devices_per_node} devices of a node of {accelerator}"
    if devices_per_node % tp:
        return f"TP {tp} does not divide {where}"
    if devices_per_node % size and size % devices_per_node:
        return f"DP {dp} x TP {tp} = {size} neither divides nor is a multiple of {where}"
    return None


def place(pools: Iterable[AlikeNodes], dp: int, tp_of: Mapping[str, int]) -> tuple[Placement, ...] | str:
    """The kinds of stages that use every device, or the reason why there are none.

    `tp_of` maps accelerators to TP degrees.
    """
    inside: list[list[AlikeNodes]] = []
    spanning: dict[tuple[str, str], list[AlikeNodes]] = {}
    for pool in pools:
        group = pool.group
        tp = tp_of[group.accelerator]
        if refusal := fit_refusal(group.devices, dp, tp, group.accelerator):
            return refusal
        if dp * tp <= group.devices:
            inside.append([pool])
        else:
            spanning.setdefault((group.accelerator, group.cluster), []).append(pool)
    placements = []
    for parts in (*inside, *spanning.values()):
        ordered = tuple(sorted(parts, key=lambda part: -part.group.devices))
        placement = _placement(ordered, dp, tp_of[ordered[0].group.accelerator])
        if isinstance(placement, str):
            return placement
        placements.append(placement)
    return _named(sorted(placements, key=lambda placement: placement.parts[0].nodes))


def _placement(parts: tuple[AlikeNodes, ...], dp: int, tp: int) -> Placement | str:
    group, size = parts[0].group, dp * tp
    total = sum(part.num_devices for part in parts)
    if total % size:
        return f"the {total} devices of {group.accelerator} are not a multiple of DP {dp} x TP {tp} = {size}"
    if size <= group.devices:
        return Placement("", group.accelerator, dp, tp, total // size, group.devices // size, parts)
    room = size
    for devices in (part.group.devices for part in parts for _ in part.nodes):
        if devices > room:
            return f"stages of DP {dp} x TP {tp} = {size} devices would split a node of {group.accelerator}"
        room = room - devices or size
    return Placement("", group.accelerator, dp, tp, total // size, 1, parts)


def _named(placements: list[Placement]) -> tuple[Placement, ...]:
    """Kinds are called accelerator/tpN; several of one accelerator are numbered."""
    counts: dict[str, int] = {}
    for placement in placements:
        counts[placement.accelerator] = counts.get(placement.accelerator, 0) + 1
    seen: dict[str, int] = {}
    named = []
    for placement in placements:
        accelerator = placement.accelerator
        number = seen.get(accelerator, 0)
        seen[accelerator] = number + 1
        label = accelerator if counts[accelerator] == 1 else f"{accelerator}.{number}"
        named.append(replace(placement, name=f"{label}/tp{placement.tp}"))
    return tuple(named)
