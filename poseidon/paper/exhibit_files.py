"""Writes what an exhibit consists of: its numbers as Parquet, its plot as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from poseidon.paper.conduct import Evaluation
from poseidon.paper.drawing import write_plots
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.identity import SCHEMA
from poseidon.paper.study import Row, Tables
from poseidon.whole_file import write_whole

KINDS = (".png", ".svg")


@dataclass(frozen=True)
class Shown:
    """An exhibit as it came out, with the files that hold it."""

    exhibit: Exhibit
    tables: Tables
    found: str
    remarks: tuple[str, ...]
    files: tuple[Path, ...] = ()


def shown_exhibits(exhibits: Sequence[Exhibit], evaluation: Evaluation) -> tuple[list[Shown], list[Exhibit]]:
    """The exhibits whose studies are all there, and those that lack some."""
    tables = {name: found.rows for name, found in evaluation.found.items()}
    ready = [exhibit for exhibit in exhibits if all(name in tables for name in exhibit.studies)]
    return [show(exhibit, tables) for exhibit in ready], [exhibit for exhibit in exhibits if exhibit not in ready]


def show(exhibit: Exhibit, tables: Tables) -> Shown:
    """What the rows of its studies make of an exhibit."""
    own = {name: tables[name] for name in exhibit.studies}
    return Shown(exhibit, own, exhibit.found(own), tuple(exhibit.remarks(own)))


def write_exhibit(shown: Shown, directory: Path) -> Shown:
    """Writes DIR/NAME.parquet, .png and .svg; returns the exhibit with their paths."""
    exhibit = shown.exhibit
    files = [directory / f"{exhibit.name}.parquet"]
    _write_data(exhibit, data_of(exhibit, shown.tables), files[0])
    if exhibit.draw is not None:
        plots = [directory / f"{exhibit.name}{kind}" for kind in KINDS]
        write_plots(exhibit, shown.tables, plots)
        files += plots
    return Shown(exhibit, shown.tables, shown.found, shown.remarks, tuple(files))


def data_of(exhibit: Exhibit, tables: Tables) -> Sequence[Row]:
    """The numbers that an exhibit shows."""
    return tables[exhibit.studies[0]] if exhibit.data is None else exhibit.data(tables)


def _write_data(exhibit: Exhibit, rows: Sequence[Row], path: Path) -> None:
    table = pa.Table.from_pylist(list(rows))
    metadata = {"schema": SCHEMA, "exhibit": exhibit.name, "title": exhibit.title, "reported": exhibit.reported}
    table = table.replace_schema_metadata(metadata)
    write_whole(path, lambda temporary: pq.write_table(table, temporary))
