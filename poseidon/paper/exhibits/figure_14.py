"""Figure 14: throughput and search seconds on GPUs (setting 5)."""

from __future__ import annotations

from poseidon.paper.compared import HEXISCALE, METIS, PAPER, STUDY
from poseidon.paper.comparison_exhibit import comparison_exhibit
from poseidon.paper.search_seconds import SearchSeconds
from poseidon.paper.throughput import Reported, Throughput

THROUGHPUT = Throughput({"setting5": Reported(1.74, 0.63)})
SECONDS = SearchSeconds({"setting5": {PAPER: 49.2, METIS: 330.7, HEXISCALE: 52.5}})
EXHIBIT = comparison_exhibit(
    "figure-14",
    "Throughput and search time on GPUs (setting 5)",
    STUDY,
    "Poseidon and HexiScale over Metis 1.74x and 0.63x; search 49.2 s, Metis 330.7 s, HexiScale 52.5 s.",
    THROUGHPUT,
    SECONDS,
)
