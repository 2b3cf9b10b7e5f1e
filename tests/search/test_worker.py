"""A worker that is told to stop hands back all that is left."""

from __future__ import annotations

import math

import pytest

from poseidon.search._incumbent_cell import SIZE, IncumbentCell
from poseidon.search.exact import OpenTables
from poseidon.search.frontier import TreeFrontier
from poseidon.search.options import SearchOptions
from poseidon.search.shard import Action, Context, Found, Shard
from poseidon.search.worker import Worker
from tests.search.example import EXAMPLE, MEDIUM

ROOM = 60_000_000


class Link:
    """A connection to nobody; tables are not kept."""

    def __init__(self) -> None:
        self.cell = IncumbentCell(bytearray(SIZE))
        self.cell.reset()

    def found(self, found: Found) -> None:
        pass

    def must_stop(self) -> bool:
        return self.cell.stop

    def note_nodes(self, search_nodes: int) -> None:
        pass

    def put_tables(self, problem: int, tables: OpenTables) -> None:
        pass

    def get_tables(self, problem: int) -> OpenTables | None:
        return None


@pytest.fixture
def link() -> Link:
    return Link()


def worker_of(link: Link) -> Worker:
    return Worker(Context((MEDIUM, EXAMPLE), SearchOptions(num_thresholds=1)), link)


def opening() -> Shard:
    return Shard(0, 0, Action.OPEN, 0.0, most_table_values=ROOM)


def test_an_outer_choice_that_could_not_be_opened_is_all_left(link: Link) -> None:
    link.cell.stop = True
    outcome = worker_of(link).run(opening())
    assert outcome.is_cut_short
    assert outcome.found is None


def test_a_part_whose_tables_could_not_be_built_again_is_all_left(link: Link) -> None:
    opened = worker_of(link).run(opening())
    assert isinstance(opened.frontier, TreeFrontier)
    assert not opened.is_cut_short
    part = Shard(1, 0, Action.SEARCH, opened.frontier.bound_ms, opened.frontier, most_table_values=ROOM)
    link.cell.stop = True
    assert worker_of(link).run(part).is_cut_short
    link.cell.stop = False
    outcome = worker_of(link).run(part)
    assert not outcome.is_cut_short
    assert outcome.frontier is None
    assert math.isfinite(outcome.floor_ms)
