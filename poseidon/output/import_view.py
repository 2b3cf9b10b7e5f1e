"""What an import found, for people: a table of rows, then what was derived, is missing and looks odd."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TextIO

from poseidon.inputs.model import LayerType
from poseidon.output.console import Columns, rendered, width_of
from poseidon.output.numbers import plural
from poseidon.profile.importers import Imported
from poseidon.profile.profile import Profile, Row, RowKey


def import_text(imported: Imported, out: str | None, stream: TextIO) -> str:
    """The table and the remarks."""
    profile = imported.profile
    title = f"{profile.model}, {profile.seq_length} tokens, {profile.precision}: {plural(len(profile.layers), 'row')}"
    lines = [title, rendered([_table(imported, stream).table()], stream), ""]
    width = width_of(stream)
    for said in _remarks(imported):
        lines += wrap(said, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    if out is not None:
        lines.append(f"Written to {out}")
    return "\n".join(lines)


def _remarks(imported: Imported) -> Iterator[str]:
    profile = imported.profile
    for note in imported.notes:
        yield f"- {note}"
    if profile.transfers or profile.all_reduce:
        messages = f"{plural(len(profile.transfers), 'transfer')} and {plural(len(profile.all_reduce), 'all-reduce')}"
        yield f"- {messages} measured"
    for name, tp in dict.fromkeys((hole.accelerator, hole.tp) for hole in imported.holes):
        sizes = [h.micro_batch_size for h in imported.holes if (h.accelerator, h.tp) == (name, tp)]
        yield f"- missing: {name} at TP {tp} with micro-batches of {', '.join(map(str, sizes))}"
    for warning in imported.warnings:
        yield f"Warning: {warning}"


def _table(imported: Imported, stream: TextIO) -> Columns:
    profile = imported.profile
    columns = Columns(stream)
    columns.name("accelerator")
    columns.number("TP", "mbs")
    types = tuple(dict.fromkeys(key.layer_type for key in profile.layers))
    for name in types:
        label = "layer" if len(types) == 1 else name
        columns.number(f"{label} F ms", "B ms", "weights MB", "kept MB")
    columns.number("emb. ms", "head ms")
    made_up = any(row.source for row in _rows(profile))
    if made_up:
        columns.name("filled")
    for at in imported.keys:
        cells = _cells(profile, types, at)
        columns.row(*(cells if made_up else cells[:-1]))
    return columns


def _rows(profile: Profile) -> tuple[Row, ...]:
    return (*profile.layers.values(), *profile.embedding.values(), *profile.head.values())


def _cells(profile: Profile, types: Sequence[LayerType], at: RowKey) -> list[str]:
    rows: dict[str, Row] = {key.layer_type: row for key, row in profile.layers.items() if key.at == at}
    cells = [at.accelerator, str(at.tp), str(at.micro_batch_size)]
    for name in types:
        row = rows[name]
        cells += [f"{row.forward_ms:,.3f}", f"{row.backward_ms:,.3f}"]
        cells += [f"{row.weight_bytes / 1e6:,.1f}", f"{row.activation_bytes / 1e6:,.1f}"]
    rows |= {"embedding": profile.embedding[at], "head": profile.head[at]}
    cells += [f"{rows[name].forward_ms + rows[name].backward_ms:,.2f}" for name in ("embedding", "head")]
    return [*cells, ", ".join(_filled(rows))]


def _filled(rows: Mapping[str, Row]) -> Iterator[str]:
    """Which parts are not measured: all of them, or by name."""
    names = [name for name, row in rows.items() if row.source]
    if len(names) == len(rows):
        yield "all"
    else:
        yield from names
