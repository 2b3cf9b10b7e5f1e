from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.explain.rounding import decimals_of, rounded_parts


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.integers(0, 3))
def test_what_is_shown_adds_up_and_is_close(parts: list[float], decimals: int) -> None:
    total = sum(parts)
    shown = [Decimal(text.replace(",", "")) for text in rounded_parts(parts, total, decimals, signed=True)]
    assert abs(sum(shown) - Decimal(total)) <= Decimal("0.51") / 10**decimals
    for number, part in zip(shown, parts, strict=True):
        assert abs(float(number) - part) <= 1.01 / 10**decimals


def test_thirds_by_hand() -> None:
    assert rounded_parts([1 / 3, 1 / 3, 1 / 3], 1.0, 1) == ("0.4", "0.3", "0.3")
    assert rounded_parts([1500.0, -0.25], 1499.75, 2, signed=True) == ("+1,500.00", "-0.25")


@pytest.mark.parametrize(("time_ms", "decimals"), [(999.0, 2), (1000.0, 1)])
def test_long_times_have_fewer_decimals(time_ms: float, decimals: int) -> None:
    assert decimals_of(time_ms) == decimals
