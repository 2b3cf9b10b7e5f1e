"""The kernels in plain Python, bit for bit: what they mean, and what tests compare them with."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from poseidon.simulate.listing import CHAINED, FIRST, Listing


def longest_path(
    listing: Listing, durations: Sequence[float], transfers: Sequence[float], all_reduce: Sequence[float]
) -> tuple[float, list[float]]:
    """Iteration time and the end of each operation in the order of the list; twin of `LongestPath.ends`."""
    incoming = [transfers[link] if link >= 0 else 0.0 for link in listing.link.tolist()]
    operations = zip(listing.previous.tolist(), listing.sender.tolist(), listing.slot.tolist(), strict=True)
    cells = [0.0] * FIRST
    end = 0.0
    for previous, sender, slot in operations:
        start = end
        if sender != CHAINED:
            start = max(cells[previous], cells[sender] + incoming[slot])
        end = start + durations[slot]
        cells.append(end)
    time = max(cells[last] + extra for last, extra in zip(listing.last.tolist(), all_reduce, strict=True))
    return time, cells[FIRST:]


def find_levels(previous: Sequence[int], sender: Sequence[int], chained: Sequence[int]) -> list[int] | None:
    """The level of each operation, or None if there is a cycle; twin of the kernel `find_levels`."""
    receivers: dict[int, list[int]] = {}
    num_waits = [0] * len(previous)
    for number, senders in enumerate(zip(previous, sender, strict=True)):
        for other in senders:
            if other != -1:
                receivers.setdefault(other, []).append(number)
                num_waits[number] += 1
    levels = [-1] * len(previous)
    ready = deque(number for number, count in enumerate(num_waits) if count == 0)
    while ready:
        number = ready.popleft()
        levels_before = [levels[other] for other in (previous[number], sender[number]) if other != -1]
        levels[number] = max(levels_before, default=-1) + (0 if chained[number] else 1)
        for receiver in receivers.get(number, []):
            num_waits[receiver] -= 1
            if num_waits[receiver] == 0:
                ready.append(receiver)
    return None if any(num_waits) else levels
