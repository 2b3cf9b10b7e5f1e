"""The list of runs, the summary, the plot and the JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from poseidon.sweep.conduct import SweepResult, conduct
from poseidon.sweep.executor import InProcess
from poseidon.sweep.grid import Run
from poseidon.sweep.plot import plot_plan, write_plot
from poseidon.sweep.result_json import result_to_json
from poseidon.sweep.store import Store
from poseidon.sweep.sweep import Sweep
from poseidon.sweep.table import list_text, summary_text
from tests.sweep.test_store import Counting

Build = Callable[..., tuple[Sweep, tuple[Run, ...]]]
POINTS = [
    {"label": "good"},
    {"label": "too big", "set": {"model.num_layers": 4000}},
    {"label": "nonsense", "set": {"training.micro_batch_sizes": [7]}},
]
MIXED: dict[str, Any] = {
    "axes": {"x": {"points": POINTS}, "batch": {"field": "training.global_batch_size", "values": [16, 32]}}
}


@pytest.fixture
def swept(sweep_of: Build, tmp_path: Path) -> Callable[..., tuple[Sweep, SweepResult]]:
    def build(**keys: Any) -> tuple[Sweep, SweepResult]:
        sweep, runs = sweep_of(**keys)
        return sweep, conduct(sweep, runs, Store(tmp_path / "out"), InProcess(), Counting())

    return build


def test_the_summary_has_every_run_the_fastest_and_the_reasons(swept: Callable[..., tuple[Sweep, SweepResult]]) -> None:
    _, result = swept(**MIXED)
    lines = summary_text(result, io.StringIO()).splitlines()
    assert lines[0] == "small: 6 runs (2 optimal, 2 infeasible, 2 refused)"
    assert sum(line.startswith(("good ", "too big ", "nonsense ")) for line in lines) == 6
    assert any(line.startswith("Most tokens/s: x=good, batch=32, ") for line in lines)
    reasons = " ".join(lines)
    assert "x=too big, batch=16: no plan fits in memory: " in reasons
    assert "x=nonsense, batch=32: " in reasons
    assert "none of micro_batch_sizes (7) divides it" in reasons


@pytest.mark.parametrize("columns", ["80", "120", "160"])
def test_tables_keep_to_the_line(
    swept: Callable[..., tuple[Sweep, SweepResult]], sweep_of: Build, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    sweep, result = swept(**MIXED)
    _, runs = sweep_of(**MIXED)
    for text in (summary_text(result, io.StringIO()), list_text(sweep, runs, set(), io.StringIO())):
        assert max(map(len, text.splitlines())) <= int(columns)
        assert "\u2026" not in text


def test_the_list_says_what_is_done_and_what_is_refused(sweep_of: Build) -> None:
    sweep, runs = sweep_of(**MIXED)
    lines = list_text(sweep, runs, {runs[0].identity}, io.StringIO()).splitlines()
    states = [line.split()[-1] for line in lines if line.split() and line.split()[0] in "012345"]
    assert states == ["done", "do", "do", "do", "refused", "refused"]


def test_a_long_sweep_is_listed_in_part(sweep_of: Build) -> None:
    sweep, runs = sweep_of(axes={"search.seed": list(range(150))})
    assert list_text(sweep, runs, set(), io.StringIO()).splitlines()[-1] == "... and 50 more"


def test_the_plot_is_a_png_and_an_svg_that_say_what_they_show(
    swept: Callable[..., tuple[Sweep, SweepResult]], tmp_path: Path
) -> None:
    plot = {"y": ["tokens_per_second", "search_s"], "log": ["search_s"]}
    sweep, result = swept(**MIXED, plot=plot)
    png, svg = write_plot(plot_plan(sweep), result, tmp_path)
    assert png.read_bytes().startswith(b"\x89PNG\r\n")
    text = svg.read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag.endswith("svg")
    for words in ("small", "batch", "tokens/s", "search (s)"):
        assert f"<!-- {words} -->" in text
    assert write_plot(plot_plan(sweep), result, tmp_path)[1].read_text(encoding="utf-8") == text


def test_defaults_of_the_plot(sweep_of: Build) -> None:
    sweep, _ = sweep_of(**MIXED)
    plan = plot_plan(sweep)
    assert (plan.x.name, [axis.name for axis in plan.series], plan.columns) == ("batch", ["x"], ("tokens_per_second",))


@pytest.mark.parametrize("x", ["x", "batch"])
def test_a_plot_without_any_plan_is_drawn(
    swept: Callable[..., tuple[Sweep, SweepResult]], tmp_path: Path, x: str
) -> None:
    sweep, result = swept(**MIXED, set={"search.max_memory_fraction": 0.001}, plot={"x": x})
    assert {row["status"] for row in result.rows} == {"infeasible", "refused"}
    assert all(path.stat().st_size > 1000 for path in write_plot(plot_plan(sweep), result, tmp_path))
    assert "0 optimal" not in summary_text(result, io.StringIO())


def test_the_json_has_all_rows_without_their_long_columns(swept: Callable[..., tuple[Sweep, SweepResult]]) -> None:
    _, result = swept(**MIXED)
    data = json.loads(json.dumps(result_to_json(result, []), allow_nan=False))
    assert [(row["axis.x"], row["axis.batch"], row["status"]) for row in data["runs"]][:3] == [
        ("good", 16.0, "optimal"),
        ("good", 32.0, "optimal"),
        ("too big", 16.0, "infeasible"),
    ]
    assert "stages" not in data["runs"][0]
    assert data["runs"][2]["iteration_time_ms"] is None
