"""Figure 8: search seconds in settings 1 to 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poseidon.paper.compared import HEXISCALE, METIS, PAPER, STUDY, comparison_remarks
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.search_seconds import SPACES, SearchSeconds
from poseidon.paper.study import Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECONDS = SearchSeconds({"setting1": {}, "setting2": {}, "setting3": {PAPER: 88.42, METIS: 1003.05, HEXISCALE: 89.87}})


def _draw(figure: Figure, tables: Tables) -> None:
    SECONDS.draw(figure.add_subplot(), tables)


EXHIBIT = Exhibit(
    name="figure-8",
    title="Search time in settings 1 to 3",
    studies=(STUDY, SPACES),
    reported="15.54, 6.73 and 3.80 s in setting 1, 55.34, 49.36 and 42.99 s in setting 2 (its text does not say whose "
    "is which); in setting 3 Poseidon 88.42, Metis 1,003.05, HexiScale 89.87 s.",
    found=SECONDS.found,
    tables=lambda tables: (SECONDS.table(tables),),
    draw=_draw,
    remarks=lambda tables: comparison_remarks(tables, SECONDS.reported),
    data=SECONDS.data,
)
