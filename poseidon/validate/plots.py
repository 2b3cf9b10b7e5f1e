"""One plot for each comparison: predicted against observed, and the line on which they are the same."""

from __future__ import annotations

from pathlib import Path

from poseidon.errors import MissingPackageError
from poseidon.validate.comparison import Comparison

MOST_GROUPS = 10
"""More groups than that would need more colours than can be told apart: then there is one."""


def write_plot(comparison: Comparison, path: Path) -> None:
    """Writes an SVG file, the same for the same rows; raises MissingPackageError without matplotlib."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPackageError("matplotlib", "validate") from None
    with rc_context({"svg.hashsalt": comparison.name, "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(5.2, 4.2), layout="constrained")
        axes = figure.add_subplot()
        groups = comparison.groups if 1 < len(comparison.groups) <= MOST_GROUPS else ("",)
        for number, group in enumerate(groups):
            rows = [row for row in comparison.rows if len(groups) == 1 or row.group == group]
            for held_out, marker in ((True, "o"), (False, "x")):
                points = [row for row in rows if row.held_out == held_out]
                label = ", ".join(part for part in (group, "" if held_out else "fit") if part)
                if points:
                    axes.scatter(
                        [row.observed for row in points],
                        [row.predicted for row in points],
                        s=22,
                        marker=marker,
                        color=f"C{number}",
                        alpha=0.8,
                        label=label or "held out",
                    )
        values = [value for row in comparison.rows for value in (row.observed, row.predicted)]
        low, high = min(values), max(values)
        axes.plot([low, high], [low, high], color="0.6", linewidth=0.8, zorder=0)
        if low > 0 and high / low > 8:
            axes.set_xscale("log")
            axes.set_yscale("log")
        unit = comparison.rows[0].unit
        axes.set_xlabel(f"{comparison.basis} ({unit})" if unit else comparison.basis)
        axes.set_ylabel(f"predicted ({unit})" if unit else "predicted")
        axes.set_title(comparison.title, fontsize=9)
        axes.legend(fontsize=8)
        figure.savefig(path, format="svg", metadata={"Date": None})
