"""The policy `brute-force`: every configuration of every outer choice is simulated."""

from __future__ import annotations

from poseidon.search.enumeration import Enumeration
from poseidon.search.result import SearchResult
from poseidon.search.run import Run


def brute_force_search(run: Run) -> SearchResult:
    """Simulates every configuration; optimal at the end, otherwise with the closed-form bound of what is left.

    Nothing is pruned and nothing sampled, so at the end `simulations` is the number of feasible configurations. Raises
    ValueError for a problem whose schedule refuses its shape.
    """
    enumeration = Enumeration(run)
    enumeration.run()
    open_ = [index for index, complete in enumerate(enumeration.complete) if not complete]
    bound_ms = min((enumeration.open_bound_ms(index) for index in open_), default=float("inf"))
    return enumeration.result(bound_ms, run.watch.seconds)
