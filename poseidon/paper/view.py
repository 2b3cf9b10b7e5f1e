"""The evaluation as people see it in a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from poseidon.output.console import NARROW, Columns, rendered, width_of
from poseidon.paper.conduct import Evaluation
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.exhibit_files import Shown
from poseidon.paper.identity import SCHEMA


def results_text(results: Sequence[Shown], absent: Sequence[Exhibit], stream: TextIO) -> str:
    """A line for each exhibit: what the paper reports, and what is found here; with one exhibit its remarks, too."""
    parts: list[RenderableType] = [_wide(results, stream) if width_of(stream) >= NARROW else _narrow(results)]
    if len(results) == 1:
        parts += [_noted("-", remark) for remark in results[0].remarks]
    if absent:
        parts += [Text(""), Text(f"Not measured yet: {', '.join(exhibit.name for exhibit in absent)}")]
    return rendered(parts, stream)


def _wide(results: Sequence[Shown], stream: TextIO) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 1, 0), header_style="bold", width=width_of(stream))
    table.add_column("exhibit", no_wrap=True)
    table.add_column("the paper reports", ratio=2)
    table.add_column("here", ratio=3)
    for shown in results:
        table.add_row(Text(shown.exhibit.name), Text(shown.exhibit.reported), Text(shown.found))
    return table


def _narrow(results: Sequence[Shown]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column()
    for shown in results:
        table.add_row(Text(shown.exhibit.name, style="bold"), Text(shown.exhibit.title, style="bold"))
        table.add_row("  paper", Text(shown.exhibit.reported))
        table.add_row("  here", Text(shown.found))
    return table


def _noted(mark: str, text: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_row(mark, Text(text))
    return grid


def list_text(exhibits: Sequence[Exhibit], stream: TextIO) -> str:
    """The exhibits with what they show and the studies that they take."""
    columns = Columns(stream)
    columns.name("exhibit", "shows", "studies")
    for exhibit in exhibits:
        columns.row(exhibit.name, exhibit.title, ", ".join(exhibit.studies))
    return rendered([columns.table()], stream)


def list_to_json(exhibits: Sequence[Exhibit]) -> dict[str, Any]:
    """The same for programs."""
    return {"schema": SCHEMA, "exhibits": [_exhibit_to_json(exhibit) for exhibit in exhibits]}


def _exhibit_to_json(exhibit: Exhibit) -> dict[str, Any]:
    return {
        "name": exhibit.name,
        "title": exhibit.title,
        "studies": list(exhibit.studies),
        "reported": exhibit.reported,
    }


def results_to_json(
    evaluation: Evaluation, results: Sequence[Shown], absent: Sequence[Exhibit], page: Path | None
) -> dict[str, Any]:
    """Exhibits with what is found, and studies with the number of their rows."""
    return {
        "schema": SCHEMA,
        "page": None if page is None else str(page),
        "not_measured": [exhibit.name for exhibit in absent],
        "studies": [
            {"name": name, "rows": len(found.rows), "measured_now": name in evaluation.measured}
            for name, found in evaluation.found.items()
        ],
        "exhibits": [
            {
                **_exhibit_to_json(shown.exhibit),
                "found": shown.found,
                "remarks": list(shown.remarks),
                "files": [str(path) for path in shown.files],
            }
            for shown in results
        ],
    }
