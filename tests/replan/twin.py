"""The moves once more, by sets of atoms: no intervals, no assignment, and nothing of `poseidon.replan`.

An atom is one of `pieces` equal pieces of a part's weights or optimizer state. Which device holds which is worked out
from the plan files alone.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

Atom = tuple[str, str, int]
"""(part, state, piece)."""
Device = tuple[int, int]
"""(node, device)."""


def held_atoms(plan: dict[str, Any], pieces: int) -> dict[Device, set[Atom]]:
    """What each device of a plan file holds."""
    sharded = plan["inputs"]["training"]["distributed_optimizer"]
    held = {}
    for index, stage in enumerate(plan["stages"]):
        devices = [
            (node, device) for node, there in zip(stage["nodes"], stage["devices"], strict=True) for device in there
        ]
        tp, dp = stage["tp"], len(devices) // stage["tp"]
        ranges = stage["layer_range"] if plan["num_chunks"] > 1 else [stage["layer_range"]]
        parts = [f"layer {layer}" for first, end in ranges for layer in range(first, end)]
        parts += ["embedding"] * (index == 0) + ["head"] * (index == len(plan["stages"]) - 1)
        for rank, device in enumerate(devices):
            mine = [piece for piece in range(pieces) if piece * tp // pieces == rank % tp]
            own = [piece for number, piece in enumerate(mine) if number * dp // len(mine) == rank // tp]
            held[device] = {(part, "weights", piece) for part in parts for piece in mine}
            held[device] |= {(part, "optimizer", piece) for part in parts for piece in (own if sharded else mine)}
    return held


def listed_atoms(entries: list[dict[str, Any]]) -> set[Atom]:
    """The atoms of a list of pieces in a moves file, none of them twice."""
    atoms = [(entry["part"], entry["state"], piece) for entry in entries for piece in range(*entry["range"])]
    assert len(atoms) == len(set(atoms))
    return set(atoms)


def survivors_atoms(old: dict[Device, set[Atom]], moves: dict[str, Any]) -> dict[Device, set[Atom]]:
    """What the devices that are left hold, by their numbers in the new cluster."""
    return {
        (entry["node"], index): old[entry["old_node"], was]
        for entry in moves["nodes"]
        if entry["old_node"] is not None
        for index, was in enumerate(entry["old_devices"])
        if (entry["old_node"], was) in old
    }


def most_kept(
    wanted: dict[Device, set[Atom]], has: dict[Device, set[Atom]], pools: list[tuple[list[int], int]], size: Any
) -> float:
    """The most bytes that can stay, over all ways to hand nodes that are alike, and the devices in them, to places.

    `pools` are the alike nodes with the number of their devices; `size(place, atom)` is what an atom weighs there.
    """
    best = 0.0
    for nodes, num_devices in pools:
        numbers = range(len(nodes))
        kept = [[_kept_inside(wanted, has, place, node, num_devices, size) for node in nodes] for place in nodes]
        best += max(sum(kept[i][j] for i, j in enumerate(order)) for order in permutations(numbers))
    return best


def _kept_inside(
    wanted: dict[Device, set[Atom]],
    has: dict[Device, set[Atom]],
    place: int,
    node: int,
    num_devices: int,
    size: Any,
) -> float:
    """The most bytes that can stay where the places of one node are handed to the devices of another."""
    kept = [
        [
            sum(size((place, i), atom) for atom in wanted.get((place, i), set()) & has.get((node, j), set()))
            for j in range(num_devices)
        ]
        for i in range(num_devices)
    ]
    return max(sum(kept[i][j] for i, j in enumerate(order)) for order in permutations(range(num_devices)))
