"""A problem's space as a graph of uses, with matrices of what a stage costs: the ground of the independent bound.

T >= S + beta_y for every stage y, where S is the sum of all stages' forward and backward and of all transfers, and
beta_y = (M - w_y) F_y + (M - 1) B_y: the path goes down the pipeline with the first micro-batch, comes back to stage y,
finishes y's work and goes up (docs/algorithm.md, family 1). With chunks the path is a stage's own work, and S is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poseidon.cost.problem import Kind, Problem
from poseidon.plan.check_space import Space, Use
from poseidon.schedule import get_schedule

Floats = NDArray[np.float64]


class Steps:
    """Steps of dynamic programs that may still be done."""

    def __init__(self, most: int) -> None:
        """`most` steps in all; one takes some ten microseconds."""
        self.left = most

    def take(self, count: int) -> bool:
        """Uses up steps; False where too few are left."""
        if count > self.left:
            return False
        self.left -= count
        return True


@dataclass(frozen=True)
class Edge:
    """A next stage: its kind, what is then taken, and the round trip over the boundary by last kind (-1: none)."""

    kind: int
    after: Use
    boundary_ms: dict[int, float]


class SpaceGraph:
    """`levels[stage][use]`: what may come next after a use. Empty where that takes more steps than are left.

    `cost[kind, stage]` and `beta[kind, stage]` are matrices: [a, b] is a stage that starts at layer a and ends before
    layer b; infinite where the stage is refused.
    """

    def __init__(self, problem: Problem, steps: Steps, depths: tuple[int, ...] | None = None) -> None:
        """Builds graph and matrices, for these depths of the links (adaptive_1f1b) or what holds for all of them."""
        self.problem = problem
        self.space = Space(problem, depths)
        self._depths = depths
        self.cost: dict[tuple[int, int], Floats] = {}
        self.beta: dict[tuple[int, int], Floats] = {}
        self.levels = self._levels(steps)
        for stage in range(problem.num_stages if self.levels else 0):
            for number, kind in enumerate(problem.kinds):
                self.cost[number, stage], self.beta[number, stage] = self._matrices(kind, number, stage)

    def _levels(self, steps: Steps) -> list[dict[Use, list[Edge]]]:
        levels: list[dict[Use, list[Edge]]] = []
        reached: dict[Use, set[int]] = {self.space.start: {-1}}
        for _ in range(self.problem.num_stages):
            level: dict[Use, list[Edge]] = {}
            following: dict[Use, set[int]] = {}
            for use, lasts in reached.items():
                if not steps.take(1):
                    return []
                level[use] = self._edges(use, lasts)
                for edge in level[use]:
                    following.setdefault(edge.after, set()).add(edge.kind)
            levels.append(level)
            reached = following
        return levels

    def _edges(self, use: Use, lasts: set[int]) -> list[Edge]:
        edges = []
        for kind in range(len(self.problem.kinds)):
            after = self.space.after(use, kind)
            if after is None:
                continue
            trips = {last: sum(self.space.boundary_ms(use, last, kind)) if last >= 0 else 0.0 for last in lasts}
            # With chunks the path stays on one stage, so that transfers only matter where there is none.
            counted = 0.0 if self.problem.num_chunks > 1 else 1.0
            talking = {last: counted * trip for last, trip in trips.items() if math.isfinite(trip)}
            if talking:
                edges.append(Edge(kind, after, talking))
        return edges

    def _matrices(self, kind: Kind, number: int, stage: int) -> tuple[Floats, Floats]:
        problem = self.problem
        forward, backward, all_reduce = (
            self._held_ms(kind, stage, name) for name in ("forward", "backward", "all_reduce")
        )
        total = problem.num_micro_batches
        if problem.num_chunks > 1:
            cost, beta = np.zeros_like(forward), total * (forward + backward) + all_reduce
        else:
            cost = forward + backward + (all_reduce if stage == 0 else 0.0)
            beta = (total - self._warmup(stage)) * forward + (total - 1) * backward
        layers = np.arange(problem.num_layers + 1)
        counts = layers[None, :] - layers[:, None]
        firsts = np.minimum(layers, problem.num_layers - 1).tolist()
        most = np.array([self.space.most_layers(number, stage, first) for first in firsts])
        refused = (counts < problem.num_chunks) | (counts > most[:, None])
        return np.where(refused, np.inf, cost), np.where(refused, np.inf, beta)

    def _warmup(self, stage: int) -> int:
        """Forwards that the path need not do once more: those before the first backward; with GPipe just the first."""
        problem = self.problem
        if problem.schedule == "gpipe":
            return 1
        links = problem.num_stages - 1
        deepest = (problem.most_depth,) * links if problem.schedule == "adaptive_1f1b" else ()
        sizes = (problem.num_stages, problem.num_micro_batches)
        return get_schedule(problem.schedule).warmup_forwards(stage, *sizes, depths=self._depths or deepest)

    def _held_ms(self, kind: Kind, stage: int, name: str) -> Floats:
        """Time of the layers a .. b - 1, with what the first and the last stage have besides."""
        field, problem = f"{name}_ms", self.problem
        per_layer = [getattr(kind.layers[problem.type_of_layer(layer)], field) for layer in range(problem.num_layers)]
        before: Floats = np.concatenate(([0.0], np.cumsum(per_layer)))
        extra = getattr(kind.first, field) if stage == 0 else 0.0
        extra += getattr(kind.last, field) if stage == problem.num_stages - 1 else 0.0
        held: Floats = before[None, :] - before[:, None] + extra
        return held

    def costs_up_to(self, threshold: float) -> dict[tuple[int, int], Floats]:
        """`cost`, infinite where a stage's beta exceeds the threshold."""
        return {key: np.where(self.beta[key] <= threshold, cost, np.inf) for key, cost in self.cost.items()}

    def betas(self) -> Floats:
        """The distinct values of beta, ascending."""
        values: Floats = np.unique(np.concatenate([np.unique(matrix) for matrix in self.beta.values()]))
        return values[np.isfinite(values)]

    @property
    def num_edges(self) -> int:
        """Steps of one dynamic program over the graph."""
        return sum(len(edges) for level in self.levels for edges in level.values())
