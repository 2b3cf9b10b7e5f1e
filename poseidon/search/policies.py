"""The policies of the search, by name."""

from __future__ import annotations

from collections.abc import Callable

from poseidon.search.brute_force import brute_force_search
from poseidon.search.exact_policy import exact_search
from poseidon.search.options import SearchOptions
from poseidon.search.paper import paper_search
from poseidon.search.result import SearchResult
from poseidon.search.run import Run
from poseidon.search.static_policy import static_search

PolicySearch = Callable[[Run], SearchResult]

POLICIES: dict[str, PolicySearch] = {
    "exact": exact_search,
    "paper": paper_search,
    "brute-force": brute_force_search,
}


def policy_of(options: SearchOptions) -> PolicySearch:
    """The search that the options ask for."""
    return static_search if options.cost_model == "eq1" else POLICIES[options.policy]
