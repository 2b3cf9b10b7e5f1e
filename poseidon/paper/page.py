"""docs/results.md from exhibits: what the paper reports and what is found here, with the commands that make it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from poseidon.output.markdown import MarkdownTable, anchor, table_lines
from poseidon.paper.conduct import Evaluation
from poseidon.paper.drawing import write_plots
from poseidon.paper.exhibit import Exhibit
from poseidon.paper.exhibit_files import Shown
from poseidon.paper.identity import Effort
from poseidon.paper.page_conditions import conditions
from poseidon.paper.rows_file import StudyRows
from poseidon.whole_file import write_whole_text

PAGE = "results.md"
PLOTS = "results"
OUT = "runs/paper"
"""The directory that the page's commands write to."""
USUAL_LIMIT_S = 60.0
HEADER = """# Results

The figures and tables of the Poseidon paper (arXiv 2609.06086), made anew: what the paper reports beside what is found
here. This command measures everything and writes this page:

    poseidon paper --out {out} --page docs

With `--no-run` it writes the page again from the rows that are there (`{out}/rows/STUDY.parquet`). The command of a
section makes that section alone; its numbers are in `{out}/EXHIBIT.parquet`.
"""


def write_page(evaluation: Evaluation, results: Sequence[Shown], absent: Sequence[Exhibit], directory: Path) -> Path:
    """Writes DIR/results.md and a plot for each exhibit, DIR/results/NAME.svg; returns the page's path."""
    for shown in results:
        if shown.exhibit.draw is not None:
            write_plots(shown.exhibit, shown.tables, [directory / PLOTS / f"{shown.exhibit.name}.svg"])
    page = directory / PAGE
    write_whole_text(page, results_page(evaluation, results, absent))
    return page


def results_page(evaluation: Evaluation, results: Sequence[Shown], absent: Sequence[Exhibit]) -> str:
    """The page as Markdown."""
    parts = [HEADER.format(out=OUT), _overview(results)]
    if absent:
        parts.append(f"Not measured yet: {', '.join(exhibit.name for exhibit in absent)}.\n")
    parts.append(conditions(evaluation))
    parts += [_section(shown, evaluation) for shown in results]
    return "\n".join(parts)


def _overview(results: Sequence[Shown]) -> str:
    rows = [
        (f"[{shown.exhibit.name}](#{anchor(_heading(shown.exhibit))})", shown.exhibit.reported, shown.found)
        for shown in results
    ]
    return "\n".join([*table_lines(MarkdownTable(("exhibit", "the paper reports", "here"), tuple(rows))), ""])


def _section(shown: Shown, evaluation: Evaluation) -> str:
    exhibit = shown.exhibit
    effort = next(evaluation.found[name].effort for name in exhibit.studies)
    lines = [f"## {_heading(exhibit)}", "", f"    {command(exhibit, effort)}", ""]
    lines += [f"The paper: {exhibit.reported}", "", f"Here: {shown.found}", ""]
    if exhibit.draw is not None:
        lines += [f"![{exhibit.title}]({PLOTS}/{exhibit.name}.svg)", ""]
    for table in exhibit.tables(shown.tables):
        lines += [*table_lines(table), ""]
    lines += [f"- {remark}" for remark in shown.remarks]
    lines += [f"- {_measured(evaluation.found[name])}" for name in exhibit.studies]
    return "\n".join([*lines, ""])


def _heading(exhibit: Exhibit) -> str:
    """``Figure 10: throughput of the schedules``."""
    name = exhibit.name.replace("-", " ").capitalize()
    return f"{name}: {exhibit.title[:1].lower()}{exhibit.title[1:]}"


def command(exhibit: Exhibit, effort: Effort) -> str:
    """The command that makes an exhibit as it is on the page."""
    parts = [f"poseidon paper {exhibit.name} --out {OUT}"]
    if effort.time_limit_s != USUAL_LIMIT_S:
        parts.append(f"--time-limit {effort.time_limit_s:g}")
    if effort.backend == "local":
        parts.append(f"--workers {effort.num_workers}")
    if effort.backend == "ray":
        parts.append("--ray")
    return " ".join(parts)


def _measured(found: StudyRows) -> str:
    """When the rows of a study were measured, and how busy the machine was."""
    days = sorted({row["measured_at"].date().isoformat() for row in found.rows})
    loads = [row["load"] for row in found.rows]
    if not days:
        return f"`{found.study.name}`: no rows."
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"Rows `{found.study.name}`: measured on {when}, load of the machine {min(loads):.1f} to {max(loads):.1f}."
