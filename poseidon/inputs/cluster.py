"""A cluster: which nodes there are, of which accelerators, and how they are connected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from poseidon.inputs.accelerator import Accelerator
from poseidon.inputs.cluster_checks import cluster_problems
from poseidon.inputs.fields import DevicesPerNode, Name, NodeCount
from poseidon.inputs.file_model import FileModel, Problem
from poseidon.inputs.limits import MAX_ACCELERATORS
from poseidon.inputs.links import Link, LinkClass, LinkOverride, LinkOverrides, Links

VendorSet = Annotated[tuple[Name, ...], Field(max_length=1_000)]
"""Vendors whose backends can talk to each other."""


class NodeGroup(FileModel):
    """Nodes that are alike: the same accelerator and the same number of devices."""

    accelerator: Name
    """Name of one of the cluster's `accelerators`."""
    count: NodeCount
    """Number of such nodes."""
    devices: DevicesPerNode
    """Devices of each node."""
    cluster: Name
    """Name of the cluster that the nodes stand in (default: the accelerator's name)."""
    links: LinkOverrides = LinkOverrides()
    """Links of these nodes that differ from the cluster's; they go before the accelerator's."""

    derived_fields = frozenset({"cluster"})

    @classmethod
    def derived_defaults(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """A node stands in the cluster of its accelerator's name unless it says otherwise."""
        return {"cluster": data["accelerator"]} if isinstance(data.get("accelerator"), str) else {}

    @property
    def num_devices(self) -> int:
        """Devices of all nodes of the group."""
        return self.count * self.devices


class ClusterPairLink(LinkOverride):
    """The link between two clusters, where it differs from `links.cross_cluster`."""

    between: tuple[Name, Name]
    """The two clusters' names, in any order."""


class Cluster(FileModel):
    """All nodes with their links. The order of `nodes` is the order of node numbers."""

    name: Name
    """What the cluster is called in results."""
    accelerators: Annotated[dict[Name, Accelerator], Field(min_length=1, max_length=MAX_ACCELERATORS)]
    """Accelerator types by name."""
    nodes: Annotated[tuple[NodeGroup, ...], Field(min_length=1, max_length=10_000)]
    """Groups of like nodes; a type may appear in several groups, also with different numbers of devices."""
    links: Links
    """Links of the three classes; overridden by accelerators, cluster pairs and node groups."""
    cluster_links: Annotated[tuple[ClusterPairLink, ...], Field(max_length=10_000)] = ()
    """Links between particular clusters."""
    communication: Annotated[tuple[VendorSet, ...], Field(max_length=1_000)] = ()
    """Sets of vendors whose backends can talk, e.g. ``[[nvidia, amd]]``; within a vendor it is always allowed."""

    @classmethod
    def cross_checks(cls, data: Mapping[str, Any]) -> Iterator[Problem]:
        """Every name that is used is declared, and the cluster is not absurdly large."""
        return cluster_problems(data)

    @property
    def num_devices(self) -> int:
        """Devices of all nodes."""
        return sum(group.num_devices for group in self.nodes)

    def accelerator_of(self, group: NodeGroup) -> Accelerator:
        """The accelerator type of a group's devices."""
        return self.accelerators[group.accelerator]

    def intra_node_link(self, group: NodeGroup) -> Link:
        """The link between two devices of one node of `group`."""
        return self._overridden(self.links.intra_node, "intra_node", group)

    def link_class_between(self, group_a: NodeGroup, group_b: NodeGroup) -> LinkClass:
        """The class of the link between a node of `group_a` and *another* node, of `group_b`."""
        return "inter_node" if group_a.cluster == group_b.cluster else "cross_cluster"

    def link_between(self, group_a: NodeGroup, group_b: NodeGroup) -> Link:
        """The link between a device of a node of `group_a` and a device of another node, of `group_b`; symmetric.

        The cluster's link of its class, changed by `cluster_links`, then on each side by what the accelerator and the
        group override. The slower side decides (by what a device gets when all devices of its node send); the latency
        is the larger one.
        """
        link_class = self.link_class_between(group_a, group_b)
        base = self.links.inter_node if link_class == "inter_node" else self.links.cross_cluster
        for pair in self.cluster_links:
            if set(pair.between) == {group_a.cluster, group_b.cluster}:
                base = pair.applied_to(base)
        sides = [self._overridden(base, link_class, group) for group in (group_a, group_b)]
        num_devices = max(group_a.devices, group_b.devices)
        slower = min(sides, key=lambda link: (link.per_device_gbps(num_devices), link.bandwidth_gbps))
        return slower.model_copy(update={"latency_us": max(link.latency_us for link in sides)})

    def can_communicate(self, group_a: NodeGroup, group_b: NodeGroup) -> bool:
        """Whether stages on the two groups may be neighbours.

        They may within a vendor, where a vendor is not stated, and where `communication` says so.
        """
        vendors = {self.accelerator_of(group).vendor for group in (group_a, group_b)}
        return len(vendors) == 1 or None in vendors or any(vendors <= set(allowed) for allowed in self.communication)

    def _overridden(self, link: Link, link_class: LinkClass, group: NodeGroup) -> Link:
        by_accelerator = self.accelerator_of(group).links.of(link_class).applied_to(link)
        return group.links.of(link_class).applied_to(by_accelerator)
