"""The cluster after a change, and which of its nodes were there before."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from poseidon.inputs import Experiment, NodeGroup, experiment_from_resolved
from poseidon.replan.added import Addition
from poseidon.replan.lost import Device


@dataclass(frozen=True)
class Node:
    """A node of the new cluster."""

    group: NodeGroup
    was: int | None
    """Its number in the old cluster; None: it was added."""
    devices: tuple[int, ...]
    """What its devices were called before, in order: where some are lost the others move up."""


def remaining_nodes(experiment: Experiment, lost: Collection[Device], addition: Addition) -> tuple[Node, ...]:
    """The nodes of the new cluster: those that are left in their old order, then the added ones."""
    nodes, number = [], 0
    for group in experiment.cluster.nodes:
        for _ in range(group.count):
            devices = tuple(device for device in range(group.devices) if (number, device) not in lost)
            if devices:
                left = group.model_copy(update={"count": 1, "devices": len(devices)})
                nodes.append(Node(left, number, devices))
            number += 1
    for group in addition.groups:
        one = group.model_copy(update={"count": 1})
        nodes += [Node(one, None, tuple(range(group.devices)))] * group.count
    return tuple(nodes)


@dataclass(frozen=True)
class Wishes:
    """What else a person wants of the new plan; None: as before."""

    allow_idle: bool = False
    global_batch_size: int | None = None
    time_limit_s: float | None = None


def new_experiment(experiment: Experiment, nodes: tuple[Node, ...], addition: Addition, wishes: Wishes) -> Experiment:
    """The experiment on the new cluster, to be searched by the policy `exact`; raises InputError where its parts no
    longer fit together.
    """
    data = experiment.resolved()
    cluster, search = data["cluster"], data["search"]
    cluster["nodes"] = _groups(nodes)
    cluster["accelerators"] |= {name: item.model_dump(mode="json") for name, item in addition.accelerators.items()}
    standing = {node.group.cluster for node in nodes}
    cluster["cluster_links"] = [link for link in cluster["cluster_links"] if set(link["between"]) <= standing]
    search |= {"policy": "exact", "cost_model": "dag"}
    if wishes.allow_idle:
        search["allow_idle"] = True
    if wishes.time_limit_s is not None:
        search["time_limit_s"] = wishes.time_limit_s
    if wishes.global_batch_size is not None:
        data["training"]["global_batch_size"] = wishes.global_batch_size
    return experiment_from_resolved(data, "the changed cluster")


def _groups(nodes: tuple[Node, ...]) -> list[dict[str, object]]:
    """Neighbouring nodes that are alike as one group."""
    groups: list[NodeGroup] = []
    for node in nodes:
        alone = groups[-1].model_copy(update={"count": 1}) if groups else None
        if alone == node.group:
            groups[-1] = groups[-1].model_copy(update={"count": groups[-1].count + 1})
        else:
            groups.append(node.group)
    return [group.model_dump(mode="json") for group in groups]
