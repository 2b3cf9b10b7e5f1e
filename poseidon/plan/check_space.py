"""The rules of a problem's space, written down once more: which stage may come next, and what it may hold.

Nothing here comes from the search. A *use* says how many devices of each pool are taken; a kind without a declared pool
has one to itself, counted in stages.
"""

from __future__ import annotations

from dataclasses import dataclass

from poseidon.cost.problem import Problem

Use = tuple[int, ...]


@dataclass(frozen=True)
class _Shelf:
    size: int
    per_node: int


class Space:
    """All pipelines of a problem, stage by stage.

    With `depths` (of the links, adaptive_1f1b) those that have them; without, the limits are those of the depths that
    leave most room.
    """

    def __init__(self, problem: Problem, depths: tuple[int, ...] | None = None) -> None:
        """Reads the pools and what a stage of each kind takes from its pool."""
        self.problem = problem
        self._places: list[list[int]] = [[] for _ in range(problem.num_stages)]
        for index, place in enumerate(problem.places):
            if not depths or place.warmup == 1 + sum(depths[place.stage :]):
                self._places[place.stage].append(index)
        declared = {pool.name: _Shelf(pool.devices, pool.devices_per_node) for pool in problem.pools}
        shelves: dict[str, _Shelf] = {}
        self.pool_of_kind: list[int] = []
        for number, kind in enumerate(problem.kinds):
            name = kind.pool or f"kind {number}"
            shelves.setdefault(name, declared.get(kind.pool) or _Shelf(kind.stages, kind.stages_per_node))
            self.pool_of_kind.append(list(shelves).index(name))
        self.shelves = tuple(shelves.values())
        self.amounts = [kind.devices if kind.pool else 1 for kind in problem.kinds]

    @property
    def start(self) -> Use:
        """Nothing is taken."""
        return (0,) * len(self.shelves)

    def is_whole(self, use: Use) -> bool:
        """Whether a pipeline may end here: every device has a stage, unless devices may stay idle."""
        return self.problem.allow_idle or all(n == shelf.size for n, shelf in zip(use, self.shelves, strict=True))

    def after(self, use: Use, kind: int) -> Use | None:
        """What is taken after one more stage of a kind; None where it can't come next."""
        own, amount = self.pool_of_kind[kind], self.amounts[kind]
        taken = list(use)
        for pool, shelf in enumerate(self.shelves):
            if pool != own and self.problem.assignment == "node" and taken[pool] % shelf.per_node:
                if not self.problem.allow_idle:
                    return None
                taken[pool] = min(shelf.size, -(-taken[pool] // shelf.per_node) * shelf.per_node)
        shelf = self.shelves[own]
        inside = taken[own] % shelf.per_node + amount <= shelf.per_node
        whole_nodes = taken[own] % shelf.per_node == 0 and amount % shelf.per_node == 0
        if taken[own] + amount > shelf.size or not (inside or whole_nodes):
            return None
        taken[own] += amount
        return tuple(taken)

    def boundary_ms(self, use: Use, last: int, kind: int) -> tuple[float, float]:
        """Activation from a stage of kind `last` to the next, of `kind`, and gradient back; `use` is that before it."""
        own = self.pool_of_kind[kind]
        within = self.pool_of_kind[last] == own and use[own] % self.shelves[own].per_node != 0
        matrix = self.problem.intra_node_ms if within else self.problem.inter_node_ms
        return matrix[last][kind], matrix[kind][last]

    def most_layers(self, kind: int, stage: int, first: int) -> int:
        """The memory limit of a stage of a kind at a place of the pipeline that starts at layer `first`."""
        rows = [self.problem.kinds[kind].max_layers[place] for place in self._places[stage]]
        return max(limits[first] if len(limits) > 1 else limits[0] for limits in rows)
