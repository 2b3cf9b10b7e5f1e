"""Numbers that are shown as parts of a sum, rounded so that the shown ones add up too."""

from __future__ import annotations

from collections.abc import Sequence


def decimals_of(time_ms: float) -> int:
    """Decimals of milliseconds that go with an iteration time."""
    return 1 if time_ms >= 1000 else 2


def rounded_parts(parts: Sequence[float], total: float, decimals: int, *, signed: bool = False) -> tuple[str, ...]:
    """The parts of `total`, each rounded up or down so that what is shown adds up to the total as it is shown.

    By largest remainder: the parts that lose most by being rounded down are rounded up. `signed` shows a plus, too.
    """
    scale = 10**decimals
    down = [int(part * scale // 1) for part in parts]
    missing = round(total * scale) - sum(down)
    by_loss = sorted(range(len(parts)), key=lambda index: (down[index] - parts[index] * scale, index))
    for index in by_loss[: max(0, missing)]:
        down[index] += 1
    form = f"{{:{'+' if signed else ''},.{decimals}f}}"
    return tuple(form.format(value / scale) for value in down)
