"""The assumptions behind layer-level pruning (Theorem 2, appendix B), checked for every allocation within memory.

The proof is for Eager 1F1B without all-reduce or head terms. It assumes (1) B = r F with one r > 1 on all stages, (2)
that every transfer takes at most (r - 1) / 2 F of any stage, (3) M >= 2 N, (4) that the least F is at least alpha times
the largest, with alpha = max(2 / 3, r / (1 + r)), and that one type's memory limits do not fall along the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from poseidon.cost.problem import LayerCost, Problem
from poseidon.search.space import Bools, Space

ROUNDING = 1e-12
"""Fraction by which two numbers that the assumptions compare may differ through rounding alone."""


def failing_assumptions(space: Space) -> tuple[str, ...]:
    """What keeps Theorem 2 from holding for a problem, a phrase each; nothing where ridge pruning is exact."""
    problem = space.problem
    failing = [*_failing_shape(problem), *_failing_costs(problem)]
    if failing or space.is_empty:
        return tuple(failing)
    return tuple(_failing_balance(space))


def _failing_shape(problem: Problem) -> list[str]:
    failing = []
    if problem.schedule != "eager_1f1b":
        failing.append(f"the schedule is {problem.schedule}, the proof is for eager_1f1b")
    if problem.num_micro_batches < 2 * problem.num_stages:
        failing.append(f"M = {problem.num_micro_batches} is below 2 N = {2 * problem.num_stages}")
    if problem.layer_types:
        failing.append("the layers are of several types")
    return failing


def _failing_costs(problem: Problem) -> list[str]:
    failing = []
    if any(cost != LayerCost() for kind in problem.kinds for cost in (kind.first, kind.last)):
        failing.append("the first or the last stage has embedding or head terms")
    if any(layer.all_reduce_ms for kind in problem.kinds for layer in kind.layers):
        failing.append("there are all-reduce terms")
    layers = [layer for kind in problem.kinds for layer in kind.layers]
    ratios = [layer.backward_ms / layer.forward_ms for layer in layers if layer.forward_ms]
    if len(ratios) < len(layers) or max(ratios) > min(ratios) * (1 + ROUNDING):
        failing.append("B / F is not the same on all stages")
    elif min(ratios) <= 1:
        failing.append("B / F is not above 1")
    for kind in problem.kinds:
        limits = [max(row) for row in kind.max_layers]
        if any(len(row) > 1 for row in kind.max_layers) or limits != sorted(limits):
            failing.append(f"the memory limits of {kind.name} fall along the pipeline")
    return failing


def _failing_balance(space: Space) -> list[str]:
    """Assumptions (2) and (4), which depend on the allocations."""
    feasible = _Feasible(space)
    if not feasible.forwards:
        return []
    layer = space.problem.kinds[0].layers[0]
    ratio = layer.backward_ms / layer.forward_ms
    failing = []
    if feasible.most_transfer_ms > (ratio - 1) / 2 * min(feasible.forwards) * (1 + ROUNDING):
        failing.append("a transfer takes longer than (r - 1) / 2 of the shortest forward")
    alpha = max(2 / 3, ratio / (1 + ratio))
    if any(feasible.allows(heavy, alpha * heavy * (1 - ROUNDING)) for heavy in sorted(feasible.forwards, reverse=True)):
        failing.append(f"some allocation within memory has stages whose F differ by more than 1 / {alpha:.3f}")
    return failing


@dataclass(frozen=True)
class _Step:
    """One stage in some feasible configuration: from a group to a group of the stage graph with so many layers."""

    source: int
    kind: int
    target: int
    within: bool
    layers: int
    forward_ms: float
    allowed: Bools
    """L + 1: layers placed before it."""


class _Feasible:
    """What occurs in the configurations within memory, found by walking the stage graph from both ends."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._before = self._reach_forward()
        self._after = self._reach_backward()
        self._steps = list(self._all_steps())
        self.forwards = {step.forward_ms for step in self._steps}
        """F (ms) of every stage that occurs."""

    @property
    def most_transfer_ms(self) -> float:
        """Longest transfer over any boundary that occurs."""
        arrays = self._space.arrays
        pools = arrays.pool_of_kind
        last_kinds: dict[int, set[int]] = {}
        for step in self._steps:
            last_kinds.setdefault(step.target, set()).add(step.kind)
        most = 0.0
        for source, kind, within in {(step.source, step.kind, step.within) for step in self._steps}:
            for last in last_kinds.get(source, ()):
                times = arrays.intra_node if within and pools[last] == pools[kind] else arrays.inter_node
                most = max(most, float(times[last, kind]), float(times[kind, last]))
        return most

    def allows(self, heavy_ms: float, light_ms: float) -> bool:
        """Whether one configuration has a stage with F of `heavy_ms` or more and one with F below `light_ms`."""
        width = self._space.arrays.num_layers + 1
        seen = np.zeros((len(self._space.finals), 4, width), dtype=bool)
        seen[0, 0, 0] = True
        for step in self._steps:
            flag = 1 * (step.forward_ms >= heavy_ms) + 2 * (step.forward_ms < light_ms)
            for before in range(4):
                moved = seen[step.source, before] & step.allowed
                seen[step.target, before | flag, step.layers :] |= moved[: width - step.layers]
        return bool(seen[self._space.finals, 3, -1].any())

    def _counts(self, kind: int, place: int) -> range:
        arrays = self._space.arrays
        return range(arrays.least_layers, int(arrays.max_layers[kind, place, 0]) + 1)

    def _reach_forward(self) -> Bools:
        """Groups x (L + 1): layers that can have been placed by each group."""
        width = self._space.arrays.num_layers + 1
        reach = np.zeros((len(self._space.finals), width), dtype=bool)
        reach[0, 0] = True
        for group, kind, place, target, _ in self._space.edges.tolist():
            for layers in self._counts(kind, place):
                reach[target, layers:] |= reach[group, : width - layers]
        return reach

    def _reach_backward(self) -> Bools:
        """Groups x (L + 1): layers placed from which each group can be completed."""
        width = self._space.arrays.num_layers + 1
        reach = np.zeros((len(self._space.finals), width), dtype=bool)
        reach[self._space.finals, -1] = True
        for group, kind, place, target, _ in reversed(self._space.edges.tolist()):
            for layers in self._counts(kind, place):
                reach[group, : width - layers] |= reach[target, layers:]
        return reach

    def _all_steps(self) -> Iterator[_Step]:
        arrays = self._space.arrays
        width = arrays.num_layers + 1
        for group, kind, place, target, within in self._space.edges.tolist():
            for layers in self._counts(kind, place):
                allowed = self._before[group].copy()
                allowed[: width - layers] &= self._after[target, layers:]
                allowed[width - layers :] = False
                if allowed.any():
                    forward_ms = float(arrays.forward[kind, place, 0, layers])
                    yield _Step(group, kind, target, bool(within), layers, forward_ms, allowed)
