"""What Eq. 1 makes of a problem: the cost of every stage, and the boundaries that may follow it."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from poseidon.search.arrays import Floats, SearchArrays
from poseidon.search.space import Space

StageKey = tuple[int, int]
"""(kind, place)."""


@dataclass(frozen=True)
class State:
    """A stage of one kind at one place, in a group of the stage graph; `steps` are the states that may follow.

    A step has the time of the boundary's round trip (ms) and the index of the next state.
    """

    key: StageKey
    steps: tuple[tuple[float, int], ...]
    is_final: bool


class StaticTables:
    """States so ordered that every step leads to a later one, and matrices of what their stages cost.

    `work[key]` and `all_reduce[key]` are (L + 1) x (L + 1): [a, b] is a stage that starts at layer a and ends before
    layer b (ms, per micro-batch and per iteration); infinite where memory refuses it.
    """

    def __init__(self, space: Space) -> None:
        """Builds states and matrices of a problem with one chunk a stage."""
        assert space.problem.num_chunks == 1
        self.arrays = space.arrays
        self.num_layers = space.arrays.num_layers
        self.states, self.first_states = _states(space)
        keys = dict.fromkeys(state.key for state in self.states)
        self.work = {key: _matrix(space.arrays, key, space.arrays.forward + space.arrays.backward) for key in keys}
        self.all_reduce = {key: _matrix(space.arrays, key, space.arrays.all_reduce) for key in keys}

    def bottlenecks(self) -> Floats:
        """Every t_s that some stage may have, ascending."""
        pairs = {(state.key, boundary_ms) for state in self.states for boundary_ms in _boundaries(state)}
        values = [self.work[key] + boundary_ms for key, boundary_ms in pairs]
        finite = [value[np.isfinite(value)] for value in values]
        return np.unique(np.concatenate(finite)) if finite else np.zeros(0)

    def least_all_reduce(self) -> float:
        """No pipeline's slowest all-reduce takes less: some stage holds at least an even share of the layers."""
        share = -(-self.num_layers // self.arrays.num_stages)
        shares = [np.diagonal(matrix, share).min() for matrix in self.all_reduce.values()]
        return float(min(shares, default=0.0)) if share <= self.num_layers else 0.0


def _boundaries(state: State) -> list[float]:
    """The boundaries after a stage; none (0 ms) after the last."""
    return [*(boundary_ms for boundary_ms, _ in state.steps), *([0.0] if state.is_final else [])]


def _states(space: Space) -> tuple[tuple[State, ...], tuple[int, ...]]:
    """All states, and those of first stages."""
    arrays = space.arrays
    edges = space.edges.tolist()
    numbers: dict[tuple[int, int, int], int] = {}
    for _, kind, place, target, _ in edges:
        numbers.setdefault((target, kind, place), len(numbers))
    leaving = defaultdict(list)
    for edge in edges:
        leaving[edge[0]].append(edge)
    ordered = sorted(numbers)
    index = {state: number for number, state in enumerate(ordered)}
    states = []
    for group, kind, place in ordered:
        steps = []
        for _, other, other_place, target, within in leaving[group]:
            boundary_ms = _boundary_ms(arrays, kind, other, within)
            if math.isfinite(boundary_ms):
                steps.append((boundary_ms, index[target, other, other_place]))
        states.append(State((kind, place), tuple(steps), bool(space.finals[group])))
    firsts = {index[target, kind, place] for group, kind, place, target, _ in edges if group == 0}
    return tuple(states), tuple(sorted(firsts))


def _boundary_ms(arrays: SearchArrays, kind: int, following: int, within: int) -> float:
    same_node = within and arrays.pool_of_kind[kind] == arrays.pool_of_kind[following]
    times = arrays.intra_node if same_node else arrays.inter_node
    return float(times[kind, following] + times[following, kind])


def _matrix(arrays: SearchArrays, key: StageKey, durations: Floats) -> Floats:
    kind, place = key
    matrix = np.full((arrays.num_layers + 1, arrays.num_layers + 1), np.inf)
    limits = arrays.max_layers[kind, place]
    for first in range(arrays.num_layers):
        limit = int(limits[first if len(limits) > 1 else 0])
        most = min(limit, arrays.num_layers - first, arrays.most_layers)
        row = durations[kind, place, arrays.row_of_layer[first]]
        matrix[first, first + 1 : first + 1 + most] = row[1 : most + 1]
    return matrix
