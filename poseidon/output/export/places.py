"""Where processes start: runs of consecutive ranks on one node, in rank order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from poseidon.output.export.request import Request, label
from poseidon.output.numbers import ranges

VISIBLE_DEVICES = {
    "amd": "HIP_VISIBLE_DEVICES",
    "huawei": "ASCEND_RT_VISIBLE_DEVICES",
    "intel": "HABANA_VISIBLE_MODULES",
}
"""What limits a process to some devices, by vendor (their documentation); CUDA_VISIBLE_DEVICES otherwise."""


@dataclass(frozen=True)
class Place:
    """What one launcher starts: ranks `first_rank` and following, one on each of `devices` of `node`."""

    number: int
    """Its rank among the launchers: torchrun's node rank."""
    node: int
    host: str
    is_host_known: bool
    """False: `host` stands for a host that the user did not name."""
    accelerator: str
    devices: tuple[int, ...]
    first_rank: int
    stages: tuple[int, ...]
    is_whole_node: bool
    """All devices of the node, in their own order."""
    visible_devices: str
    """The variable that names the devices."""

    @property
    def num_ranks(self) -> int:
        """Processes to start."""
        return len(self.devices)

    @property
    def ranks(self) -> range:
        """Global ranks."""
        return range(self.first_rank, self.first_rank + len(self.devices))

    @property
    def device_list(self) -> str:
        """The devices as the variable takes them."""
        return ",".join(map(str, self.devices))

    def __str__(self) -> str:
        """One line for comments."""
        devices = f"device{'s' if len(self.devices) > 1 else ''} {ranges(self.devices)}"
        stages = f"stage{'s' if len(self.stages) > 1 else ''} {ranges(self.stages)}"
        return f"{self.host}, {devices} ({self.accelerator}): ranks {ranges(self.ranks)}, {stages}"


def places_of(request: Request) -> tuple[Place, ...]:
    """The plan's places in rank order; a node is there twice where its ranks are not consecutive."""
    runs: list[tuple[int, list[int], list[int]]] = []
    for stage, node, device in _ranks(request):
        if not runs or runs[-1][0] != node:
            runs.append((node, [], []))
        runs[-1][1].append(device)
        if stage not in runs[-1][2]:
            runs[-1][2].append(stage)
    places, first_rank = [], 0
    for number, (node, devices, stages) in enumerate(runs):
        group = request.node_groups[node]
        places.append(
            Place(
                number=number,
                node=node,
                host=request.host(node),
                is_host_known=bool(request.hosts),
                accelerator=label(group.accelerator),
                devices=tuple(devices),
                first_rank=first_rank,
                stages=tuple(stages),
                is_whole_node=devices == list(range(group.devices)),
                visible_devices=VISIBLE_DEVICES.get(request.vendor(node) or "", "CUDA_VISIBLE_DEVICES"),
            )
        )
        first_rank += len(devices)
    return tuple(places)


def _ranks(request: Request) -> Iterator[tuple[int, int, int]]:
    """(stage, node, device) of each rank, in order."""
    for index, stage in enumerate(request.pipeline.stages):
        for part in stage.devices:
            for device in part.devices:
                yield index, part.node, device


def divided_nodes(places: tuple[Place, ...]) -> tuple[int, ...]:
    """The nodes that are there more than once, in order."""
    nodes = [place.node for place in places]
    return tuple(sorted({node for node in nodes if nodes.count(node) > 1}))


def placement_notes(request: Request, places: tuple[Place, ...]) -> Iterator[str]:
    """What a user should know about the places."""
    if divided := divided_nodes(places):
        yield (
            f"node {ranges(divided)}: its ranks are not consecutive, so it is started more than once, each time with "
            "other devices; search with --assignment node to avoid that"
        )
    if idle := request.pipeline.idle:
        listed = ", ".join(f"node {part.node}: {ranges(part.devices)}" for part in idle[:8])
        more = f" and {len(idle) - 8} more nodes" if len(idle) > 8 else ""
        yield f"idle devices, on which nothing is started: {listed}{more}"
    vendors = sorted({label(vendor) for place in places if (vendor := request.vendor(place.node))})
    if len(vendors) > 1:
        yield f"accelerators of {' and '.join(vendors)} in one job: its communication backend must connect them"
