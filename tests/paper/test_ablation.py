"""The two prunings, one by one: curves of the best time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from poseidon.paper.exhibits.figure_11 import EXHIBIT, batches, row_of
from poseidon.paper.studies.ablation import STUDY, VARIANTS
from tests.paper.tiny import check_tables, drawn, stored, tiny_request

Write = Callable[..., Path]


def test_all_variants_start_alike_and_prune_what_their_name_says(write_experiment: Write) -> None:
    request = tiny_request(write_experiment)
    nodes = [{"accelerator": "fast", "count": 2, "devices": 2}, {"accelerator": "slow", "count": 1, "devices": 2}]
    write_experiment("setting3.yaml", cluster={"nodes": nodes})
    rows = list(STUDY.run(request))
    assert [row["pruning"] for row in rows] == [variant.name for variant in VARIANTS] * 3
    for batch in batches(rows):
        calls = {
            name: row_of(rows, batch, name)["simulations"] for name in ("none", "layer-level", "stage-level", "both")
        }
        assert calls["both"] <= min(calls["layer-level"], calls["stage-level"])
        assert max(calls["layer-level"], calls["stage-level"]) < calls["none"]
        of_paper = [row for row in rows if row["global_batch_size"] == batch and row["pruning"] != "exact"]
        assert len({row["curve_ms"][0] for row in of_paper}) == 1
        assert all(row["curve_ms"][-1] == pytest.approx(row["best_ms"]) and row["complete"] for row in of_paper)


def test_what_the_time_limit_stopped_is_said(write_experiment: Write) -> None:
    tables = {STUDY.name: stored(STUDY, list(STUDY.run(tiny_request(write_experiment, time_limit_s=1e-6))))}
    assert {row["termination"] for row in tables[STUDY.name]} == {"time limit"}
    check_tables(EXHIBIT, tables)
    assert "not always a plan, 0 of 3 ended" in EXHIBIT.found(tables)
    assert any("no: time limit" in line for line in EXHIBIT.tables(tables)[0].rows)


def test_the_exhibit_takes_its_numbers_from_the_rows(write_experiment: Write) -> None:
    table = stored(STUDY, list(STUDY.run(tiny_request(write_experiment))))
    slow = row_of(table, 16, "none")
    slow["best_ms"] *= 1.25
    slow["complete"] = False
    tables = {STUDY.name: table}
    check_tables(EXHIBIT, tables)
    assert "no pruning: at most 25 % above the best, 2 of 3 ended" in EXHIBIT.found(tables)
    assert len(drawn(EXHIBIT, tables).axes) == 3
    assert "60 s" in EXHIBIT.remarks(tables)[0]
