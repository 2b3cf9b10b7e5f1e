"""All comparisons of times and bounds that need a tolerance, in one place.

Times are sums of up to some ten thousand doubles, so equal times may differ in their last digits. A plan counts as
optimal when its bound is within `OPTIMAL` of its time (the contract's 1e-9); the search prunes at the tighter `PRUNE`,
so that what it proves is well inside.
"""

from __future__ import annotations

OPTIMAL = 1e-9
PRUNE = 1e-10


def relative_gap(time_ms: float, lower_bound_ms: float) -> float:
    """How far a plan may be from the optimum, as a fraction of its time; 0 where it is optimal."""
    if time_ms <= 0 or is_optimal(time_ms, lower_bound_ms):
        return 0.0
    return (time_ms - lower_bound_ms) / time_ms


def is_optimal(time_ms: float, lower_bound_ms: float) -> bool:
    """Whether the bound proves the plan optimal."""
    return lower_bound_ms >= (1 - OPTIMAL) * time_ms


def prune_fraction(gap: float) -> float:
    """Fraction of the incumbent below which a bound must lie for its branch to be searched, when a plan within `gap`
    will do.
    """
    return max(gap, PRUNE)
