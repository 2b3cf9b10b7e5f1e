"""Tiny experiments under the names of the paper's, and a request for studies on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from matplotlib.figure import Figure

from poseidon.paper.exhibit import Exhibit
from poseidon.paper.request import SETTINGS, Request
from poseidon.paper.study import Row, Study

Write = Callable[..., Path]


def tiny_request(write_experiment: Write, tell: Callable[[str], None] = lambda _: None, **changes: Any) -> Request:
    """A request whose settings are all the tests' small experiment."""
    paths = [write_experiment(f"{name}.yaml") for name in SETTINGS]
    fields: dict[str, Any] = {"time_limit_s": 60.0, "backend": None, "tell": tell, **changes}
    return Request(experiments=paths[0].parent, **fields)


def stored(study: Study, rows: list[Row]) -> list[Row]:
    """The rows as they come back from a table with the study's columns; every row has only these."""
    names = {column.name for column in study.columns}
    assert all(set(row) <= names for row in rows)
    read: list[Row] = pa.Table.from_pylist(
        rows, schema=pa.schema([column.field for column in study.columns])
    ).to_pylist()
    return read


def drawn(exhibit: Exhibit, tables: dict[str, list[Row]]) -> Figure:
    """The exhibit's plot, rendered once."""
    assert exhibit.draw is not None
    figure = Figure(layout="constrained")
    exhibit.draw(figure, tables)
    figure.draw_without_rendering()
    return figure


def check_tables(exhibit: Exhibit, tables: dict[str, list[Row]]) -> None:
    """Every line of every table has a cell for each column, and every numeric column is there."""
    for table in exhibit.tables(tables):
        assert table.rows
        assert {len(line) for line in table.rows} == {len(table.header)}
        assert table.numeric <= set(range(len(table.header)))
