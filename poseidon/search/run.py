"""What every policy needs to run a search."""

from __future__ import annotations

from dataclasses import dataclass

from poseidon.search.backend import Backend
from poseidon.search.journal import Journal
from poseidon.search.shard import Context
from poseidon.search.watch import Watch


@dataclass(frozen=True)
class Run:
    """A search that is about to begin: what to search, where, and until when; `journal` (if any) keeps its progress."""

    context: Context
    backend: Backend
    watch: Watch
    journal: Journal | None = None
