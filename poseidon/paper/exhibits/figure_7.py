"""Figure 7: throughput in settings 1 to 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poseidon.paper.compared import STUDY
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.study import Tables
from poseidon.paper.throughput import Reported, Throughput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THROUGHPUT = Throughput(
    {"setting1": Reported(1.15, 0.89), "setting2": Reported(1.05, 0.86), "setting3": Reported(1.94, 1.15)}
)


def _draw(figure: Figure, tables: Tables) -> None:
    THROUGHPUT.draw(figure.add_subplot(), tables)


EXHIBIT = Exhibit(
    name="figure-7",
    title="Throughput in settings 1 to 3",
    studies=(STUDY,),
    reported="Poseidon and HexiScale over Metis: 1.15x and 0.89x in setting 1, 1.05x and 0.86x in 2, 1.94x and 1.15x "
    "in 3.",
    found=THROUGHPUT.found,
    tables=lambda tables: (THROUGHPUT.table(tables),),
    draw=_draw,
    remarks=THROUGHPUT.remarks,
    data=THROUGHPUT.data,
)
