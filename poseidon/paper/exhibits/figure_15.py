"""Figure 15: throughput at scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poseidon.paper.compared import SCALE
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.study import Tables
from poseidon.paper.throughput import Reported, Throughput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THROUGHPUT = Throughput(
    {"setting6-96": Reported(1.51, 1.00), "setting6-192": Reported(1.58, 1.09), "setting6-288": Reported(1.50, 0.97)}
)


def _draw(figure: Figure, tables: Tables) -> None:
    THROUGHPUT.draw(figure.add_subplot(), tables)


EXHIBIT = Exhibit(
    name="figure-15",
    title="Throughput at 96, 192 and 288 NPUs (setting 6)",
    studies=(SCALE,),
    reported="Poseidon and HexiScale over Metis: 1.51x and 1.00x at 96, 1.58x and 1.09x at 192, 1.50x and 0.97x at 288 "
    "NPUs.",
    found=THROUGHPUT.found,
    tables=lambda tables: (THROUGHPUT.table(tables),),
    draw=_draw,
    remarks=THROUGHPUT.remarks,
    data=THROUGHPUT.data,
)
