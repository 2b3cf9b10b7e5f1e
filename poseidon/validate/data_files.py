"""The data files that come with the comparisons (poseidon/validate/data; its README names every source)."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

DATA = Path(__file__).parent / "data"


def data_rows(name: str) -> Iterator[dict[str, str]]:
    """The rows of a CSV file, as text."""
    with (DATA / name).open(newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(lines)
