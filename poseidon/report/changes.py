"""Changes of an experiment whose worth a report shows: faster links, one more node, faster accelerators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from poseidon.inputs.cluster import Cluster
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.links import LinkClass
from poseidon.output.numbers import plural

FASTER = 1.1
"""The factor on bandwidth and speed: 10 %."""
LINK_NAMES: dict[LinkClass, str] = {
    "intra_node": "links inside nodes",
    "inter_node": "links between nodes",
    "cross_cluster": "links between clusters",
}

Kind = Literal["link", "node", "accelerator"]


@dataclass(frozen=True)
class Change:
    """One change: `subject` is a class of links, an accelerator type, or the accelerator of a node group.

    `group` is the number of the node group that gets a node more (kind ``node``; 0 otherwise).
    """

    kind: Kind
    subject: str
    label: str
    group: int = 0

    def apply(self, data: dict[str, Any]) -> None:
        """Changes a resolved experiment in place."""
        cluster = data["cluster"]
        if self.kind == "node":
            cluster["nodes"][self.group]["count"] += 1
        elif self.kind == "accelerator":
            _speed_up(cluster["accelerators"][self.subject], "peak_tflops", "memory_bandwidth_gb_per_s")
        else:
            for link in _links(cluster, self.subject):
                _speed_up(link, "bandwidth_gbps")


def changes_of(experiment: Experiment) -> tuple[Change, ...]:
    """All changes that mean something on the experiment's cluster."""
    return (*_link_changes(experiment.cluster), *_node_changes(experiment.cluster), *_speed_changes(experiment.cluster))


def _link_changes(cluster: Cluster) -> Iterator[Change]:
    """The classes of which the cluster has links."""
    by_cluster: dict[str, int] = {}
    for group in cluster.nodes:
        by_cluster[group.cluster] = by_cluster.get(group.cluster, 0) + group.count
    there: dict[LinkClass, bool] = {
        "intra_node": any(group.devices > 1 for group in cluster.nodes),
        "inter_node": max(by_cluster.values()) > 1,
        "cross_cluster": len(by_cluster) > 1,
    }
    for link_class, name in LINK_NAMES.items():
        if there[link_class]:
            yield Change("link", link_class, f"10 % faster {name}")


def _node_changes(cluster: Cluster) -> Iterator[Change]:
    """One for each kind of node; groups that differ in their number of nodes only are of one kind."""
    seen = set()
    for number, group in enumerate(cluster.nodes):
        key = (group.accelerator, group.devices, group.cluster, group.links.model_dump_json())
        if key not in seen:
            seen.add(key)
            where = f" in {group.cluster}" if group.cluster != group.accelerator else ""
            label = f"one more node: {plural(group.devices, group.accelerator, group.accelerator)}{where}"
            yield Change("node", group.accelerator, label, number)


def _speed_changes(cluster: Cluster) -> Iterator[Change]:
    for name in dict.fromkeys(group.accelerator for group in cluster.nodes):
        yield Change("accelerator", name, f"10 % faster {name}")


def _links(cluster: dict[str, Any], link_class: str) -> Iterator[dict[str, Any]]:
    """Everything in a resolved cluster that states a bandwidth of this class."""
    yield cluster["links"][link_class]
    for owner in (*cluster["accelerators"].values(), *cluster["nodes"]):
        yield owner["links"][link_class]
    homes = {group["cluster"] for group in cluster["nodes"]}
    for pair in cluster["cluster_links"]:
        one, other = pair["between"]
        own = "inter_node" if one == other else "cross_cluster"
        if own == link_class and {one, other} <= homes:
            yield pair


def _speed_up(holder: dict[str, Any], *fields: str) -> None:
    for field in fields:
        if holder.get(field) is not None:
            holder[field] *= FASTER


def changed(experiment: Experiment, change: Change, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The resolved experiment after a change, with other search settings."""
    data = experiment.resolved()
    change.apply(data)
    data["search"] |= settings
    return data
