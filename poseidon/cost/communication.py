"""Times of the messages between stages and of the gradient all-reduce within one (docs/profile.md, section
Communication)."""

from __future__ import annotations

from itertools import pairwise

from poseidon.cost.measured import interpolated_ms
from poseidon.cost.placement import Placement
from poseidon.inputs.cluster import Cluster, NodeGroup
from poseidon.inputs.links import Link, LinkClass
from poseidon.inputs.parameter_bytes import MIXED_PRECISION, ParameterBytes
from poseidon.profile.collectives import all_reduce_ms, transfer_ms
from poseidon.profile.micro_batch import ELEMENT_BYTES
from poseidon.profile.profile import Profile

FORBIDDEN = float("inf")
"""The time of a boundary between two stages that can't talk."""


class Communication:
    """Communication costs of one cluster and profile; remembers the links between node groups."""

    def __init__(self, cluster: Cluster, profile: Profile, sequence_parallel: bool) -> None:
        """Measured rows of the profile go before the formulas."""
        self._cluster = cluster
        self._sequence_parallel = sequence_parallel
        self._links: dict[tuple[int, int], Link] = {}
        self._intra: dict[int, Link] = {}
        self._transfers: dict[tuple[str, str, LinkClass], list[tuple[float, float]]] = {}
        self._all_reduces: dict[tuple[str, int, int, LinkClass], list[tuple[float, float]]] = {}
        for row in sorted(profile.transfers, key=lambda row: row.num_bytes):
            self._transfers.setdefault((row.sender, row.receiver, row.link), []).append((row.num_bytes, row.ms))
        for total in sorted(profile.all_reduce, key=lambda row: row.num_bytes):
            key = (total.accelerator, total.tp, total.dp, total.link)
            self._all_reduces.setdefault(key, []).append((total.num_bytes, total.ms))

    def inter_node_ms(self, sender: Placement, receiver: Placement, activation_bytes: float) -> float:
        """One activation (`activation_bytes`: of the micro-batch of a sender's replica) to a stage on another node;
        infinite if refused.

        Where a kind lies on several groups of nodes the slowest pair counts.
        """
        pairs = [(a.group, b.group) for a in sender.parts for b in receiver.parts]
        if not all(self._cluster.can_communicate(a, b) for a, b in pairs):
            return FORBIDDEN
        return max(
            self._message_ms(
                sender, receiver, activation_bytes, self._link(a, b), self._cluster.link_class_between(a, b), (a, b)
            )
            for a, b in pairs
        )

    def intra_node_ms(self, sender: Placement, receiver: Placement, activation_bytes: float) -> float:
        """One activation to a stage on the same node.

        Kinds that share no node never are on the same one: they get the time between nodes.
        """
        shared = [part.group for part in sender.parts if any(part is other for other in receiver.parts)]
        if not shared:
            return self.inter_node_ms(sender, receiver, activation_bytes)
        return max(
            self._message_ms(sender, receiver, activation_bytes, self._intra_link(group), "intra_node", (group, group))
            for group in shared
        )

    def _message_ms(
        self,
        sender: Placement,
        receiver: Placement,
        activation_bytes: float,
        link: Link,
        link_class: LinkClass,
        groups: tuple[NodeGroup, NodeGroup],
    ) -> float:
        """The slower side decides: each side's devices send or receive their parts at the same time.

        Where DP differs, a replica of the receiver gets the sequences of several senders, or a part of those of one.
        """
        received_bytes = activation_bytes * (sender.dp / receiver.dp)
        if points := self._transfers.get((sender.accelerator, receiver.accelerator, link_class)):
            if not self._sequence_parallel:
                return interpolated_ms(points, max(activation_bytes, received_bytes))
            return interpolated_ms(points, max(activation_bytes / sender.tp, received_bytes / receiver.tp))
        sides = (
            (sender, receiver, activation_bytes, groups[0]),
            (receiver, sender, received_bytes, groups[1]),
        )
        return max(
            transfer_ms(
                _device_bytes(side.tp, other.tp, side_bytes, self._sequence_parallel),
                link,
                min(side.devices_per_stage, group.devices),
            )
            for side, other, side_bytes, group in sides
        )

    def all_reduce_ms(self, placement: Placement, gradient_bytes: float) -> float:
        """Ring all-reduce of `gradient_bytes` a device over DP, at the slowest link that the ring crosses."""
        if placement.dp == 1 or not gradient_bytes:
            return 0.0
        link_class = self._ring_class(placement)
        if points := self._all_reduces.get((placement.accelerator, placement.tp, placement.dp, link_class)):
            return interpolated_ms(points, gradient_bytes)
        return max(
            all_reduce_ms(gradient_bytes, placement.dp, link, num_senders)
            for link, num_senders in self._ring_links(placement)
        )

    def _ring_class(self, placement: Placement) -> LinkClass:
        return "inter_node" if placement.spans_nodes else "intra_node"

    def _ring_links(self, placement: Placement) -> list[tuple[Link, int]]:
        """Links that a DP ring crosses, each with the devices of a node that send over it at once.

        Inside a node every device of the stage sends; between nodes one device of each TP rank's ring leaves the node.
        """
        groups = [part.group for part in placement.parts]
        links = [
            (self._intra_link(group), min(placement.devices_per_stage, group.devices))
            for group in groups
            if group.devices > placement.tp
        ]
        if placement.spans_nodes:
            links += [(self._link(group, group), placement.tp) for group in groups]
            links += [(self._link(a, b), placement.tp) for a, b in pairwise(groups)]
        return links

    def _link(self, group_a: NodeGroup, group_b: NodeGroup) -> Link:
        key = (id(group_a), id(group_b))
        if key not in self._links:
            self._links[key] = self._cluster.link_between(group_a, group_b)
        return self._links[key]

    def _intra_link(self, group: NodeGroup) -> Link:
        if id(group) not in self._intra:
            self._intra[id(group)] = self._cluster.intra_node_link(group)
        return self._intra[id(group)]


def _device_bytes(tp: int, other_tp: int, activation_bytes: float, sequence_parallel: bool) -> float:
    """What one device of a side sends or receives of a micro-batch's activation.

    With sequence parallelism its part of the sequence; without, every device holds the whole activation, which goes
    once to (or from) each device of the other side (Megatron-LM; it no longer scatters and gathers it).
    """
    if sequence_parallel:
        return activation_bytes / tp
    return activation_bytes * max(1.0, other_tp / tp)


def gradient_bytes(weight_bytes: float, each: ParameterBytes = MIXED_PRECISION) -> float:
    """Gradients of the weights that take `weight_bytes` in the training precision."""
    return weight_bytes / each.weight * each.gradient


def activation_bytes(tokens: int, hidden_size: int, element_bytes: int = ELEMENT_BYTES) -> float:
    """The activation of a micro-batch at a stage boundary: tokens x hidden size."""
    return float(tokens * hidden_size * element_bytes)
