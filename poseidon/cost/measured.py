"""Measured communication times: piecewise linear in the number of bytes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def interpolated_ms(points: Sequence[tuple[float, float]], num_bytes: float) -> float:
    """The time for `num_bytes` from measured (bytes, ms) points, sorted by bytes.

    Between two points and beyond the last ones: the line through the nearest two, never below 0. A single point is
    scaled in proportion.
    """
    if len(points) == 1:
        size, ms = points[0]
        return ms * num_bytes / size if size else ms
    sizes = [size for size, _ in points]
    right = min(max(bisect_left(sizes, num_bytes), 1), len(points) - 1)
    (size_a, ms_a), (size_b, ms_b) = points[right - 1], points[right]
    if size_a == size_b:
        return max(ms_a, ms_b)
    return max(0.0, ms_a + (ms_b - ms_a) * (num_bytes - size_a) / (size_b - size_a))
