"""A report in a terminal: where the time goes, what changes would give, and where the files are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from rich.console import RenderableType
from rich.text import Text

from poseidon.output.console import Columns, rendered, unbroken
from poseidon.output.numbers import milliseconds, percent
from poseidon.report.breakdown import Breakdown, StageParts
from poseidon.report.figures import TIME_PARTS
from poseidon.report.page_plan import sensitivity_rows
from poseidon.report.sensitivity import Sensitivity
from poseidon.report.simulated import Simulated
from poseidon.report.words import share_words


def report_text(
    simulated: Simulated,
    breakdown: Breakdown,
    sensitivity: Sensitivity | str | None,
    files: Sequence[Path],
    stream: TextIO,
) -> str:
    """The whole text for `stream`."""
    return rendered(list(_parts(simulated, breakdown, sensitivity, files, stream)), stream)


def _parts(
    simulated: Simulated,
    breakdown: Breakdown,
    sensitivity: Sensitivity | str | None,
    files: Sequence[Path],
    stream: TextIO,
) -> Iterator[RenderableType]:
    path = breakdown.path
    yield Text(f"{simulated.title}: {milliseconds(simulated.iteration_time_ms)} ms an iteration", style="bold")
    yield Text(
        f"Critical path: forwards and backwards {percent(sum(path.stages))}, transfers {percent(path.transfers)}, "
        f"gradient all-reduce {percent(path.all_reduce)}"
    )
    yield Text("")
    yield _stages(simulated, breakdown, stream).table()
    yield Text("")
    if isinstance(sensitivity, Sensitivity):
        yield _sensitivity(sensitivity, stream).table()
        yield Text("")
        notes = {row.note for row in sensitivity_rows(sensitivity) if row.gain.startswith("-") and row.note}
        yield from (Text(f"-: {note}") for note in sorted(notes))
        if sensitivity.interrupted:
            yield Text("Interrupted: the searches after the last row were not made.")
    elif sensitivity:
        yield Text(f"What a change would give was left out: {sensitivity}")
    yield from (unbroken(f"Written: {file}") for file in files)


def _stages(simulated: Simulated, breakdown: Breakdown, stream: TextIO) -> Columns:
    columns = Columns(stream, "Where the time of each stage goes")
    columns.name("Stage")
    columns.number(*(name.capitalize() for _, name, _ in TIME_PARTS))
    for number, (words, parts) in enumerate(zip(simulated.words, breakdown.stages, strict=True)):
        columns.row(f"{number} {words.short}".rstrip(), *_cells(parts))
    columns.row("all devices" if simulated.plan is not None else "all stages", *_cells(breakdown.devices))
    return columns


def _cells(parts: StageParts) -> Iterator[str]:
    for _, _, field in TIME_PARTS:
        yield share_words(getattr(parts, field) / parts.total_ms if parts.total_ms else 0.0)


def _sensitivity(sensitivity: Sensitivity, stream: TextIO) -> Columns:
    base = "" if sensitivity.base_is_plan else f", against {milliseconds(sensitivity.base_iteration_time_ms)} ms"
    columns = Columns(stream, f"What a change would give{base}")
    columns.name("Change")
    columns.number("Tokens/s", "Iteration")
    columns.name("Plan")
    for row in sensitivity_rows(sensitivity):
        columns.row(row.label, row.gain, row.time, row.brief)
    return columns
