from __future__ import annotations

import pytest

from poseidon.output.numbers import milliseconds, milliseconds_column, percent, plural, ranges


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0.000"), (0.5, "0.500"), (12.345, "12.35"), (999.5, "999.50"), (12345.67, "12,345.7")]
)
def test_milliseconds(value: float, text: str) -> None:
    assert milliseconds(value) == text


def test_a_column_has_as_many_decimals_everywhere() -> None:
    assert milliseconds_column([1.0, 22.5]) == ["1.00", "22.50"]
    assert milliseconds_column([1.0, 2222.5]) == ["1.0", "2,222.5"]
    assert milliseconds_column([]) == []


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.0, "0.0 %"), (0.1234, "12.3 %"), (0.000065, "0.0065 %"), (1.0, "100.0 %")]
)
def test_percent(fraction: float, text: str) -> None:
    assert percent(fraction) == text


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([0, 1, 2], "0-2"), ([5, 1, 2, 8], "1-2,5,8"), ([1, 2], "1-2")]
)
def test_ranges(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


def test_plural() -> None:
    assert plural(1, "stage") == "1 stage"
    assert plural(1200, "stage") == "1,200 stages"
    assert plural(2, "micro-batch", "micro-batches") == "2 micro-batches"
