"""Table 2: search seconds at scale."""

from __future__ import annotations

from poseidon.paper.compared import HEXISCALE, METIS, PAPER, SCALE
from poseidon.paper.comparison_exhibit import comparison_exhibit
from poseidon.paper.search_seconds import SearchSeconds

SECONDS = SearchSeconds(
    {
        "setting6-96": {PAPER: 26.0, METIS: 1378.7, HEXISCALE: 116.8},
        "setting6-192": {PAPER: 47.8, METIS: 2382.6, HEXISCALE: 251.7},
        "setting6-288": {PAPER: 75.8, METIS: 2862.9, HEXISCALE: 394.7},
    }
)
EXHIBIT = comparison_exhibit(
    "table-2",
    "Search time at 96, 192 and 288 NPUs (setting 6)",
    SCALE,
    "Poseidon 26.0, 47.8 and 75.8 s; Metis 1,378.7, 2,382.6 and 2,862.9 s; HexiScale 116.8, 251.7 and 394.7 s.",
    SECONDS,
)
