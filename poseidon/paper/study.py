"""A study: measurements that one or several of the paper's figures and tables are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poseidon.paper.request import SCALE_SETTINGS, SETTINGS, Request
from poseidon.sweep.schema import Column

Row = dict[str, Any]
"""Values by column; a column that does not apply is left out."""
Tables = Mapping[str, Sequence[Row]]
"""The rows of studies, by the study's name."""


@dataclass(frozen=True)
class Study:
    """Measurements under a name: `DIR/rows/NAME.parquet`."""

    name: str
    title: str
    """What is measured, in a few words."""
    columns: tuple[Column, ...]
    run: Callable[[Request], Iterator[Row]]
    """Measures and yields row after row; raises InputError for experiments that do not suit it."""
    experiments: tuple[str, ...] = (*SETTINGS, *SCALE_SETTINGS)
    """The experiments that it loads, by name: where they are the same, its rows are not measured again."""
