"""Figure 14: throughput and search seconds on GPUs (setting 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poseidon.paper.compared import HEXISCALE, METIS, PAPER, STUDY
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.search_seconds import SPACES, SearchSeconds
from poseidon.paper.study import Tables
from poseidon.paper.throughput import Reported, Throughput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THROUGHPUT = Throughput({"setting5": Reported(1.74, 0.63)})
SECONDS = SearchSeconds({"setting5": {PAPER: 49.2, METIS: 330.7, HEXISCALE: 52.5}})


def _found(tables: Tables) -> str:
    return f"{THROUGHPUT.found(tables)} {SECONDS.found(tables)}"


def _draw(figure: Figure, tables: Tables) -> None:
    figure.set_size_inches(9.0, 4.0)
    THROUGHPUT.draw(figure.add_subplot(1, 2, 1), tables)
    SECONDS.draw(figure.add_subplot(1, 2, 2), tables)


EXHIBIT = Exhibit(
    name="figure-14",
    title="Throughput and search time on GPUs (setting 5)",
    studies=(STUDY, SPACES),
    reported="Poseidon and HexiScale over Metis 1.74x and 0.63x; search 49.2 s, Metis 330.7 s, HexiScale 52.5 s.",
    found=_found,
    tables=lambda tables: (THROUGHPUT.table(tables), SECONDS.table(tables)),
    draw=_draw,
    remarks=THROUGHPUT.remarks,
    data=THROUGHPUT.data,
)
