"""Exhibits that compare policies: throughput, search seconds, or both side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poseidon.paper.compared import comparison_remarks
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.search_seconds import SPACES, SearchSeconds
from poseidon.paper.study import Tables
from poseidon.paper.throughput import Throughput

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def comparison_exhibit(name: str, title: str, study: str, reported: str, *parts: Throughput | SearchSeconds) -> Exhibit:
    """An exhibit made of `parts`, from the rows of `study`; its data are those of the first part."""
    first = parts[0]

    def draw(figure: Figure, tables: Tables) -> None:
        if len(parts) > 1:
            figure.set_size_inches(9.0, 4.0)
        for place, part in enumerate(parts, start=1):
            part.draw(figure.add_subplot(1, len(parts), place), tables)

    def remarks(tables: Tables) -> tuple[str, ...]:
        if isinstance(first, Throughput):
            return first.remarks(tables)
        return comparison_remarks(tables, first.reported)

    has_seconds = any(isinstance(part, SearchSeconds) for part in parts)
    return Exhibit(
        name=name,
        title=title,
        studies=(study, SPACES) if has_seconds else (study,),
        reported=reported,
        found=lambda tables: " ".join(part.found(tables) for part in parts),
        tables=lambda tables: tuple(part.table(tables) for part in parts),
        draw=draw,
        remarks=remarks,
        data=first.data,
    )
