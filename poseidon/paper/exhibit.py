"""An exhibit: a figure or table of the paper, made of the rows of studies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poseidon.output.markdown import MarkdownTable
from poseidon.paper.study import Row, Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Exhibit:
    """One figure or table (or a few that show the same) of the paper."""

    name: str
    """As in `poseidon paper NAME`: figure-10, table-1."""
    title: str
    """What it shows."""
    studies: tuple[str, ...]
    """The names of the studies whose rows it takes."""
    reported: str
    """What the paper reports, one line with its numbers."""
    found: Callable[[Tables], str]
    """What is found here, one line with its numbers, all of them taken from the rows."""
    tables: Callable[[Tables], tuple[MarkdownTable, ...]]
    """Its numbers, as the page shows them, the paper's beside ours where it prints some."""
    draw: Callable[[Figure, Tables], None] | None = None
    """Draws it on an empty figure; None: only a table."""
    remarks: Callable[[Tables], tuple[str, ...]] = lambda _: ()
    """What a reader has to know: where conditions differ from the paper's, what is not reproduced and why."""
    data: Callable[[Tables], Sequence[Row]] | None = None
    """The numbers that it shows, flat rows with the same keys; None: the rows of its first study."""
