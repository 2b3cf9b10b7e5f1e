"""Galvatron's bandwidth files (units and formulas: `galvatron`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poseidon.inputs.links import LinkClass
from poseidon.profile.importers.cell import Reading
from poseidon.profile.importers.numbers import MIB, Checked
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.profile import MeasuredAllReduce, MeasuredTransfer

_NAME = re.compile(r"_(\d{1,5})nodes_(\d{1,4})gpus_per_node")
_ALL_REDUCE = re.compile(r"allreduce_size_(\d{1,6})_consec_([01])")
_P2P = re.compile(r"(?:pp|p2p)_size_(\d{1,6})")


@dataclass(frozen=True)
class Bandwidths:
    """What the bandwidth files say, GB/s; (devices, neighbours) for all-reduces, stages for point to point."""

    all_reduce: Mapping[tuple[int, bool], float]
    p2p: Mapping[int, float]
    num_nodes: int
    devices_per_node: int

    def joined(self, other: Bandwidths) -> Bandwidths:
        """Both together, on the same nodes."""
        return Bandwidths(
            {**self.all_reduce, **other.all_reduce},
            {**self.p2p, **other.p2p},
            other.num_nodes or self.num_nodes,
            other.devices_per_node or self.devices_per_node,
        )

    def bus_gb_per_s(self, devices: int) -> float | None:
        """Of an all-reduce over that many neighbours in one node."""
        return self.all_reduce.get((devices, True)) if devices <= self.devices_per_node else None


def bandwidths_of(path: Path, data: Mapping[str, Any], checked: Checked) -> Bandwidths:
    """The bandwidths of one file; its name says on how many nodes of how many devices."""
    name = _NAME.search(path.name)
    if name is None:
        checked.say("", "the file's name doesn't say the nodes (..._2nodes_8gpus_per_node.json)")
    all_reduce: dict[tuple[int, bool], float] = {}
    p2p: dict[int, float] = {}
    for key, value in data.items():
        gb_per_s = checked.number(value, key, "GB/s")
        if gb_per_s == 0:
            checked.say(key, "a bandwidth above 0 is expected")
        if match := _ALL_REDUCE.fullmatch(key):
            all_reduce[checked.count(match[1], key, "number of devices"), match[2] == "1"] = gb_per_s
        elif match := _P2P.fullmatch(key):
            p2p[checked.count(match[1], key, "number of stages")] = gb_per_s
        else:
            checked.say(key, "is not known: allreduce_size_N_consec_C and pp_size_N are accepted")
    return Bandwidths(all_reduce, p2p, int(name[1]) if name else 1, int(name[2]) if name else 1)


def bandwidth_rows(links: Bandwidths, options: ImportOptions) -> Reading:
    """Rows of one message of 1 MiB each: other sizes take their time in proportion."""
    if not links.all_reduce and not links.p2p:
        return Reading()
    name = options.accelerator or "unknown"
    name = options.rename.get(name, name)
    link: LinkClass = "inter_node" if links.num_nodes > 1 else "intra_node"
    transfers = tuple(
        MeasuredTransfer(name, name, link, MIB, 1 / gb_per_s) for stages, gb_per_s in links.p2p.items() if stages == 2
    )
    note = "galvatron: bandwidths as rows of 1 MiB; of p2p pp_size_2 alone (larger ones mix classes of links)"
    return Reading(transfers=transfers, all_reduce=tuple(_all_reduces(links, name)), notes=(note,))


def _all_reduces(links: Bandwidths, name: str) -> Iterator[MeasuredAllReduce]:
    """DP rings: neighbours are TP 1, spread ones the ranks of one TP position."""
    world = links.num_nodes * links.devices_per_node
    for (devices, neighbours), gb_per_s in links.all_reduce.items():
        tp = 1 if neighbours else world // devices
        if devices < 2 or tp > links.devices_per_node or devices * tp > world:
            continue
        link: LinkClass = "inter_node" if devices * tp > links.devices_per_node else "intra_node"
        ms = 2 * (devices - 1) / devices / gb_per_s
        yield MeasuredAllReduce(name, tp, devices, link, MIB, ms)
