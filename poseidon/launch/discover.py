"""The cluster of a launcher's call as its machines describe themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.cluster import Cluster
from poseidon.inputs.file_model import shown
from poseidon.inputs.validation import validate
from poseidon.launch.ask_host import ask_by_ssh, ask_here
from poseidon.launch.choices import Choices
from poseidon.launch.device_query import device_names
from poseidon.launch.experiment import KnownCluster
from poseidon.launch.known_accelerators import KnownAccelerator, accelerator_called
from poseidon.launch.launcher import LauncherCall

PCIE_GBPS = 248.0
"""PCIe 4.0 x16, 31 GB/s a direction: what devices of a node without a link of their own are taken to have."""
INTRA_NODE_US, INTER_NODE_US = 10.0, 20.0
"""Usual latencies, as in the cluster files of configs/clusters."""


@dataclass(frozen=True)
class FoundNode:
    """What a machine has: so many devices of one type."""

    host: str
    known: KnownAccelerator
    num_devices: int


def discovered_cluster(call: LauncherCall, choices: Choices) -> KnownCluster:
    """Asks all machines; InputError where one can't be asked, or has devices that are not known.

    Nodes are in the order of the user's node ranks.
    """
    hosts = choices.hosts or ("this machine",)
    if len(hosts) != call.num_nodes:
        message = (
            f"{len(hosts) if choices.hosts else 'no'} hosts are given for {call.num_nodes} nodes; give all, in the "
            "order of their node ranks, or --cluster FILE"
        )
        raise InputError(Mistake("--hosts", "", message))
    if call.num_nodes > 1 and choices.inter_node_gbps is None:
        message = (
            "is needed to plan for several nodes: what one node sends to another, in Gbit/s; or give --cluster FILE"
        )
        raise InputError(Mistake("--inter-node-gbps", "", message))
    nodes = [_asked(host, is_here=number == call.node_rank) for number, host in enumerate(hosts)]
    nodes = _as_used(nodes, call)
    gbps = choices.inter_node_gbps or PCIE_GBPS
    cluster = validate(Cluster, _fields(nodes, gbps), "discovered cluster")
    return KnownCluster(cluster, {}, tuple(_notes(nodes)))


def _asked(host: str, *, is_here: bool) -> FoundNode:
    names = device_names(host, ask_here if is_here else partial(ask_by_ssh, host))
    others = sorted(set(names) - {names[0]})
    if others:
        message = f"has {shown(names[0])} and {shown(others[0])}; nodes with several types need --cluster FILE"
        raise InputError(Mistake(host, "", message))
    return FoundNode(host, accelerator_called(names[0], host), len(names))


def _as_used(nodes: Sequence[FoundNode], call: LauncherCall) -> list[FoundNode]:
    """The nodes with the devices that the launcher uses: the first --nproc-per-node of a single machine."""
    here, wanted = nodes[call.node_rank], call.num_processes
    if wanted is None or wanted == here.num_devices:
        return list(nodes)
    if wanted < here.num_devices and len(nodes) == 1:
        return [FoundNode(here.host, here.known, wanted)]
    message = f"{wanted} processes are asked for; {here.host} has {here.num_devices} devices"
    hint = "" if len(nodes) == 1 else ", and which ones other nodes use is not known: give --cluster FILE"
    raise InputError(Mistake("--nproc-per-node", "", message + hint))


def _fields(nodes: Sequence[FoundNode], inter_node_gbps: float) -> dict[str, Any]:
    accelerators: Mapping[str, Any] = {node.known.name: node.known.accelerator for node in nodes}
    inter_node = {"bandwidth_gbps": inter_node_gbps, "latency_us": INTER_NODE_US, "shared_by": "node"}
    return {
        "name": "discovered cluster",
        "accelerators": accelerators,
        "nodes": [{"accelerator": node.known.name, "count": 1, "devices": node.num_devices} for node in nodes],
        "links": {
            "intra_node": {"bandwidth_gbps": PCIE_GBPS, "latency_us": INTRA_NODE_US},
            "inter_node": inter_node,
            "cross_cluster": inter_node,
        },
    }


def _notes(nodes: Sequence[FoundNode]) -> list[str]:
    """What was found, and what was assumed."""
    found = [f"{node.host} has {node.num_devices} x {node.known.name}" for node in nodes]
    plain = sorted({n.known.name for n in nodes if n.known.accelerator.links.intra_node.bandwidth_gbps is None})
    assumed = [f"links between devices of a node ({', '.join(plain)}) are taken for PCIe 4.0 x16"] if plain else []
    return [*found, *assumed]
