"""docs/accuracy.md from comparisons: a table of all targets, then for each comparison its rows, one a line."""

from __future__ import annotations

from collections.abc import Sequence

from poseidon.output.markdown import MarkdownTable, anchor, table_lines
from poseidon.validate.comparison import Comparison, Target, largest_absolute, mean_absolute

HEADER = """# Accuracy

What Poseidon predicts beside what others measured or printed. This page is written by

```sh
poseidon validate --out docs
```

from the data files that come with the package (poseidon/validate/data, where a README names every source), with the
code that plans are made with. *Held out* rows were seen by no fit; the others are marked *fit*. Errors are predicted /
observed - 1, unless a table says that they are differences. `poseidon validate --only NAME` reruns one comparison.
"""


def accuracy_page(comparisons: Sequence[Comparison], plots: Sequence[str] = ()) -> str:
    """The page; `plots` are the names of the comparisons that have a plot beside it (accuracy-NAME.svg)."""
    sections = [_section(comparison, comparison.name in plots) for comparison in comparisons]
    return "\n".join([HEADER, _overview(comparisons), *sections])


def _overview(comparisons: Sequence[Comparison]) -> str:
    rows = [
        (
            f"[{comparison.name}](#{anchor(comparison.title)})" if index == 0 else "",
            target.description,
            value_text(target, target.value),
            f"{target.sense} {value_text(target, target.limit)}",
            verdict(target),
        )
        for comparison in comparisons
        for index, target in enumerate(comparison.targets)
    ]
    header = ("comparison", "must hold", "value", "limit", "")
    return "\n".join([*table_lines(MarkdownTable(header, tuple(rows), frozenset((2, 3)))), ""])


def _section(comparison: Comparison, has_plot: bool) -> str:
    lines = [f"## {comparison.title}", "", f"`poseidon validate --only {comparison.name}`. {comparison.summary}", ""]
    lines += [f"Source: {comparison.source}.", ""]
    for target in comparison.targets:
        if not target.met:
            lines += [f"**Not met: {target.description}.** {target.cause}", ""]
    if has_plot:
        lines += [f"![{comparison.title}](accuracy-{comparison.name}.svg)", ""]
    lines += _table(comparison)
    lines += [f"- {note}" for note in comparison.notes]
    return "\n".join([*lines, ""])


def _table(comparison: Comparison) -> list[str]:
    relative = comparison.error_kind == "relative"
    grouped, noted = len(comparison.groups) > 1, any(row.note for row in comparison.rows)
    header = ["group"] * grouped + ["row", comparison.basis, "predicted", "error", "use"] + ["note"] * noted
    rows = []
    for row in comparison.rows:
        error = row.error(comparison.error_kind)
        cells = [row.group] * grouped + [
            row.label,
            quantity(row.observed, row.unit),
            quantity(row.predicted, row.unit),
            f"{100 * error:+.1f} %" if relative else f"{error:+.4f}",
            "held out" if row.held_out else "fit",
        ]
        rows.append((*cells, *([row.note] * noted)))
    numeric = frozenset(grouped + column for column in (1, 2, 3))
    lines = table_lines(MarkdownTable(tuple(header), tuple(rows), numeric))
    groups = _group_lines(comparison)
    return [*lines, "", *groups, ""] if groups else [*lines, ""]


def _group_lines(comparison: Comparison) -> list[str]:
    """Mean and largest error of each group, where there are several."""
    if len(comparison.groups) < 2:
        return []
    lines = []
    for group in comparison.groups:
        errors = comparison.errors(group)
        scale, unit = (100, " %") if comparison.error_kind == "relative" else (1, "")
        digits = 1 if comparison.error_kind == "relative" else 4
        mean, largest = scale * mean_absolute(errors), scale * largest_absolute(errors)
        lines.append(f"{group}: {len(errors)} rows, mean {mean:.{digits}f}{unit}, largest {largest:.{digits}f}{unit}")
    return ["Absolute errors by group. " + "; ".join(lines) + "."]


def quantity(value: float, unit: str) -> str:
    """A value with its unit, to as many places as the eye can use."""
    digits = 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 4
    return f"{value:,.{digits}f} {unit}".rstrip()


def value_text(target: Target, value: float) -> str:
    """A target's value or limit as people read it."""
    if target.unit == "%":
        return f"{100 * value:.1f} %"
    return f"{value:.4g} {target.unit}".rstrip()


def verdict(target: Target) -> str:
    """One word."""
    return "met" if target.met else "**not met**"
