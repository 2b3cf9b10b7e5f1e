"""The exact number of feasible configurations, counted by dynamic programming (contract, "what `count` counts")."""

from __future__ import annotations

import numpy as np

from poseidon.cost.problem import Problem
from poseidon.search.completions import Completions
from poseidon.search.space import space_of


def count_configurations(problem: Problem) -> int:
    """Distinct orders x allocations within memory of one outer choice, as an exact integer.

    With several chunks each way to split a stage's layers over them counts, with depths to choose each choice. Raises
    ValueError where
    the schedule refuses the shape or there are too many device states.
    """
    space = space_of(problem)
    wraps = problem.num_chunks > 1 and not np.isfinite(space.arrays.inter_node).all()
    if not wraps:
        return Completions(space).total
    return sum(Completions(space, first_kind=kind).total for kind in range(len(problem.kinds)))
