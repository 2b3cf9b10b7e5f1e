"""Schedules over batches: the best plan of each, and the spread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from poseidon.paper.exhibits.figure_10 import EXHIBIT, rows_with, spread
from poseidon.paper.studies.schedules import FREE, OF_TABLE_1, PAPER_SCHEDULES, SCHEDULES, STUDY, rows
from tests.paper.tiny import check_tables, drawn, stored, tiny_request

Write = Callable[..., Path]


def test_every_schedule_has_its_best_plan_at_every_batch(write_experiment: Write) -> None:
    measured = list(rows(tiny_request(write_experiment), batches=(8, 16)))
    assert [(row["degrees"], row["global_batch_size"], row["schedule"]) for row in measured] == [
        (degrees, batch, schedule) for degrees in (FREE, OF_TABLE_1) for batch in (8, 16) for schedule in SCHEDULES
    ]
    for row in measured:
        assert row["outer_choice"].split(" x")[0].endswith(row["schedule"])
        assert row["tokens_per_second"] == pytest.approx(1024e3 * row["global_batch_size"] / row["iteration_time_ms"])
        assert row["degrees"] == FREE or row["outer_choice"].startswith("dp2 tp1 ")


def test_free_degrees_are_never_slower(write_experiment: Write) -> None:
    measured = list(rows(tiny_request(write_experiment), batches=(8,)))
    free, fixed = measured[: len(SCHEDULES)], measured[len(SCHEDULES) :]
    for one, other in zip(free, fixed, strict=True):
        assert one["tokens_per_second"] >= other["tokens_per_second"] * (1 - 1e-9)


def test_a_schedule_that_fits_nowhere_leaves_its_reason(write_experiment: Write) -> None:
    request = tiny_request(write_experiment)
    write_experiment(
        "setting2.yaml",
        cluster={
            "accelerators": {
                "fast": {"peak_tflops": 200.0, "memory_gb": 1.0},
                "slow": {"peak_tflops": 100.0, "memory_gb": 1.0},
            }
        },
    )
    measured = stored(STUDY, list(rows(request, batches=(8,))))
    assert {row["status"] for row in measured} == {"infeasible"}
    assert all(row["reason"] for row in measured)


def test_the_exhibit_gives_the_largest_spread(write_experiment: Write) -> None:
    table = stored(STUDY, list(rows(tiny_request(write_experiment), batches=(8, 16))))
    speeds = (100.0, 150.0, 120.0, 300.0, 100.0, 110.0, 90.0, 100.0)
    for row, speed in zip(table, (*speeds, *[50.0] * 8), strict=True):
        row["tokens_per_second"] = speed
    tables = {STUDY.name: table}
    free = rows_with(tables, FREE)
    assert spread(free, 8, PAPER_SCHEDULES) == 1.5
    assert spread(free, 16, PAPER_SCHEDULES) == pytest.approx(110 / 90)
    text = EXHIBIT.found(tables)
    assert "up to 1.50x (global batch 8, Eager 1F1B over 1F1B), at least 1.22x, with any degrees" in text
    assert "up to 1.00x" in text
    assert EXHIBIT.tables(tables)[0].rows[0][-2:] == ("1.500x", "3.000x")
    check_tables(EXHIBIT, tables)
    assert EXHIBIT.remarks(tables)
    figure = drawn(EXHIBIT, tables)
    assert len(figure.axes) == 2
    assert [label.get_text() for label in figure.axes[0].texts] == ["1.50x", "1.22x"]


def test_a_search_that_was_stopped_is_said_and_drawn_hollow(write_experiment: Write) -> None:
    table = stored(STUDY, list(rows(tiny_request(write_experiment), batches=(8,))))
    table[2] |= {"status": "feasible", "termination": "time limit", "gap": 0.05}
    tables = {STUDY.name: table}
    assert "1 of the 8 searches were stopped" in EXHIBIT.remarks(tables)[0]
    assert EXHIBIT.tables(tables)[1].rows[2][-2] == "within 5.00 %"
    bars = [bar for bar in drawn(EXHIBIT, tables).axes[0].patches if bar.get_height() > 0]
    white = (1.0, 1.0, 1.0, 1.0)
    assert [bar.get_facecolor() == white for bar in bars] == [False, False, True, False]
