"""The picture of the timeline."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from poseidon.plan.plan import Plan
from poseidon.report import simulated_plan
from poseidon.report.plot import write_plot

from .hostile import hostile_plan

SVG = "{http://www.w3.org/2000/svg}"


def test_both_files_are_drawn_and_the_same_plan_gives_the_same_files(quickstart: Plan, tmp_path: Path) -> None:
    simulated = simulated_plan(quickstart, "plan.json")
    png, svg = write_plot(simulated, tmp_path / "one")
    assert (png.name, svg.name) == ("timeline.png", "timeline.svg")
    header = png.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", header[16:24]) == (2100, 576)
    shapes = list(ElementTree.parse(svg).iter(f"{SVG}path"))
    assert len(shapes) > simulated.timeline.order.num_operations
    again = write_plot(simulated, tmp_path / "two")
    assert [path.read_bytes() for path in again] == [png.read_bytes(), svg.read_bytes()]


def test_many_operations_become_a_picture_in_the_svg(
    make_plan: Callable[..., Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated = simulated_plan(make_plan(), "plan.json")
    _, drawn = write_plot(simulated, tmp_path / "drawn")
    monkeypatch.setattr("poseidon.report.plot.MOST_VECTORS", simulated.timeline.order.num_operations - 1)
    _, picture = write_plot(simulated, tmp_path / "picture")
    assert not list(ElementTree.parse(drawn).iter(f"{SVG}image"))
    assert list(ElementTree.parse(picture).iter(f"{SVG}image"))


def test_hostile_names_are_no_formulas_and_no_markup(make_plan: Callable[..., Plan], tmp_path: Path) -> None:
    plan = hostile_plan(make_plan(), ("$\\frac{1}{", "<script>ran</script>", "$x", "\\badmacro$"))
    _, svg = write_plot(simulated_plan(plan, "plan.json"), tmp_path)
    assert not list(ElementTree.parse(svg).iter(f"{SVG}script"))
