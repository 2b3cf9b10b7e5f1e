"""Figure 8: search seconds in settings 1 to 3."""

from __future__ import annotations

from poseidon.paper.compared import HEXISCALE, METIS, PAPER, STUDY
from poseidon.paper.comparison_exhibit import comparison_exhibit
from poseidon.paper.search_seconds import SearchSeconds

SECONDS = SearchSeconds({"setting1": {}, "setting2": {}, "setting3": {PAPER: 88.42, METIS: 1003.05, HEXISCALE: 89.87}})
EXHIBIT = comparison_exhibit(
    "figure-8",
    "Search time in settings 1 to 3",
    STUDY,
    "15.54, 6.73 and 3.80 s in setting 1, 55.34, 49.36 and 42.99 s in setting 2 (its text does not say whose "
    "is which); in setting 3 Poseidon 88.42, Metis 1,003.05, HexiScale 89.87 s.",
    SECONDS,
)
