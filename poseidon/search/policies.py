"""The policies that enumerate configurations, by name; `poseidon.search.solve` itself is the exact one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from poseidon.cost.problem import Problem
from poseidon.search.brute_force import brute_force_search
from poseidon.search.options import SearchOptions
from poseidon.search.paper import paper_search
from poseidon.search.result import SearchResult
from poseidon.search.watch import Watch

PolicySearch = Callable[[Sequence[Problem], SearchOptions, Watch], SearchResult]

POLICIES: dict[str, PolicySearch] = {"paper": paper_search, "brute-force": brute_force_search}
