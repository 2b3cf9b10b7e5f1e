"""HexiScale's first phase: a graph of devices, cut into groups so that heavy links stay inside (arXiv 2409.01143).

Vertices are groups of alike nodes, whose own links are the heaviest there are between devices of one type; an edge
weighs what two devices can send each other. Merging along the heaviest edges puts groups that talk well next to each
other in the pipeline, so that the cuts between stages run where little is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from poseidon.cost.placement import AlikeNodes
from poseidon.inputs.cluster import Cluster


def bandwidth_gbps(cluster: Cluster, one: AlikeNodes, other: AlikeNodes) -> float:
    """What a device of one group can send a device of another group's node; 0 where they can't talk."""
    if not cluster.can_communicate(one.group, other.group):
        return 0.0
    num_devices = max(one.group.devices, other.group.devices)
    return cluster.link_between(one.group, other.group).per_device_gbps(num_devices)


def merged_chain(cluster: Cluster, pools: Sequence[AlikeNodes]) -> tuple[int, ...]:
    """The groups (by index) in one chain: two chains at a time are joined at the ends with the heaviest edge.

    Among equal edges those of the groups with the more similar devices are first (by peak FLOPS), then the cluster's
    order.
    """
    chains: list[tuple[int, ...]] = [(index,) for index in range(len(pools))]
    while len(chains) > 1:
        joins = [
            (_preference(cluster, pools, left[-1], right[0]), a, b, left + right)
            for a, one in enumerate(chains)
            for b, other in enumerate(chains)
            if a < b
            for left in (one, one[::-1])
            for right in (other, other[::-1])
        ]
        _, a, b, joined = min(joins, key=lambda join: join[0])
        chains = [chain for index, chain in enumerate(chains) if index not in (a, b)] + [joined]
    return chains[0]


def _preference(cluster: Cluster, pools: Sequence[AlikeNodes], a: int, b: int) -> tuple[float, float, int, int]:
    peaks = [cluster.accelerator_of(pools[index].group).peak_tflops for index in (a, b)]
    return (-bandwidth_gbps(cluster, pools[a], pools[b]), abs(peaks[0] - peaks[1]), min(a, b), max(a, b))
