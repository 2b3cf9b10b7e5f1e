"""Links between devices: bandwidth, latency and who shares them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from poseidon.inputs.fields import BandwidthGbps, LatencyUs
from poseidon.inputs.file_model import FileModel

SharedBy = Literal["device", "node"]
LinkClass = Literal["intra_node", "inter_node", "cross_cluster"]


class Link(FileModel):
    """One direction of a connection between two devices."""

    bandwidth_gbps: BandwidthGbps
    """Bandwidth in one direction, 1e9 bit/s."""
    latency_us: LatencyUs = 0.0
    """Time before the first byte arrives, microseconds."""
    shared_by: SharedBy = "device"
    """"device": each device has this bandwidth to itself; "node": the devices of a node share it."""

    def per_device_gbps(self, num_devices: int) -> float:
        """Bandwidth that each of `num_devices` devices of a node gets when all of them send at once."""
        return self.bandwidth_gbps / num_devices if self.shared_by == "node" else self.bandwidth_gbps


class LinkOverride(FileModel):
    """What differs from the cluster's link of the same class; absent fields keep the cluster's value."""

    bandwidth_gbps: BandwidthGbps | None = None
    """Bandwidth in one direction, 1e9 bit/s."""
    latency_us: LatencyUs | None = None
    """Time before the first byte arrives, microseconds."""
    shared_by: SharedBy | None = None
    """"device" or "node"."""

    def applied_to(self, link: Link) -> Link:
        """`link` with the given fields replaced."""
        return Link(
            bandwidth_gbps=link.bandwidth_gbps if self.bandwidth_gbps is None else self.bandwidth_gbps,
            latency_us=link.latency_us if self.latency_us is None else self.latency_us,
            shared_by=link.shared_by if self.shared_by is None else self.shared_by,
        )


class Links(FileModel):
    """The three classes of links of a cluster."""

    intra_node: Link
    """Between the devices of one node."""
    inter_node: Link
    """Between nodes of one cluster."""
    cross_cluster: Link
    """Between nodes of different clusters."""

    derived_fields = frozenset({"cross_cluster"})

    @classmethod
    def derived_defaults(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """`cross_cluster` is as `inter_node` where a file does not give it."""
        return {"cross_cluster": data["inter_node"]} if "inter_node" in data else {}


class LinkOverrides(FileModel):
    """Links of one accelerator or one node group that differ from the cluster's."""

    intra_node: LinkOverride = LinkOverride()
    """Between the devices of one node, e.g. NVLink beside PCIe."""
    inter_node: LinkOverride = LinkOverride()
    """Between nodes of one cluster."""
    cross_cluster: LinkOverride = LinkOverride()
    """Between nodes of different clusters."""

    def of(self, link_class: LinkClass) -> LinkOverride:
        """The override of one class of links."""
        overrides: dict[LinkClass, LinkOverride] = {
            "intra_node": self.intra_node,
            "inter_node": self.inter_node,
            "cross_cluster": self.cross_cluster,
        }
        return overrides[link_class]
