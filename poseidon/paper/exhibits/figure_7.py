"""Figure 7: throughput in settings 1 to 3."""

from __future__ import annotations

from poseidon.paper.compared import STUDY
from poseidon.paper.comparison_exhibit import comparison_exhibit
from poseidon.paper.throughput import Reported, Throughput

THROUGHPUT = Throughput(
    {"setting1": Reported(1.15, 0.89), "setting2": Reported(1.05, 0.86), "setting3": Reported(1.94, 1.15)}
)
EXHIBIT = comparison_exhibit(
    "figure-7",
    "Throughput in settings 1 to 3",
    STUDY,
    "Poseidon and HexiScale over Metis: 1.15x and 0.89x in setting 1, 1.05x and 0.86x in 2, 1.94x and 1.15x in 3.",
    THROUGHPUT,
)
