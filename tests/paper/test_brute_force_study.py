"""Brute force of tiny settings: counted, simulated, compared with the exact search, kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from poseidon.errors import InputError
from poseidon.paper.enumerated import core_seconds, duration, settings
from poseidon.paper.exhibits.brute_force import EXHIBIT
from poseidon.paper.keep import Keep
from poseidon.paper.studies.brute_force import STUDY, rows, same_time
from poseidon.search.local_workers import LocalWorkers
from tests.paper.tiny import check_tables, stored, tiny_request

Write = Callable[..., Path]
LIMITS = {"setting1": None, "setting2": 14, "setting3": 0}


def test_what_is_enumerated_is_simulated_whole_and_has_the_exact_optimum(write_experiment: Write) -> None:
    enumerated = [row for row in rows(tiny_request(write_experiment), LIMITS) if row["treatment"] == "enumerated"]
    assert len(enumerated) > 5
    for row in enumerated:
        assert row["complete"]
        assert str(row["simulated"]) == row["configurations"]
        assert same_time(row)
        assert row.get("best_plan") == row.get("exact_plan")


def test_larger_outer_choices_are_only_begun(write_experiment: Write) -> None:
    request = tiny_request(write_experiment)
    all_rows = list(rows(request, LIMITS))
    setting2 = [row for row in all_rows if row["experiment"] == "setting2"]
    assert {row["treatment"] for row in setting2} == {"enumerated", "sampled"}
    for row in setting2:
        assert (int(row["configurations"]) <= 14) is (row["treatment"] == "enumerated")
    begun = list(rows(replace(request, time_limit_s=1e-9), {"setting3": 0}))
    assert {row["treatment"] for row in begun} == {"sampled"}
    assert not any(row["complete"] or "best_ms" in row for row in begun)


def test_outer_choices_come_with_the_fewest_configurations_first(write_experiment: Write) -> None:
    counts = [int(row["configurations"]) for row in rows(tiny_request(write_experiment), {"setting1": 0})]
    assert counts == sorted(counts)


def test_finished_rows_are_kept_and_not_measured_again(write_experiment: Write, tmp_path: Path) -> None:
    lines: list[str] = []
    request = tiny_request(write_experiment, lines.append, progress=tmp_path / "progress")
    first = list(rows(request, {"setting1": None}))
    told = len(lines)
    assert told == len(first)
    assert list(rows(request, {"setting1": None})) == first
    assert len(lines) == told


def test_a_kept_row_of_another_experiment_is_given_its_own_name(write_experiment: Write, tmp_path: Path) -> None:
    request = tiny_request(write_experiment, progress=tmp_path / "progress")
    both = list(rows(request, {"setting1": None, "setting2": None}))
    names = [row["experiment"] for row in both]
    assert names == ["setting1"] * (len(both) // 2) + ["setting2"] * (len(both) // 2)


def test_what_the_time_limit_cut_short_is_done_the_next_time(write_experiment: Write, tmp_path: Path) -> None:
    request = tiny_request(write_experiment, progress=tmp_path / "progress", time_limit_s=1e-9)
    cut_short = list(rows(request, {"setting1": None}))
    assert not any(row["complete"] for row in cut_short if row["configurations"] != "0")
    whole = list(rows(replace(request, time_limit_s=60.0), {"setting1": None}))
    assert all(row["complete"] and str(row["simulated"]) == row["configurations"] for row in whole)


def test_worker_processes_find_the_same(write_experiment: Write) -> None:
    request = tiny_request(write_experiment)
    alone = list(rows(request, {"setting1": None}))
    backend = LocalWorkers(2)
    try:
        together = list(rows(replace(request, backend=backend), {"setting1": None}))
    finally:
        backend.close()
    measured = ("cpu_s", "exact_s", "workers", "backend", "exact_simulations")
    assert [{k: v for k, v in row.items() if k not in measured} for row in alone] == [
        {k: v for k, v in row.items() if k not in measured} for row in together
    ]
    assert {row["workers"] for row in together} == {2}


def test_the_exhibit_adds_up_the_rows(write_experiment: Write) -> None:
    table = stored(STUDY, list(rows(tiny_request(write_experiment), LIMITS)))
    tables = {STUDY.name: table}
    check_tables(EXHIBIT, tables)
    first, second, _ = settings(table)
    assert first.configurations == sum(row["simulated"] for row in first.rows)
    assert first.counts_agree == first.same_times == first.same_plans == len(first.rows)
    assert first.best == first.optimum
    assert second.core_s == sum(row["cpu_s"] for row in second.rows)
    text = EXHIBIT.found(tables)
    assert f"setting1: {first.configurations:,} configurations, {first.configurations:,} simulated" in text
    assert "the optimum of all among them" in text
    assert "all of it took" in text


def test_the_time_of_the_rest_goes_by_what_was_simulated() -> None:
    begun = {"complete": False, "simulated": 10, "configurations": "1000", "cpu_s": 2.0}
    assert core_seconds(begun) == 200.0
    assert core_seconds({**begun, "complete": True}) == 2.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3.0, "3 s"),
        (600, "10 minutes"),
        (7.0 * 3600, "7 hours"),
        (86_400 * 4.81, "4.81 days"),
        (1.6e11, "5.07e+03 years"),
    ],
)
def test_durations_are_given_in_the_unit_that_suits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_what_no_outer_choice_was_enumerated_of_would_take_is_said(write_experiment: Write) -> None:
    table = stored(STUDY, list(rows(tiny_request(write_experiment), {"setting3": 0})))
    for row in table:
        row |= {"complete": False, "simulated": 1, "cpu_s": 3600.0}
    number = sum(int(row["configurations"]) for row in table)
    expected = f"setting3: {number:,} configurations; all of it would take {number / 24:.3g} days on one core."
    assert EXHIBIT.found({STUDY.name: table}) == expected
    assert EXHIBIT.tables({STUDY.name: table})[1].rows[0][4].endswith("(worked out)")


def test_an_optimum_that_was_not_enumerated_is_said(write_experiment: Write) -> None:
    table = stored(STUDY, list(rows(tiny_request(write_experiment), {"setting1": None})))
    best = min((row for row in table if row["exact_ms"]), key=lambda row: row["exact_ms"])
    best["complete"] = False
    assert f"is in {best['outer_choice']}, not among them" in EXHIBIT.found({STUDY.name: table})


def test_an_optimum_that_differs_is_said(write_experiment: Write) -> None:
    table = stored(STUDY, list(rows(tiny_request(write_experiment), {"setting1": None})))
    table[-1]["best_ms"] *= 1.001
    cells = EXHIBIT.tables({STUDY.name: table})[1].rows
    assert cells[-1][-2:] == ("NO", "yes")
    assert all(line[-2:] == ("yes", "yes") for line in cells[:-1])


def test_plans_that_are_equally_fast_are_told_apart_from_wrong_ones(write_experiment: Write) -> None:
    table = stored(STUDY, list(rows(tiny_request(write_experiment), {"setting1": None})))
    table[-1]["best_plan"] = "another"
    assert EXHIBIT.tables({STUDY.name: table})[1].rows[-1][-2:] == ("yes", "equally fast")
    assert f"its plan in {len(table) - 1} and one that is equally fast in 1)" in EXHIBIT.found({STUDY.name: table})


def test_without_a_folder_nothing_is_kept(tmp_path: Path) -> None:
    keep = Keep(None)
    keep.put("key", {"a": 1})
    assert keep.row("key") is None
    assert keep.journal("key") is None
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be written"):
        Keep(tmp_path / "file").put("key", {"a": 1})
