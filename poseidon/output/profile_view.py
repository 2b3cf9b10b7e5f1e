"""A measured profile for people: a line for each finished cell, tables at the end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import RenderableType
from rich.markup import escape

from poseidon.output.console import Columns, rendered, unbroken
from poseidon.output.numbers import milliseconds, percent, plural

if TYPE_CHECKING:
    from poseidon.profile.measure.repeats import Timing
    from poseidon.profile.measure.run import Finished

KB = 1e3
MB = 1e6


def finished_line(finished: Finished) -> str:
    """``[ 3/24] dense, tp 2, micro-batch 1: forward 1.23 ms (spread 1.0 %), backward ...``."""
    from poseidon.profile.measure.results import ComputeResult, NoRoom

    result = finished.result
    if isinstance(result, NoRoom):
        told = f"does not fit: {result.reason}"
    elif isinstance(result, ComputeResult):
        told = f"forward {_timing(result.forward)}, backward {_timing(result.backward)}"
        told += f"; {plural(result.forward.samples, 'sample')}"
    else:
        told = f"{_timing(result.time)}; {plural(result.time.samples, 'sample')}"
    width = len(str(finished.of))
    return f"[{finished.number:>{width}}/{finished.of}] {finished.cell}: {told}"


def _timing(timing: Timing) -> str:
    return f"{milliseconds(timing.median_ms)} ms (spread {percent(timing.spread)})"


def merged_line(document: Mapping[str, Any], out: Path) -> str:
    """What a merged file holds."""
    names = ", ".join(dict.fromkeys(row["accelerator"] for row in document["layers"]))
    return f"{out}: {plural(len(document['layers']), 'row')} of layers on {names}"


def profile_tables(document: Mapping[str, Any], out: Path, stream: TextIO) -> str:
    """Layers, embedding and head; messages; where it was written."""
    parts: list[RenderableType] = [_compute(document, stream)]
    if document["transfers"] or document["all_reduce"]:
        parts += ["", _messages(document, stream)]
    [taken] = document["taken"]
    parts += ["", *(escape(f"Not measured: {cell}") for cell in taken["no_room"]), unbroken(f"Written to {out}")]
    return rendered(parts, stream)


def _compute(document: Mapping[str, Any], stream: TextIO) -> Any:
    columns = Columns(stream, title=f"{document['model']}, sequences of {document['seq_length']}")
    columns.name("Part", "Recompute")
    columns.number("TP", "Batch", "Fwd ms", "±", "Bwd ms", "±", "Weights MB", "Kept MB", "Peak MB")
    for row in (*document["layers"], *document["embedding"], *document["head"]):
        how = row["measured"]
        columns.row(
            row["layer_type"],
            row.get("recompute", ""),
            str(row["tp"]),
            str(row["micro_batch_size"]),
            milliseconds(row["forward_ms"]),
            percent(how["forward_spread"]),
            milliseconds(row["backward_ms"]),
            percent(how["backward_spread"]),
            *(f"{size / MB:,.2f}" for size in (row["weight_bytes"], row["activation_bytes"], how["peak_bytes"])),
        )
    return columns.table()


def _messages(document: Mapping[str, Any], stream: TextIO) -> Any:
    columns = Columns(stream, title="Messages")
    columns.name("What")
    columns.number("TP", "DP", "KB", "ms", "±")
    for row in (*document["transfers"], *document["all_reduce"]):
        is_all_reduce = "dp" in row
        columns.row(
            "all-reduce" if is_all_reduce else "transfer",
            *((str(row["tp"]), str(row["dp"])) if is_all_reduce else ("", "")),
            f"{row['bytes'] / KB:,.0f}",
            milliseconds(row["ms"]),
            percent(row["measured"]["spread"]),
        )
    return columns.table()
