"""Schedules over batches: the best plan of each, and the spread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from poseidon.paper.exhibits.figure_10 import EXHIBIT, spread
from poseidon.paper.studies.schedules import PAPER_SCHEDULES, SCHEDULES, STUDY, rows
from tests.paper.tiny import check_tables, drawn, stored, tiny_request

Write = Callable[..., Path]


def test_every_schedule_has_its_best_plan_at_every_batch(write_experiment: Write) -> None:
    measured = list(rows(tiny_request(write_experiment), batches=(8, 16)))
    assert [(row["global_batch_size"], row["schedule"]) for row in measured] == [
        (batch, schedule) for batch in (8, 16) for schedule in SCHEDULES
    ]
    for row in measured:
        assert row["outer_choice"].split(" x")[0].endswith(row["schedule"])
        assert row["tokens_per_second"] == pytest.approx(1024e3 * row["global_batch_size"] / row["iteration_time_ms"])


def test_a_schedule_that_fits_nowhere_leaves_its_reason(write_experiment: Write) -> None:
    request = tiny_request(write_experiment)
    write_experiment("setting2.yaml", cluster={"accelerators": {
        "fast": {"peak_tflops": 200.0, "memory_gb": 1.0}, "slow": {"peak_tflops": 100.0, "memory_gb": 1.0}}})
    measured = stored(STUDY, list(rows(request, batches=(8,))))
    assert {row["status"] for row in measured} == {"infeasible"}
    assert all(row["reason"] for row in measured)


def test_the_exhibit_gives_the_largest_spread(write_experiment: Write) -> None:
    table = stored(STUDY, list(rows(tiny_request(write_experiment), batches=(8, 16))))
    speeds = iter((100.0, 150.0, 120.0, 300.0, 100.0, 110.0, 90.0, 100.0))
    for row in table:
        row["tokens_per_second"] = next(speeds)
    tables = {STUDY.name: table}
    assert spread(table, 8, PAPER_SCHEDULES) == 1.5
    assert spread(table, 16, PAPER_SCHEDULES) == pytest.approx(110 / 90)
    text = EXHIBIT.found(tables)
    assert "up to 1.50x at global batch 8 (Eager 1F1B over 1F1B)" in text
    assert "at least 1.22x" in text
    assert "up to 3.00x with adaptive" in text
    check_tables(EXHIBIT, tables)
    assert EXHIBIT.remarks(tables)
    labels = [text.get_text() for text in drawn(EXHIBIT, tables).axes[0].get_legend().get_texts()]
    assert len(labels) == len(SCHEDULES)
