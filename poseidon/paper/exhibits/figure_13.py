"""Figure 13: throughput and search seconds with a mixture of experts (setting 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poseidon.paper.compared import HEXISCALE, METIS, PAPER, STUDY
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.search_seconds import SPACES, SearchSeconds
from poseidon.paper.study import Tables
from poseidon.paper.throughput import Reported, Throughput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THROUGHPUT = Throughput({"setting4": Reported(1.06, 0.66)})
SECONDS = SearchSeconds({"setting4": {PAPER: 12.6, METIS: 656.1, HEXISCALE: 39.7}})


def _found(tables: Tables) -> str:
    return f"{THROUGHPUT.found(tables)} {SECONDS.found(tables)}"


def _draw(figure: Figure, tables: Tables) -> None:
    figure.set_size_inches(9.0, 4.0)
    THROUGHPUT.draw(figure.add_subplot(1, 2, 1), tables)
    SECONDS.draw(figure.add_subplot(1, 2, 2), tables)


EXHIBIT = Exhibit(
    name="figure-13",
    title="Throughput and search time with a mixture of experts (setting 4)",
    studies=(STUDY, SPACES),
    reported="Poseidon and HexiScale over Metis 1.06x and 0.66x; search 12.6 s, Metis 656.1 s, HexiScale 39.7 s.",
    found=_found,
    tables=lambda tables: (THROUGHPUT.table(tables), SECONDS.table(tables)),
    draw=_draw,
    remarks=THROUGHPUT.remarks,
    data=THROUGHPUT.data,
)
