"""All comparisons of times and bounds that need a tolerance, in one place.

Times are sums of up to some ten thousand doubles, so equal times may differ in their last digits. A plan counts as
optimal when its bound is within `OPTIMAL` of its time (the contract's 1e-9); the search prunes at the tighter `PRUNE`
and treats times within `TIE` as equal, so that what it proves is well inside.
"""

from __future__ import annotations

import math

OPTIMAL = 1e-9
PRUNE = 1e-10
TIE = 3e-10
EXCESS = 1 - 1e-12
"""Eq. 2 is added up in another order than a time: what exceeds a time by less is a tie."""


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


def tie_cutoff(time_ms: float) -> float:
    """A time (ms) that every plan as fast as this one beats, and no slower one.

    Rounded to 36 binary digits: runs whose times differ in the last digits get the same.
    """
    mantissa, exponent = math.frexp(time_ms * (1 + TIE))
    return math.ldexp(math.ceil(mantissa * 2**36), exponent - 36)


def proven_bound(time_ms: float) -> float:
    """The bound (ms) of a plan that was chosen among those within `TIE` of a time that is optimal but for `PRUNE`."""
    return time_ms * (1 - (2 * TIE + PRUNE))
