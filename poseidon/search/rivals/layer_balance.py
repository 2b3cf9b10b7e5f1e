"""Metis' layer load balancer: layers by compute capacity, corrected a few times where memory does not suffice."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

MOST_ATTEMPTS = 3
"""Partitions that are tried before a strategy is given up (Metis, published code)."""
CAUTION = 0.9
"""A stage that is out of memory gets this part of what would just fit (Metis, published code)."""
LimitOf = Callable[[int, int], int]
"""Most layers of a stage (by index) that starts at a layer."""


@dataclass(frozen=True)
class Balance:
    """Layers of each stage, how many attempts that took, and the share of each stage's limit that is left."""

    layers: tuple[int, ...]
    attempts: int
    room: tuple[float, ...]


def balanced_layers(
    demand: Sequence[float], capacity: Sequence[float], limit_of: LimitOf, attempts: int = MOST_ATTEMPTS
) -> Balance | None:
    """Layers for stages of these capacities; None where no attempt fits.

    `demand` is the work of each layer in any unit, `capacity` the speed of each stage.
    """
    cumulative = tuple(accumulate(demand, initial=0.0))
    speeds = list(capacity)
    for attempt in range(1, attempts + 1):
        layers = by_capacity(cumulative, speeds)
        first, limits = 0, []
        for stage, count in enumerate(layers):
            limits.append(limit_of(stage, first))
            first += count
        if all(count <= limit for count, limit in zip(layers, limits, strict=True)):
            room = tuple(1 - count / limit for count, limit in zip(layers, limits, strict=True))
            return Balance(layers, attempt, room)
        corrected = _corrected(speeds, layers, limits)
        if corrected is None:
            return None
        speeds = corrected
    return None


def by_capacity(cumulative: Sequence[float], capacity: Sequence[float]) -> tuple[int, ...]:
    """Cuts a row of layers where the work done so far is closest to the capacity so far; a layer for every stage.

    `cumulative[n]` is the work of the first n layers.
    """
    num_layers, num_stages = len(cumulative) - 1, len(capacity)
    total, scale = sum(capacity), cumulative[-1]
    cuts, done = [0], 0.0
    for stage in range(num_stages - 1):
        done += capacity[stage]
        wanted = scale * done / total
        cut = bisect_left(cumulative, wanted)
        if cut and wanted - cumulative[cut - 1] <= cumulative[min(cut, num_layers)] - wanted:
            cut -= 1
        cuts.append(min(max(cut, cuts[-1] + 1), num_layers - (num_stages - 1 - stage)))
    cuts.append(num_layers)
    return tuple(end - first for first, end in pairwise(cuts))


def _corrected(speeds: Sequence[float], layers: Sequence[int], limits: Sequence[int]) -> list[float] | None:
    """Lowers the capacity of stages that are out of memory and spreads it over those with room, by their speed.

    None where there is not enough room.
    """
    lowered, room = list(speeds), [0.0] * len(speeds)
    missing = 0.0
    for stage, (count, limit) in enumerate(zip(layers, limits, strict=True)):
        if count > limit:
            lowered[stage] = speeds[stage] * limit / count * CAUTION
            missing += speeds[stage] - lowered[stage]
        else:
            room[stage] = speeds[stage] * limit / count - speeds[stage]
    if sum(room) < missing:
        return None
    while missing > 1e-9 * sum(speeds):
        open_speed = sum(speed for speed, left in zip(speeds, room, strict=True) if left > 0)
        if not open_speed:
            return None
        given = [
            min(left, missing * speed / open_speed) if left > 0 else 0.0
            for speed, left in zip(speeds, room, strict=True)
        ]
        lowered = [speed + extra for speed, extra in zip(lowered, given, strict=True)]
        room = [left - extra for left, extra in zip(room, given, strict=True)]
        missing -= sum(given)
    return lowered if min(lowered) > 0 else [max(speed, 1e-12) for speed in lowered]
