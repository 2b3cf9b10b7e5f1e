"""Other layers for the stages of a plan: fewer bytes to move, at most so much slower.

With the order of the stages and the devices that they lie on fixed, what need not move is a sum over layers, each by
the stage that it is on. So for a limit on the work of a stage the split that keeps most is a dynamic program over
stages and layers. The iteration time itself is no such sum: the splits for several limits are timed, and those that
are too slow are left out. What comes of it moves fewer bytes, but need not move the fewest of all plans within the
tolerance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poseidon.cost.problem import Problem
from poseidon.search.evaluate import configuration_time
from poseidon.search.result import Solution, StageChoice

Floats = NDArray[np.float64]
NUM_LIMITS = 8
"""Limits on the work of a stage that are tried, from the plan's own to one that is longer by the tolerance."""
ROUNDING = 1 + 1e-12


def can_be_split_anew(problem: Problem) -> bool:
    """Whether the layers of a stage are one range, and its memory limit follows from its place alone."""
    return problem.num_chunks == 1 and problem.most_depth == 1


def kept_most(solution: Solution, kept: Floats, limit_ms: float) -> Solution:
    """Of the splits found that take at most `limit_ms`, with the solution's order of stages, the one that keeps most.

    `kept[stage][layer]` are the bytes that need not move if the layer is on the stage.
    """
    problem, depths = solution.problem, solution.depths
    spent = np.array([_work_before(problem, stage.kind) for stage in solution.stages])
    longest = _longest(solution, spent)
    best, most = solution, _total(solution, kept)
    slack = max(1.0, limit_ms / (solution.iteration_time_ms or limit_ms or 1.0))
    for factor in dict.fromkeys(np.linspace(1.0, slack, NUM_LIMITS).tolist()):
        layers = _split(solution, kept, spent, longest * factor * ROUNDING)
        if layers is None:
            continue
        stages = tuple(StageChoice(old.kind, (count,)) for old, count in zip(solution.stages, layers, strict=True))
        found = Solution(problem, stages, configuration_time(problem, stages, depths), depths)
        value = _total(found, kept)
        if found.iteration_time_ms <= limit_ms and value > most * ROUNDING:
            best, most = found, value
    return best


def _work_before(problem: Problem, kind: int) -> Floats:
    """[layer]: forward and backward of all layers before it, on a kind; the last entry is that of all layers."""
    costs = [problem.kinds[kind].layers[problem.type_of_layer(layer)] for layer in range(problem.num_layers)]
    return np.concatenate(([0.0], np.cumsum([cost.forward_ms + cost.backward_ms for cost in costs])))


def _extra_ms(solution: Solution, index: int) -> float:
    """Embedding and head of a stage."""
    kind = solution.problem.kinds[solution.stages[index].kind]
    extras = [kind.first] * (index == 0) + [kind.last] * (index == len(solution.stages) - 1)
    return sum(extra.forward_ms + extra.backward_ms for extra in extras)


def _ranges(solution: Solution) -> list[tuple[int, int]]:
    ends = np.cumsum([stage.num_layers for stage in solution.stages]).tolist()
    return list(zip([0, *ends], ends, strict=False))


def _longest(solution: Solution, spent: Floats) -> float:
    """The most work of a stage, one micro-batch."""
    return max(
        float(spent[index, end] - spent[index, first]) + _extra_ms(solution, index)
        for index, (first, end) in enumerate(_ranges(solution))
    )


def _total(solution: Solution, kept: Floats) -> float:
    return float(sum(kept[index, first:end].sum() for index, (first, end) in enumerate(_ranges(solution))))


def _split(solution: Solution, kept: Floats, spent: Floats, limit_ms: float) -> list[int] | None:
    """Layers of each stage that keep most while no stage works longer than the limit; None where none fit."""
    num_layers = solution.problem.num_layers
    best = np.full(num_layers + 1, -np.inf)
    best[0] = 0.0
    came_from = []
    for index in range(len(solution.stages)):
        gain = np.concatenate(([0.0], np.cumsum(kept[index])))
        totals = np.where(
            _allowed(solution, index, spent[index], limit_ms), best[:, None] + gain[None, :] - gain[:, None], -np.inf
        )
        came_from.append(totals.argmax(axis=0))
        best = totals.max(axis=0)
    if best[num_layers] == -np.inf:
        return None
    layers, end = [], num_layers
    for before in reversed(came_from):
        layers.append(end - int(before[end]))
        end = int(before[end])
    return layers[::-1]


def _allowed(solution: Solution, index: int, spent: Floats, limit_ms: float) -> NDArray[np.bool_]:
    """[first][end]: whether a stage may hold these layers, by its memory and by the limit on its work."""
    problem = solution.problem
    row = problem.kinds[solution.stages[index].kind].max_layers[index]
    most = np.array([*(row if len(row) > 1 else row * problem.num_layers), 0])
    layers = np.arange(problem.num_layers + 1)
    count = layers[None, :] - layers[:, None]
    work = spent[None, :] - spent[:, None] + _extra_ms(solution, index)
    return np.asarray((count >= 1) & (count <= most[:, None]) & (work <= limit_ms))
