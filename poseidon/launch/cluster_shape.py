"""Whether a cluster is the one that a launcher's call is for."""

from __future__ import annotations

from collections.abc import Iterator

from poseidon.errors import InputError, Mistake
from poseidon.inputs.cluster import Cluster, NodeGroup
from poseidon.launch.launcher import LauncherCall
from poseidon.output.numbers import plural


def node_groups(cluster: Cluster) -> tuple[NodeGroup, ...]:
    """The group of each node."""
    return tuple(group for group in cluster.nodes for _ in range(group.count))


def check_shape(cluster: Cluster, call: LauncherCall, where: str) -> None:
    """Refuses a call with other numbers of nodes or processes than the cluster has nodes and devices."""
    if mistakes := list(_mistakes(cluster, call, where)):
        raise InputError(mistakes)


def _mistakes(cluster: Cluster, call: LauncherCall, where: str) -> Iterator[Mistake]:
    groups = node_groups(cluster)
    if len(groups) != call.num_nodes:
        yield Mistake("--nnodes", "", f"is {call.num_nodes}; {where} has {plural(len(groups), 'node')}")
        return
    devices, processes = groups[call.node_rank].devices, call.num_processes
    if processes is not None and processes != devices:
        yield Mistake(
            "--nproc-per-node",
            "",
            f"is {processes} on node {call.node_rank}; {where} gives that node {plural(devices, 'device')}, and a plan "
            "has one process on each",
        )
    if call.num_nodes > 1 and call.backend != "static":
        yield Mistake(
            "--rdzv-backend",
            "",
            f"{call.backend[:20]} numbers nodes by their addresses, and a plan needs them in its own order; use the "
            "static rendezvous: --master-addr, --master-port and --node-rank without --rdzv-backend",
        )
