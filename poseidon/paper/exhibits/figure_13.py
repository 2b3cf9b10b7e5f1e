"""Figure 13: throughput and search seconds with a mixture of experts (setting 4)."""

from __future__ import annotations

from poseidon.paper.compared import HEXISCALE, METIS, PAPER, STUDY
from poseidon.paper.comparison_exhibit import comparison_exhibit
from poseidon.paper.search_seconds import SearchSeconds
from poseidon.paper.throughput import Reported, Throughput

THROUGHPUT = Throughput({"setting4": Reported(1.06, 0.66)})
SECONDS = SearchSeconds({"setting4": {PAPER: 12.6, METIS: 656.1, HEXISCALE: 39.7}})
EXHIBIT = comparison_exhibit(
    "figure-13",
    "Throughput and search time with a mixture of experts (setting 4)",
    STUDY,
    "Poseidon and HexiScale over Metis 1.06x and 0.66x; search 12.6 s, Metis 656.1 s, HexiScale 39.7 s.",
    THROUGHPUT,
    SECONDS,
)
