"""The comparisons with published measurements: that they hold, and that nothing reported as held out was seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from poseidon.validate.ascend import ascend
from poseidon.validate.comparison import Comparison
from poseidon.validate.fitted_runs import fitted
from poseidon.validate.korthikanti import korthikanti
from poseidon.validate.megatron_sc21 import megatron_sc21
from poseidon.validate.sailor import sailor_memory, sailor_time
from poseidon.validate.simumax import simumax_memory
from poseidon.validate.vtrain import OUTLIERS, vtrain

ROWS = {
    ascend: 13,
    korthikanti: 4,
    sailor_time: 15,
    sailor_memory: 15,
    simumax_memory: 64,
    vtrain: 41,
    megatron_sc21: 10,
}


@pytest.mark.parametrize("function", ROWS, ids=lambda function: function.__name__)
def test_every_target_is_met_and_every_published_row_is_there(function: Callable[[], Comparison]) -> None:
    comparison = function()

    assert len(comparison.rows) == ROWS[function]
    assert [target.description for target in comparison.targets if not target.met] == []
    assert comparison.name == function.__name__.replace("_", "-")
    assert len({(row.group, row.label) for row in comparison.rows}) == len(comparison.rows)


def test_one_calibration_on_eight_runs_serves_all_a100_comparisons() -> None:
    rows = [*korthikanti().rows, *vtrain().rows, *megatron_sc21().rows]

    assert sum(not row.held_out for row in rows) == 8
    assert all(row.held_out for row in megatron_sc21().rows)
    assert len(fitted("a100.yaml").after) == len(rows)
    assert [row.label for row in vtrain().rows if not row.held_out and " pp1 " not in row.label] == []


def test_more_than_half_of_the_ascend_runs_are_held_out() -> None:
    assert sum(not row.held_out for row in ascend().rows) == 6


def test_the_large_runs_of_sailor_are_held_out() -> None:
    fitted_rows = [row.label for row in sailor_memory().rows if not row.held_out]

    assert fitted_rows
    assert all(label.startswith(("1 node,", "2 nodes,")) for label in fitted_rows)


def test_the_outliers_that_are_told_of_are_the_worst_rows() -> None:
    worst = sorted(vtrain().rows, key=lambda row: -abs(row.relative_error))[: len(OUTLIERS)]

    assert {row.label for row in worst} == set(OUTLIERS)
