"""What exhibits say of rows: nothing that the rows do not hold."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from poseidon.output.markdown import anchor, table_lines
from poseidon.paper import registry
from poseidon.paper.compared import (
    POSEIDON,
    entries_of,
    faster_than_poseidon,
    joined,
    poseidon_of,
    relative_throughput,
    seconds_until,
)
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.exhibit_files import shown_exhibits
from poseidon.paper.exhibits import figure_2, figure_3, figure_7, figure_8, figure_14, table_1, table_2
from poseidon.paper.page import results_page
from poseidon.paper.search_seconds import scientific, space_of
from poseidon.paper.study import Tables
from tests.paper.conftest import EXHIBITS, Finished

Change = Callable[[dict[str, Any]], None]


def changed(tables: Tables, study: str, change: Change) -> dict[str, list[dict[str, Any]]]:
    """A copy of the rows in which every row of a study is changed."""
    copied = {name: copy.deepcopy(list(rows)) for name, rows in tables.items()}
    for row in copied[study]:
        change(row)
    return copied


def set_for(entrant: str, setting: str = "", **values: Any) -> Change:
    """Sets fields of one policy's rows (of one setting)."""

    def change(row: dict[str, Any]) -> None:
        if row["entrant"] == entrant and setting in ("", row["setting"]):
            row |= values

    return change


def test_names_are_unique_and_every_study_is_used() -> None:
    exhibits, studies = registry.EXHIBITS, registry.STUDIES
    assert len({exhibit.name for exhibit in exhibits}) == len(exhibits)
    assert len({study.name for study in studies}) == len(studies)
    assert {name for exhibit in exhibits for name in exhibit.studies} == {study.name for study in studies}


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_the_numbers_found_move_with_the_rows(exhibit: Exhibit, finished_once: Finished) -> None:
    """Every float of every row is made larger by a factor of its own: each finding has to say other numbers."""

    def grown(value: Any, factor: float) -> Any:
        if isinstance(value, float):
            return value * factor
        return [grown(item, factor) for item in value] if isinstance(value, list) else value

    tables = finished_once.tables
    others = {
        name: [
            {key: grown(row[key], 1.3 + 0.1 * index + 0.07 * place) for place, key in enumerate(row)}
            for index, row in enumerate(rows)
        ]
        for name, rows in tables.items()
    }
    numbers = r"\d[\d,]*\.\d+"
    before, after = (re.findall(numbers, exhibit.found(rows)) for rows in (tables, others))
    assert before
    assert before != after


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_tables_are_whole(exhibit: Exhibit, finished_once: Finished) -> None:
    for table in exhibit.tables(finished_once.tables):
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.header)}
        assert all(0 <= index < len(table.header) for index in table.numeric)


def test_throughput_is_relative_to_metis(finished_once: Finished) -> None:
    tables = changed(finished_once.tables, "comparisons", set_for("metis", iteration_time_ms=5.0, fits=True))
    tables = changed(tables, "comparisons", set_for(POSEIDON, iteration_time_ms=4.0, fits=True))
    entries = entries_of(tables, "setting1")
    assert relative_throughput(entries, entries[POSEIDON]) == 1.25
    assert "1.25x and " in figure_7.EXHIBIT.found(tables)
    tables = changed(tables, "comparisons", set_for(POSEIDON, fits=False))
    entries = entries_of(tables, "setting1")
    assert relative_throughput(entries, entries[POSEIDON]) is None
    assert "Not within memory: Poseidon, TP per stage in setting 1" in " ".join(figure_7.EXHIBIT.remarks(tables))


def test_a_faster_rival_is_said_with_the_cause(finished_once: Finished) -> None:
    tables = finished_once.tables
    assert figure_7.EXHIBIT.found(tables).endswith("No policy has a faster plan than Poseidon.")
    ours = entries_of(tables, "setting2")[POSEIDON]["iteration_time_ms"]
    fast = changed(tables, "comparisons", set_for("metis", "setting2", iteration_time_ms=ours / 1.1))
    [sentence] = faster_than_poseidon(entries_of(fast, "setting2"))
    assert sentence.startswith("the plan of Metis is 10.0 % faster than Poseidon's: ")
    assert "please report this" in sentence
    stopped = changed(fast, "comparisons", set_for(POSEIDON, "setting2", termination="time limit"))
    assert "time limit ended the search with TP per stage" in faster_than_poseidon(entries_of(stopped, "setting2"))[0]
    mixed = [{"dp": 1, "tp": 1}, {"dp": 2, "tp": 1}]
    differs = changed(fast, "comparisons", set_for("metis", "setting2", stages=mixed))
    assert "its stages differ in DP" in faster_than_poseidon(entries_of(differs, "setting2"))[0]
    assert "But in setting 2 the plan of Metis is" in figure_7.EXHIBIT.found(fast)


def test_where_the_wide_search_has_no_plan_the_other_one_counts(finished_once: Finished) -> None:
    tables = finished_once.tables
    without = changed(tables, "comparisons", set_for(POSEIDON, iteration_time_ms=None, fits=None, plan=None))
    assert poseidon_of(entries_of(without, "setting1")) == entries_of(without, "setting1")["exact"]
    neither = changed(without, "comparisons", set_for("exact", iteration_time_ms=None, fits=None, plan=None))
    assert faster_than_poseidon(entries_of(neither, "setting1")) == ["Poseidon has no plan"]
    assert "- and " in figure_7.EXHIBIT.found(neither)


def test_a_policy_without_a_plan_has_a_row_with_the_reason(finished_once: Finished) -> None:
    blank = {"iteration_time_ms": None, "fits": None, "plan": None, "reason": "nothing fits", "status": "infeasible"}
    tables = changed(finished_once.tables, "comparisons", set_for("metis", **blank))
    for exhibit in (figure_7.EXHIBIT, figure_8.EXHIBIT, figure_14.EXHIBIT, table_1.EXHIBIT):
        text = "\n".join(line for table in exhibit.tables(tables) for line in table_lines(table))
        assert exhibit is figure_8.EXHIBIT or "nothing fits" in text
        assert exhibit.found(tables)


def test_a_faster_search_is_said_with_its_space(finished_once: Finished) -> None:
    tables = changed(finished_once.tables, "comparisons", set_for("exact", search_s=1.0))
    tables = changed(tables, "comparisons", set_for("hexiscale", "setting3", search_s=0.5, outer_choices=77))
    tables = changed(tables, "spaces", lambda row: row.update(num_configurations="1234567"))
    for entrant in (POSEIDON, "eq1", "paper", "metis"):
        tables = changed(tables, "comparisons", set_for(entrant, search_s=2.0))
    tables = changed(tables, "comparisons", lambda row: row.update(search_s=max(row["search_s"], 0.5)))
    for setting in ("setting1", "setting2"):
        tables = changed(tables, "comparisons", set_for("hexiscale", setting, search_s=3.0))
    found = figure_8.EXHIBIT.found(tables)
    assert "No search of a comparable space is faster. " in found
    assert (
        "Faster on a much smaller space than one TP's: HexiScale in setting 3 (77 candidates to 1.23e6 configurations)."
        in found
    )
    alike = changed(tables, "comparisons", set_for("eq1", "setting2", search_s=0.75))
    assert "Faster than Poseidon with one TP: Eq. 1, exact in setting 2 (" in figure_8.EXHIBIT.found(alike)
    slow = changed(tables, "comparisons", set_for("hexiscale", search_s=9.0))
    assert figure_8.EXHIBIT.found(slow).endswith(
        "No search of a comparable space is faster. No other is faster, either."
    )


def test_the_size_of_a_space_is_counted_or_at_least_so_much(finished_once: Finished) -> None:
    tables = finished_once.tables
    rows = {row["scope"]: row for row in tables["spaces"] if row["setting"] == "setting1"}
    exact, wide, metis = (entries_of(tables, "setting1")[name] for name in ("exact", POSEIDON, "metis"))
    assert space_of(tables, "setting1", exact).count == int(rows["uniform"]["num_configurations"]) > 0
    assert space_of(tables, "setting1", wide).count == int(rows["per-stage"]["num_configurations"])
    assert space_of(tables, "setting1", wide).count > space_of(tables, "setting1", exact).count
    assert space_of(tables, "setting1", metis).text == f"{metis['outer_choices']:,} candidates"

    def cut(row: dict[str, Any]) -> None:
        if row["scope"] == "per-stage":
            row.update(is_complete=False, num_configurations="3")

    least = space_of(changed(tables, "spaces", cut), "setting1", wide)
    assert least.is_least
    assert least.count == int(rows["uniform"]["num_configurations"])
    assert least.text.startswith("more than ")
    assert scientific(1_014_999_999) == "1.01e9"


def test_seconds_until_a_plan_is_as_good() -> None:
    points = [(0.5, 120.0), (1.5, 100.0), (2.5, 90.0)]
    row = {"curve": [{"seconds": seconds, "iteration_time_ms": time_ms} for seconds, time_ms in points]}
    assert seconds_until(row, 100.0) == 1.5
    assert seconds_until(row, 119.0) == 1.5
    assert seconds_until(row, 80.0) is None


def test_eq_1_is_put_beside_the_dag(finished_once: Finished) -> None:
    def change(row: dict[str, Any]) -> None:
        row.update(iteration_time_ms=100.0, once_ms=131.0, both_sides_ms=142.0)

    tables = changed(finished_once.tables, "static-formula", change)
    found = figure_2.EXHIBIT.found(tables)
    assert "1.31x, 1.31x and 1.31x with a boundary counted once, 1.42x, 1.42x and 1.42x at both" in found


def test_degradation_is_over_the_proven_optimum(finished_once: Finished) -> None:
    def change(row: dict[str, Any]) -> None:
        row.update(iteration_time_ms={"metis": 150.0, "hexiscale": 120.0}.get(row["entrant"], 100.0), fits=True)

    tables = changed(finished_once.tables, "pruning", change)
    assert "Metis 1.50x, 1.50x and 1.50x and HexiScale 1.20x, 1.20x and 1.20x of the time of the proven" in (
        figure_3.EXHIBIT.found(tables)
    )
    tables = changed(tables, "pruning", lambda row: row.update(status="feasible"))
    assert "proven optimal in 0 of 3 cases" in figure_3.EXHIBIT.found(tables)


def test_the_papers_own_plans_are_refused_on_another_cluster(finished_once: Finished) -> None:
    assert "Poseidon's can't be timed here (40 layers are given, the model has 6)" in (
        table_1.EXHIBIT.found(finished_once.tables)
    )


def test_links_of_the_page_lead_somewhere(finished_once: Finished) -> None:
    evaluation = finished_once.evaluation
    page = results_page(evaluation, *shown_exhibits(EXHIBITS, evaluation))
    anchors = {anchor(line[3:]) for line in page.splitlines() if line.startswith("## ")}
    linked = re.findall(r"\]\(#([^)]+)\)", page)
    assert len(linked) == len(EXHIBITS)
    assert set(linked) <= anchors
    for exhibit in EXHIBITS:
        assert f"    poseidon paper {exhibit.name} --out runs/paper\n" in page
        assert exhibit.reported in page


def test_the_page_says_where_its_numbers_come_from(finished_once: Finished) -> None:
    evaluation = finished_once.evaluation
    page = results_page(evaluation, *shown_exhibits(EXHIBITS, evaluation))
    row = evaluation.found["comparisons"].rows[0]
    expected = ("analytic profile", "(accuracy.md)", "Figure 9", "Each search got 60 s", "model-of-setting6-288")
    for text in (row["processor"], *expected):
        assert text in page
    assert table_2.EXHIBIT.found(finished_once.tables) in page


def test_words_are_joined() -> None:
    assert [joined(parts) for parts in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
