"""Warm-up counts: simulator calls, medians over the seeds, the paper's ratio beside ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from poseidon.paper.exhibits.figure_12 import EXHIBIT, best_count, calls_by_count, over_best
from poseidon.paper.studies.warm_up import EXPERIMENTS, STUDY, rows
from tests.paper.tiny import check_tables, drawn, stored, tiny_request

Write = Callable[..., Path]
ONE = ("setting1",)


def test_every_count_is_measured_with_every_seed_and_finds_the_same_plan(write_experiment: Write) -> None:
    measured = list(rows(tiny_request(write_experiment), counts=(0, 10, 100), seeds=(0, 1)))
    expected = [(0, 0), (10, 0), (10, 1), (100, 0), (100, 1)]
    assert [(row["warmup_samples"], row["seed"]) for row in measured] == expected * len(EXPERIMENTS)
    assert all(row["complete"] for row in measured)
    assert len({row["best_ms"] for row in measured}) == 1
    assert all(row["simulations"] >= row["warmup_samples"] for row in measured)


def test_samples_count_as_simulator_calls_and_save_others(write_experiment: Write) -> None:
    by_count = calls_by_count(list(rows(tiny_request(write_experiment), ONE, counts=(0, 50), seeds=(0,))))
    assert by_count[50][0] - 50 < by_count[0][0]


def test_the_exhibit_compares_medians_with_the_best_count(write_experiment: Write) -> None:
    measured = rows(tiny_request(write_experiment), ("setting1", "setting2"), counts=(0, 10, 500), seeds=(0, 1, 2))
    table = stored(STUDY, list(measured))
    calls = iter((900, 100, 200, 300, 600, 500, 700, 100, 200, 200, 200, 800, 800, 800))
    for row in table:
        row["simulations"] = next(calls)
    first, second = table[:7], table[7:]
    assert (best_count(first), best_count(second)) == (10, 0)
    assert over_best(first, 0) == pytest.approx(4.5)
    tables = {STUDY.name: table}
    text = EXHIBIT.found(tables)
    assert "setting1: 4.50x with no samples, 3.00x with 500 samples (fewest calls with 10)" in text
    assert "setting2: 1.00x with no samples, 8.00x with 500 samples (fewest calls with 0); medians of 3 seeds" in text
    check_tables(EXHIBIT, tables)
    assert drawn(EXHIBIT, tables).axes[0].get_yscale() == "log"
    remark = EXHIBIT.remarks(tables)[0]
    assert "every search ended by itself, and all of a setting found the same time" in remark
    table[0]["complete"] = False
    assert "1 searches were stopped" in EXHIBIT.remarks(tables)[0]
