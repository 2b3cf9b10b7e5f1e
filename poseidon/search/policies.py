"""The policies of the search, by name."""

from __future__ import annotations

from collections.abc import Callable

from poseidon.search.brute_force import brute_force_search
from poseidon.search.exact_policy import exact_search
from poseidon.search.paper import paper_search
from poseidon.search.result import SearchResult
from poseidon.search.run import Run

PolicySearch = Callable[[Run], SearchResult]

POLICIES: dict[str, PolicySearch] = {
    "exact": exact_search,
    "paper": paper_search,
    "brute-force": brute_force_search,
}
