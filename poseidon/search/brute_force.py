"""The policy `brute-force`: every configuration of every outer choice is simulated."""

from __future__ import annotations

from collections.abc import Sequence

from poseidon.cost.problem import Problem
from poseidon.search.enumeration import Enumeration
from poseidon.search.options import SearchOptions
from poseidon.search.result import SearchResult
from poseidon.search.watch import Watch


def brute_force_search(problems: Sequence[Problem], options: SearchOptions, watch: Watch) -> SearchResult:
    """Simulates every configuration; optimal at the end, otherwise with the closed-form bound of what is left.

    Nothing is pruned and nothing sampled, so at the end `simulations` is the number of feasible configurations. Raises
    ValueError for a problem whose schedule refuses its shape.
    """
    enumeration = Enumeration(problems, options, watch, stage_pruning=False, layer_pruning=False, share_best=False)
    try:
        enumeration.run()
    except KeyboardInterrupt:
        watch.interrupt()
    open_ = [index for index, complete in enumerate(enumeration.complete) if not complete]
    bound_ms = min((enumeration.open_bound_ms(index) for index in open_), default=float("inf"))
    return enumeration.result(bound_ms, watch.seconds)
