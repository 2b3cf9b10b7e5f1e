"""``--lost``: whole nodes, or devices of a node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from poseidon.errors import InputError, Mistake
from poseidon.inputs import Cluster
from poseidon.inputs.file_model import shown

OPTION = "--lost"
FORMS = "node3 (the fourth node of the cluster file), node3:2 (two of its devices), node3/0+5 (its devices 0 and 5)"
_NODE = re.compile(r"(?:node)?(\d{1,6})(?::(\d{1,4})|/(\d{1,4}(?:\+\d{1,4})*))?")

Device = tuple[int, int]
"""(node, device within the node)."""


def lost_devices(texts: Sequence[str], cluster: Cluster) -> frozenset[Device]:
    """The devices that are gone; of ``node3:2`` the last two of the node. Raises InputError for what does not exist."""
    sizes = [group.devices for group in cluster.nodes for _ in range(group.count)]
    lost: set[Device] = set()
    for word in (word.strip() for text in texts for word in text.split(",")):
        for device in _devices(word, sizes):
            if device in lost:
                raise _mistake(f"device {device[1]} of node{device[0]} is lost twice")
            lost.add(device)
    if len(lost) == sum(sizes):
        raise _mistake("no device of the cluster would be left")
    return frozenset(lost)


def _devices(word: str, sizes: Sequence[int]) -> Iterator[Device]:
    match = _NODE.fullmatch(word)
    if match is None:
        raise _mistake(f"{shown(word)} is not a node; accepted: {FORMS}")
    node = int(match[1])
    if node >= len(sizes):
        last = len(sizes) - 1
        raise _mistake(f"there is no node{node}; the cluster has node0 to node{last}, in the order of its file")
    size = sizes[node]
    if match[3] is not None:
        devices = [int(number) for number in match[3].split("+")]
    else:
        count = size if match[2] is None else int(match[2])
        if not 1 <= count <= size:
            raise _mistake(f"{shown(word)}: node{node} has {size} devices")
        devices = list(range(size - count, size))
    for device in devices:
        if device >= size:
            raise _mistake(f"{shown(word)}: node{node} has the devices 0 to {size - 1}")
        yield node, device


def _mistake(message: str) -> InputError:
    return InputError(Mistake(OPTION, "", message))
