from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from poseidon.output.plan_view import bar, plan_text
from poseidon.plan.plan import Plan
from poseidon.search.result import SolutionStatus, TerminationReason


def shown(plan: Plan, monkeypatch: pytest.MonkeyPatch, columns: str | None = None, encoding: str = "utf-8") -> str:
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    return plan_text(plan, io.TextIOWrapper(io.BytesIO(), encoding=encoding))


def renamed(plan: Plan, name: str) -> Plan:
    """The plan on an accelerator with a long name."""
    stages = tuple(replace(stage, accelerator=name) for stage in plan.pipeline.stages)
    return replace(plan, pipeline=replace(plan.pipeline, stages=stages))


@pytest.mark.parametrize("columns", ["80", "160", None])
def test_it_fits_the_line_and_cuts_no_number(
    make_plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch, columns: str | None
) -> None:
    plan = renamed(make_plan(search={"fixed_tp": 1, "fixed_dp": 1}), "a-very-long-accelerator-name-80gb")
    text = shown(plan, monkeypatch, columns)
    assert max(map(len, text.splitlines())) <= int(columns or 120)
    for index, stage in enumerate(plan.pipeline.stages):
        row = next(line for line in text.splitlines() if re.match(rf" +{index} ", line))
        assert f"{stage.memory.total_bytes / 1e9:.1f} / {stage.memory.limit_bytes / 1e9:.1f}" in row
        assert f"{stage.forward_ms[0]:.2f}" in row
        assert f"{stage.backward_ms[0]:.2f}" in row
        assert f"{100 * stage.bubble_ms / plan.pipeline.iteration_time_ms:.1f} %" in row


def test_a_line_that_is_too_short_for_the_numbers_does_not_cut_them(
    make_plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(search={"fixed_tp": 1, "fixed_dp": 1})
    text = shown(plan, monkeypatch, "40")
    assert f"{plan.pipeline.stages[0].backward_ms[0]:.2f}" in text


def test_it_says_what_the_plan_is(make_plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(search={"fixed_tp": 2, "fixed_dp": 1})
    text = shown(plan, monkeypatch)
    assert text.startswith("eight-layers on two-types: proven optimal\nDP 1 x TP 2 x PP 2 on 4 devices, 1f1b, ")
    assert f"{plan.pipeline.tokens_per_second:,.0f} tokens/s" in text
    assert "Limited by stage " in text
    assert "Search: exact, " in text
    assert "\x1b" not in text


def test_a_gap_is_said_with_the_reason_for_stopping(
    make_plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan()
    search = replace(plan.search, termination=TerminationReason.TIME_LIMIT, warnings=("look here",))
    stopped = replace(plan, status=SolutionStatus.FEASIBLE, gap=0.0123, search=search)
    text = shown(stopped, monkeypatch)
    assert "proven within 1.2 % of the optimum (time limit)" in text
    assert "Warning: look here" in text


def test_a_stream_without_unicode_gets_ascii(make_plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(make_plan(), monkeypatch, encoding="ascii")
    assert text.isascii()
    assert "####" in text


def test_idle_devices_and_alternatives_are_listed(
    make_plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown(make_plan(search={"allow_idle": True, "fixed_pp": 1, "fixed_dp": 1, "fixed_tp": 1}), monkeypatch)
    assert "Idle: 3 devices (node 0: 1, node 1: 0-1)" in text
    assert "Next best" in shown(make_plan(search={"top": 2}), monkeypatch)


@pytest.mark.parametrize(
    ("fraction", "blocks", "hashes"), [(1, "█" * 10, "#" * 10), (0.5, "█" * 5, "#" * 5), (0, "", "")]
)
def test_bars(fraction: float, blocks: str, hashes: str) -> None:
    assert bar(fraction, unicode=True) == blocks
    assert bar(fraction, unicode=False) == hashes


def test_bars_are_finer_than_a_cell() -> None:
    assert bar(0.9625, unicode=True) == "█" * 9 + "▋"
