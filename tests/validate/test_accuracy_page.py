from __future__ import annotations

from pathlib import Path

from poseidon.validate.accuracy_page import accuracy_page
from poseidon.validate.comparison import Comparison, Row, Target
from poseidon.validate.plots import write_plot

COMPARISON = Comparison(
    name="two-rows",
    title="Two rows",
    source="nobody",
    basis="measured",
    rows=(
        Row("first | odd", 110.0, 100.0, "ms", group="a", held_out=False),
        Row("second", 2.0, 4.0, "ms", group="b", note="flagged"),
    ),
    targets=(
        Target("mean absolute error", 0.3, 0.05, "%", cause="Because."),
        Target("rank correlation", 1.0, 0.95, sense="at least"),
    ),
    summary="Thirty percent.",
    notes=("A note.",),
)


def test_the_page_has_every_row_target_and_cause() -> None:
    page = accuracy_page([COMPARISON], ["two-rows"])

    assert "| a | first \\| odd | 100.0 ms | 110.0 ms | +10.0 % | fit |  |" in page
    assert "| b | second | 4.00 ms | 2.00 ms | -50.0 % | held out | flagged |" in page
    assert "| [two-rows](#two-rows) | mean absolute error | 30.0 % | at most 5.0 % | **not met** |" in page
    assert "|  | rank correlation | 1 | at least 0.95 | met |" in page
    assert "**Not met: mean absolute error.** Because." in page
    assert "a: 1 rows, mean 10.0 %, largest 10.0 %; b: 1 rows, mean 50.0 %, largest 50.0 %." in page
    assert "- A note." in page
    assert "![Two rows](accuracy-two-rows.svg)" in page
    assert "svg" not in accuracy_page([COMPARISON])


def test_the_same_rows_make_the_same_plot(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        write_plot(COMPARISON, tmp_path / name)

    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
