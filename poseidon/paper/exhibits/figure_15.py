"""Figure 15: throughput at scale."""

from __future__ import annotations

from poseidon.paper.compared import SCALE
from poseidon.paper.comparison_exhibit import comparison_exhibit
from poseidon.paper.throughput import Reported, Throughput

THROUGHPUT = Throughput(
    {"setting6-96": Reported(1.51, 1.00), "setting6-192": Reported(1.58, 1.09), "setting6-288": Reported(1.50, 0.97)}
)
EXHIBIT = comparison_exhibit(
    "figure-15",
    "Throughput at 96, 192 and 288 NPUs (setting 6)",
    SCALE,
    "Poseidon and HexiScale over Metis: 1.51x and 1.00x at 96, 1.58x and 1.09x at 192, 1.50x and 0.97x at 288 NPUs.",
    THROUGHPUT,
)
