"""What the work on a shard needs of its surroundings."""

from __future__ import annotations

import time
from typing import Protocol

from poseidon.search._incumbent_cell import IncumbentCell
from poseidon.search.exact import OpenTables
from poseidon.search.shard import Found, Shard

HUNGRY_S = 0.02
"""Seconds of work after which a shard is handed back to be shared out, when another worker has nothing to do."""


class Link(Protocol):
    """A worker's connection to the driver of the search."""

    cell: IncumbentCell

    def found(self, found: Found) -> None:
        """Tells of a plan at once."""

    def must_stop(self) -> bool:
        """Whether to hand back what is left as soon as possible."""

    def note_nodes(self, search_nodes: int) -> None:
        """Tells how many search nodes the shard at hand has taken so far: for the progress only."""

    def put_tables(self, problem: int, tables: OpenTables) -> None:
        """Keeps the tables of an outer choice for all workers."""

    def get_tables(self, problem: int) -> OpenTables | None:
        """The tables that some worker put; None where they are gone."""


def is_time_up(shard: Shard, link: Link, started: float) -> bool:
    """Whether a shard that was begun at `started` (`time.perf_counter`) is to be handed back."""
    return time.perf_counter() - started >= (HUNGRY_S if link.cell.hungry else shard.seconds)
