"""How numbers are shown to people."""

from __future__ import annotations

from collections.abc import Sequence


def milliseconds(value: float) -> str:
    """Never with an exponent."""
    if value >= 1000:
        return f"{value:,.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def milliseconds_column(values: Sequence[float]) -> list[str]:
    """The same for numbers that stand one below the other: as many decimals for all."""
    decimals = 1 if max(values, default=0.0) >= 1000 else 2
    return [f"{value:,.{decimals}f}" for value in values]


def gigabytes(num_bytes: float) -> str:
    """1e9 bytes, one decimal."""
    return f"{num_bytes / 1e9:.1f}"


def percent(fraction: float) -> str:
    """One decimal; more where that would hide everything."""
    value = 100 * fraction
    return f"{value:.1f} %" if value >= 0.05 or value == 0 else f"{value:.2g} %"


def ranges(numbers: Sequence[int]) -> str:
    """``0-3,8`` for 0, 1, 2, 3, 8."""
    runs: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def plural(count: int, noun: str, several: str | None = None) -> str:
    """``1 stage``, ``2 stages``."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"
