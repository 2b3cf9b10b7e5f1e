"""A journal that was changed is refused; the kernel goes on from no search node that its problem has not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from poseidon.errors import InputError
from poseidon.search import journal as journal_module
from poseidon.search._stage_graph import StageGraph
from poseidon.search.arrays import search_arrays
from poseidon.search.frontier import TreeFrontier
from poseidon.search.journal import _packed, _unpacked
from poseidon.search.options import SearchOptions
from poseidon.search.result import TerminationReason
from poseidon.search.solve import solve
from poseidon.search.watch import Progress, Watch
from tests.search.example import MEDIUM

OPTIONS = SearchOptions(num_thresholds=1, warmup_samples=0)


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a search that was stopped in the middle of its tree."""
    monkeypatch.setattr(journal_module, "FIRST_WRITE_S", 0.0)
    monkeypatch.setattr(Watch.__init__, "__defaults__", (None, None, 0.0))
    path = tmp_path / "search.journal"

    def report(progress: Progress) -> None:
        if progress.search_nodes > 0:
            raise KeyboardInterrupt

    solve([MEDIUM], OPTIONS, report, journal=path)
    assert any(frontiers(records(path)))
    return path


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def frontiers(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    outcomes = [line["outcome"] for line in lines if "outcome" in line]
    return [outcome["frontier"] for outcome in outcomes if outcome["frontier"] is not None]


def resumed(path: Path) -> Any:
    return solve([MEDIUM], OPTIONS, journal=path, resume=True)


def test_its_own_journal_is_gone_on_with(journal: Path) -> None:
    expected, result = solve([MEDIUM], OPTIONS), resumed(journal)
    assert result.termination is TerminationReason.COMPLETE
    assert result.solutions == expected.solutions


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("value", [-1, 10**9, -(2**40), float("nan"), float("inf")])
def test_search_nodes_from_nowhere_are_refused(journal: Path, column: int, value: float) -> None:
    lines = records(journal)
    for frontier in frontiers(lines):
        rows = _unpacked(frontier["rows"])
        rows[-1, column] = value
        frontier["rows"] = _packed(rows)
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InputError, match=r"search\.journal: holds search nodes that this search has not"):
        resumed(journal)


Damage = Callable[[dict[str, Any]], Any]
DAMAGES: dict[str, Damage] = {
    "no outcome": lambda record: record.pop("outcome"),
    "another shard": lambda record: record["outcome"].update(number=10**6),
    "another problem": lambda record: record["outcome"].update(
        found={"problem": 9, "stages": [], "iteration_time_ms": 1, "depths": []}
    ),
    "no array": lambda record: record["outcome"].update(frontier={"path": 1, "rows": 2, "is_relaxed": False}),
    "objects": lambda record: record["outcome"].update(
        frontier={name: {"dtype": "O", "shape": [1], "data": "eJwDAAAAAAE="} for name in ("path", "rows")}
        | {"is_relaxed": 0}
    ),
    "unknown counters": lambda record: record["outcome"].update(counters={"x": 1}),
    "split": lambda record: record.update(split=0, next=1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_one_clear_line(journal: Path, damage: str) -> None:
    lines = records(journal)
    record = next(line for line in lines if "outcome" in line)
    DAMAGES[damage](record)
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InputError, match=r"search\.journal: (line \d+: is damaged|holds search nodes)") as caught:
        resumed(journal)
    assert len(caught.value.mistakes) == 1


def test_a_line_of_deep_lists_ends_what_is_known(journal: Path) -> None:
    with journal.open("a") as file:
        file.write("[" * 100_000 + "\n")
    assert resumed(journal).termination is TerminationReason.COMPLETE


def test_the_shapes_of_search_nodes_are_checked() -> None:
    arrays = search_arrays(MEDIUM)
    edges = StageGraph(arrays).edges
    limits = edges, arrays.num_stages, arrays.num_layers
    path, rows = np.zeros((0, 4)), np.array([[0, 0, 1, 1.0, 1.0]])
    assert TreeFrontier(path, rows).fits(*limits)
    assert not TreeFrontier(path, rows[:, :4]).fits(*limits)
    assert not TreeFrontier(path, rows.astype(np.int64)).fits(*limits)
    assert not TreeFrontier(path[:, :3], rows).fits(*limits)
    last = np.flatnonzero(edges[:, 0] == edges[-1, 0])[0]
    assert not TreeFrontier(np.array([[last, 1, 1.0, 1.0]]), rows).fits(*limits)
    assert not TreeFrontier(np.array([[0, arrays.num_layers, 1.0, 1.0]]), np.array([[1, 0, 1, 1.0, 1.0]])).fits(*limits)
