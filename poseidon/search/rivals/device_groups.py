"""Metis' device groups: how many devices each stage gets (Um et al., USENIX ATC 2024, "Metis").

Two ideas keep the number of sequences down: groups are powers of two that are not much smaller than an even share
(`variance`), and only `max_permute_len` pieces of a sequence are permuted: groups of the smallest size stay in pairs,
pairs of pairs and so on until no more pieces are left.
"""

from __future__ import annotations

from collections.abc import Iterator

Sizes = tuple[int, ...]
"""Devices of each stage, in pipeline order."""


def group_sizes(num_devices: int, num_stages: int, variance: float) -> Sizes:
    """The sizes that a group may have: powers of two from `variance` x the whole devices of an even share on."""
    least = max(num_devices // num_stages, num_stages // num_devices) * variance
    return tuple(size for size in (2**power for power in range(num_devices.bit_length())) if size >= least)


def compositions(num_devices: int, num_stages: int, sizes: Sizes) -> Iterator[Sizes]:
    """Ways to share all devices out over groups of the given sizes, smallest group first."""
    if not sizes or sizes[0] * num_stages > num_devices or sizes[-1] * num_stages < num_devices:
        return
    if num_stages == 1:
        if num_devices in sizes:
            yield (num_devices,)
        return
    for index, size in enumerate(sizes):
        for rest in compositions(num_devices - size, num_stages - 1, sizes[index:]):
            yield (size, *rest)


def pieces(groups: Sizes, most: int) -> tuple[Sizes, ...]:
    """A sequence cut into at most `most` pieces that keep together, as far as pairs of the smallest size allow."""
    parts: list[Sizes] = [(size,) for size in groups]
    while len(parts) > most:
        parts.sort(key=sum)
        smallest = sum(parts[0])
        alike = [part for part in parts if sum(part) == smallest]
        if len(alike) < 2:
            break
        paired: list[Sizes] = [(*alike[index], *alike[index + 1]) for index in range(0, len(alike) - 1, 2)]
        parts = [*paired, *alike[2 * len(paired) :], *parts[len(alike) :]]
    return tuple(parts)


def distinct_orders(parts: tuple[Sizes, ...]) -> Iterator[tuple[Sizes, ...]]:
    """All orders of the pieces, without repetition."""
    if not parts:
        yield ()
        return
    for part in dict.fromkeys(parts):
        rest = list(parts)
        rest.remove(part)
        for order in distinct_orders(tuple(rest)):
            yield (part, *order)


def device_groups(num_devices: int, num_stages: int, variance: float, max_permute_len: int) -> Iterator[Sizes]:
    """Every sequence of group sizes that Metis looks at for a number of stages, without repetition."""
    seen: set[Sizes] = set()
    for groups in compositions(num_devices, num_stages, group_sizes(num_devices, num_stages, variance)):
        for order in distinct_orders(pieces(groups, max_permute_len)):
            sequence = tuple(size for part in order for size in part)
            if sequence not in seen:
                seen.add(sequence)
                yield sequence
