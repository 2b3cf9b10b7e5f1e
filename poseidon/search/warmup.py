"""Warm-up: random feasible configurations, whose best is the first time to beat (paper section 4.2.3)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np

from poseidon.search.arrays import Ints
from poseidon.search.space import Space

TRIES = 20
"""Walks that may run into a dead end before a sample is given up (only where some pairs of kinds cannot talk)."""


Sample = tuple[Ints, Ints]
"""Edges of the stages (N) and layers of their chunks (N x V)."""


def random_configurations(spaces: Sequence[Space], count: int, seed: int) -> Iterator[tuple[int, list[Sample]]]:
    """`count` random configurations drawn over all outer choices: for each of these, its index and its samples.

    Every sample first picks one of the outer choices, all with the same probability, then walks down the pipeline: each
    stage takes one of the kinds that can follow, and a number of layers up to twice the even share of what is left.
    """
    draw = random.Random(seed)
    open_ = [index for index, space in enumerate(spaces) if not space.is_empty]
    if not open_:
        return
    picked = [draw.choice(open_) for _ in range(count)]
    for index in sorted(set(picked)):
        walker = _Walker(spaces[index], draw)
        samples = (walker.sample() for _ in range(picked.count(index)))
        yield index, [sample for sample in samples if sample is not None]


class _Walker:
    """Draws configurations of one outer choice."""

    def __init__(self, space: Space, draw: random.Random) -> None:
        self._arrays = space.arrays
        self._draw = draw
        self._first_edge = space.first_edge.tolist()
        self._edges = space.edges.tolist()
        self._most_after = space.most_after.tolist()
        self._limits = space.arrays.max_layers.tolist()

    def sample(self) -> Sample | None:
        """A random configuration; None where every walk ended early."""
        for _ in range(TRIES):
            path = self._walk()
            if path is not None:
                edges, layers = zip(*path, strict=True)
                splits = [self._split(count) for count in layers]
                return np.array(edges, dtype=np.int32), np.array(splits, dtype=np.int32)
        return None

    def _walk(self) -> list[tuple[int, int]] | None:
        """An edge and a number of layers for each stage."""
        path: list[tuple[int, int]] = []
        group = placed = 0
        stages, layers = self._arrays.num_stages, self._arrays.num_layers
        for stage in range(stages):
            ways = self._ways(group, stage, placed, path[-1][0] if path else -1)
            if not ways:
                return None
            edge, least, most = self._draw.choice(ways)
            share = (layers - placed) // (stages - stage)
            count = self._draw.randint(least, max(least, min(most, 2 * share)))
            path.append((edge, count))
            placed += count
            group = self._edges[edge][3]
        return path

    def _ways(self, group: int, stage: int, placed: int, before: int) -> list[tuple[int, int, int]]:
        """The edges that can follow, with the least and the most layers that they may take."""
        arrays = self._arrays
        left = arrays.num_layers - placed
        later = arrays.least_layers * (arrays.num_stages - stage - 1)
        ways = []
        for edge in range(self._first_edge[group], self._first_edge[group + 1]):
            _, kind, place, target, within = self._edges[edge]
            if self._most_after[target] < 0 or (
                before >= 0 and self._cannot_talk(self._edges[before][1], kind, within)
            ):
                continue
            limits = self._limits[kind][place]
            most = min(limits[placed if len(limits) > 1 else 0], left - later)
            least = max(arrays.least_layers, left - self._most_after[target])
            if least <= most:
                ways.append((edge, least, most))
        return ways

    def _cannot_talk(self, one: int, other: int, within: int) -> bool:
        pools = self._arrays.pool_of_kind
        times = self._arrays.intra_node if within and pools[one] == pools[other] else self._arrays.inter_node
        return bool(np.isinf(times[one, other]) or np.isinf(times[other, one]))

    def _split(self, count: int) -> list[int]:
        """`count` layers over the chunks, each at least one."""
        cuts = sorted(self._draw.sample(range(1, count), self._arrays.num_chunks - 1))
        return [after - before for before, after in zip([0, *cuts], [*cuts, count], strict=True)]
