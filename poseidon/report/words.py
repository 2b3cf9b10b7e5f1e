"""Shares and gains in words."""

from __future__ import annotations

NO_GAIN = 1e-9
"""Relative; what the search takes for equal (docs/algorithm.md)."""


def share_words(fraction: float) -> str:
    """A part of a whole with one decimal; what is there but rounds to nothing is said to be."""
    value = 100 * fraction
    return f"{value:.1f} %" if value >= 0.05 or value <= 0 else "< 0.1 %"


def gain_words(gain: float | None) -> str:
    """``+2.3 %``, ``+0.01 %``; no sign where it is nothing."""
    if gain is None:
        return "-"
    if abs(gain) < NO_GAIN:
        return "0 %"
    value = 100 * abs(gain)
    if value < 0.005:
        return "< 0.01 %"
    return f"{'+' if gain > 0 else '-'}{value:.{1 if value >= 0.095 else 2}f} %"


def kept_together(words: str) -> str:
    """The words for running text, where no line breaks between a number and its unit."""
    return words.replace(" %", "\u00a0%")
