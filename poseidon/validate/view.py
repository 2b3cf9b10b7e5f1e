"""Comparisons as people see them in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from poseidon.output.console import Columns, rendered
from poseidon.validate.accuracy_page import quantity, value_text
from poseidon.validate.comparison import Comparison


def results_text(results: Sequence[Comparison], stream: TextIO) -> str:
    """A table of the targets; with a single comparison its rows too."""
    parts: list[str] = []
    for result in results if len(results) == 1 else ():
        rows = Columns(stream, title=result.title)
        rows.name("row")
        rows.number(result.basis, "predicted", "error")
        rows.name("use")
        for row in result.rows:
            error = row.error(result.error_kind)
            text = f"{100 * error:+.1f} %" if result.error_kind == "relative" else f"{error:+.4f}"
            use = "" if row.held_out else "fit"
            rows.row(row.label, quantity(row.observed, row.unit), quantity(row.predicted, row.unit), text, use)
        parts.append(rendered([rows.table()], stream))
        parts.append(rendered([*(f"- {note}" for note in result.notes)], stream))
    targets = Columns(stream)
    targets.name("comparison", "must hold")
    targets.number("value", "limit")
    targets.name("verdict")
    for result in results:
        for target in result.targets:
            limit = f"{target.sense} {value_text(target, target.limit)}"
            verdict = "met" if target.met else "NOT MET"
            targets.row(result.name, target.description, value_text(target, target.value), limit, verdict)
    parts.append(rendered([targets.table()], stream))
    return "\n".join(parts)
