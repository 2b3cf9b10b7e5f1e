"""Policies side by side: values, rows, files, and the text that people read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from poseidon.cli import compare as command
from poseidon.compare.compare import Comparison, compare
from poseidon.compare.entrant import DEFAULT_ENTRANTS, ENTRANTS, default_entrants
from poseidon.compare.entry import fits, fullest_fraction, static_error, static_ms, table_1_text
from poseidon.compare.parquet import COLUMNS, write_comparison
from poseidon.compare.row import comparison_to_json
from poseidon.compare.table import comparison_text
from poseidon.errors import InputError
from poseidon.inputs.experiment import load_experiment
from poseidon.plan import Plan, Verdict, check_plan, pipeline_times

Write = Callable[..., Path]
EVERYONE = ("exact", "exact-wide", "eq1", "paper", "brute-force", "metis", "hexiscale")


@pytest.fixture
def comparison(write_experiment: Write) -> Comparison:
    return compare(load_experiment(write_experiment()), EVERYONE)


def test_the_command_knows_every_entrant() -> None:
    assert tuple(ENTRANTS) == command.ENTRANT_NAMES == EVERYONE
    assert command.DEFAULT_NAMES == DEFAULT_ENTRANTS


def test_a_space_is_not_searched_twice(write_experiment: Write) -> None:
    assert default_entrants(load_experiment(write_experiment())) == DEFAULT_ENTRANTS
    for search in ({"tp": "per-stage"}, {"target": "megatron"}):
        assert "exact-wide" not in default_entrants(load_experiment(write_experiment(search=search)))


def test_every_plan_is_right_and_none_beats_the_exact_one_of_its_space(comparison: Comparison) -> None:
    times = {}
    for entry in comparison.entries:
        assert isinstance(entry.answer, Plan)
        assert {finding.verdict for finding in check_plan(entry.answer)} == {Verdict.RIGHT}
        times[entry.name] = entry.answer.pipeline.iteration_time_ms
    assert times["exact"] == min(times["exact"], times["eq1"], times["paper"], times["brute-force"])
    assert times["brute-force"] == pytest.approx(times["exact"], rel=1e-9)
    assert times["exact-wide"] <= min(times.values()) * (1 + 1e-9)
    assert comparison.best_ms == min(times.values())


def test_eq_1_is_worked_out_from_the_plans_own_times(comparison: Comparison) -> None:
    for entry in comparison.entries:
        pipeline = entry.pipeline
        assert pipeline is not None
        times = pipeline_times(pipeline)
        per_stage = [
            float(times.forward_ms[s, 0] + times.backward_ms[s, 0])
            + (float(times.send_forward_ms[s] + times.send_backward_ms[s + 1]) if s + 1 < pipeline.pp else 0.0)
            for s in range(pipeline.pp)
        ]
        slowest = max(per_stage)
        expected = sum(per_stage) + (pipeline.num_micro_batches - 1) * slowest + float(times.all_reduce_ms.max())
        assert static_ms(pipeline) == pytest.approx(expected, rel=1e-12)
        assert static_error(pipeline) == pytest.approx(expected / pipeline.iteration_time_ms - 1, abs=1e-12)


def test_memory_is_that_of_the_fullest_stage(comparison: Comparison) -> None:
    for entry in comparison.entries:
        assert entry.pipeline is not None
        assert fits(entry.pipeline)
        assert 0 < fullest_fraction(entry.pipeline) <= 1


def test_stages_as_in_table_1(comparison: Comparison) -> None:
    pipeline = comparison.entries[0].pipeline
    assert pipeline is not None
    text = table_1_text(pipeline)
    stages = []
    for part in text.replace(") (", ")|(").replace("x", "").split("|"):
        inside, _, count = part.partition(")")
        dp, tp, accelerator, layers = inside.strip("(").split(",")
        stages += [(int(dp), int(tp), accelerator, int(layers))] * int(count or 1)
    assert stages == [(s.dp, s.tp, s.accelerator, s.layers[0]) for s in pipeline.stages]


def test_rows_are_the_same_in_json_and_parquet(comparison: Comparison, tmp_path: Path) -> None:
    data = json.loads(json.dumps(comparison_to_json(comparison), allow_nan=False))
    rows = pq.read_table(write_comparison(comparison, tmp_path)).to_pylist()
    assert len(rows) == len(EVERYONE)
    for row, entry in zip(rows, data["entries"], strict=True):
        assert set(entry) <= {column.name for column in COLUMNS}
        assert {name: row[name] for name in entry} == entry
        assert row["model"] == data["model"]


def test_a_policy_that_does_not_plan_the_schedule_is_refused_alone(write_experiment: Write) -> None:
    experiment = load_experiment(write_experiment(training={"schedules": ["interleaved_1f1b"]}))
    result = compare(experiment, ("exact", "eq1", "metis"))
    assert [entry.status for entry in result.entries] == ["optimal", "refused", "refused"]
    assert "eq1 knows no chunks" in result.entries[1].reason
    assert "policy metis plans 1f1b only" in result.entries[2].reason
    with pytest.raises(InputError, match="eq1 knows no chunks"):
        compare(experiment, ("eq1", "metis"))


@pytest.mark.parametrize("width", [80, 160])
def test_the_text_keeps_the_line(
    comparison: Comparison, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    monkeypatch.setenv("COLUMNS", str(width))
    text = comparison_text(comparison, sys.stdout)
    assert max(map(len, text.splitlines())) <= width
    for name in EVERYONE:
        assert sum(line.startswith(f"{name} ") for line in text.splitlines()) == 2
