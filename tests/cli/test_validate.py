from __future__ import annotations

from pathlib import Path
from typing import Any


def test_the_page_and_its_plots_are_written(cli: Any, tmp_path: Path) -> None:
    ran = cli("validate", "--only", "simumax-memory", "--out", tmp_path / "docs")

    assert ran.status == 0
    assert "met" in ran.out
    page = (tmp_path / "docs" / "accuracy.md").read_text()
    assert "## LLaMA-3 70B (12 layers) on B200: peak memory of every rank" in page
    assert "](accuracy-simumax-memory.svg)" in page
    assert (tmp_path / "docs" / "accuracy-simumax-memory.svg").read_text().lstrip().startswith("<?xml")


def test_the_result_for_programs_has_every_row(cli: Any) -> None:
    data = cli("validate", "--only", "sailor-memory", "--json", "-q").data

    (comparison,) = data["comparisons"]
    assert data["met"] is comparison["met"] is True
    assert len(comparison["rows"]) == 15
    assert sum(row["held_out"] for row in comparison["rows"]) == 11


def test_the_names_are_listed(cli: Any) -> None:
    names = cli("validate", "--list").out.split()

    assert {"ascend", "korthikanti", "sailor-time", "sailor-memory", "simumax-memory", "vtrain"} <= set(names)


def test_an_unknown_name_is_refused(cli: Any) -> None:
    ran = cli("validate", "--only", "moon")

    assert ran.status == 2
    assert "there is no comparison 'moon'; there are ascend," in ran.err
