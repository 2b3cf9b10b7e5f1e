"""Random parts of a mixed cluster: the deployments of the accuracy study."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

from poseidon.inputs.cluster import Cluster, NodeGroup


def deployments(cluster: Cluster, seed: int) -> Iterator[Cluster]:
    """Every part of the cluster that has nodes of two types or more, once each, in a random order.

    A part takes some of the nodes of each group and keeps all links; its name lists the nodes: ``2 A2-2 + 1 A2-4``.
    """
    groups = cluster.nodes
    counts = [taken for taken in product(*(range(group.count + 1) for group in groups)) if _is_mixed(groups, taken)]
    random.Random(seed).shuffle(counts)
    for taken in counts:
        nodes = tuple(
            group.model_copy(update={"count": count}) for group, count in zip(groups, taken, strict=True) if count
        )
        name = " + ".join(f"{group.count} {group.accelerator}" for group in nodes)
        yield cluster.model_copy(update={"name": name, "nodes": nodes})


def _is_mixed(groups: tuple[NodeGroup, ...], taken: tuple[int, ...]) -> bool:
    return len({group.accelerator for group, count in zip(groups, taken, strict=True) if count}) >= 2
