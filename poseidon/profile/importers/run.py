"""From files to a profile: detect, read, merge, complete, check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from poseidon.errors import InputError, Mistake
from poseidon.inputs.file_model import shown
from poseidon.inputs.training import Recompute
from poseidon.profile.file import profile_from_json, profile_to_json
from poseidon.profile.importers.cell import QUANTITIES, VOCABULARY, Cell, Quantity, Reading
from poseidon.profile.importers.complete import ANALYTIC, analytic_rows, model_bytes, parts_of
from poseidon.profile.importers.formats import Format, detected
from poseidon.profile.importers.merge import Merged, agreed, merged
from poseidon.profile.importers.numbers import MOST_COUNT
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.importers.plausible import implausible
from poseidon.profile.profile import LayerKey, Profile, Row, RowKey

SHOWN = 12
"""Missing rows that a refusal lists before it says how many more there are."""


@dataclass(frozen=True)
class Imported:
    """A profile and how it came about."""

    profile: Profile
    format: str
    keys: tuple[RowKey, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    holes: tuple[RowKey, ...]
    """Configurations between the measured ones that have no row."""


def import_profile(files: Sequence[Path], options: ImportOptions, format_name: str | None = None) -> Imported:
    """The profile that the files hold; raises InputError with every mistake, and with what is missing."""
    chosen = detected(files, format_name)
    reading = chosen.read(files, options)
    rows = merged(reading)
    if not any(part not in VOCABULARY for part, _ in rows.rows):
        raise InputError(Mistake("", "", _nothing(chosen, reading)))
    seq_length = agreed("sequence length", reading.seq_length, options.seq_length, "--seq-length")
    recompute: Recompute = agreed("recomputation", reading.recompute, options.recompute, "--recompute") or "none"
    if seq_length is None:
        raise InputError(Mistake("", "", f"{chosen.name} files don't say the sequence length: give --seq-length S"))
    if not 1 <= seq_length <= MOST_COUNT:
        message = f"{shown(seq_length)} is no sequence length: 1 to {MOST_COUNT:,} is accepted"
        raise InputError(Mistake(reading.seq_length[0].place.file, reading.seq_length[0].place.field, message))
    reading, rows = _completed(reading, rows, options, seq_length, recompute)
    _require_complete(rows, options)
    warnings = (*reading.warnings, *implausible(rows, options, seq_length))
    profile = _profile(chosen, reading, rows, options, seq_length, recompute)
    profile_from_json(profile_to_json(profile), "the profile that would be written", recompute)
    return Imported(profile, chosen.name, rows.keys, reading.notes, tuple(dict.fromkeys(warnings)), _holes(rows))


def _nothing(chosen: Format, reading: Reading) -> str:
    if reading.per_sequence:
        return f"these {chosen.name} files hold memory alone: give the files with times, too"
    if reading.transfers or reading.all_reduce:
        return f"these {chosen.name} files hold communication alone: give the files with times of layers, too"
    return f"these {chosen.name} files hold no row of a layer"


def _completed(
    reading: Reading, rows: Merged, options: ImportOptions, seq_length: int, recompute: Recompute
) -> tuple[Reading, Merged]:
    if options.model is not None:
        reading = reading.joined(model_bytes(rows, options.model, seq_length, recompute))
        rows = merged(reading)
    if options.fill:
        reading = reading.joined(analytic_rows(rows, options, seq_length, recompute))
        rows = merged(reading)
    return reading, rows


def _require_complete(rows: Merged, options: ImportOptions) -> None:
    """Raises InputError that lists what every configuration still lacks."""
    lacking: list[str] = []
    kinds: set[Quantity] = set()
    for at in rows.keys:
        for part in parts_of(options.model, rows):
            missing = rows.lacking(part, at, QUANTITIES)
            kinds |= set(missing)
            if missing:
                lacking.append(f"{part} {at}: {', '.join(missing)}")
    if not lacking:
        return
    more = f"; and {len(lacking) - SHOWN} more rows" if len(lacking) > SHOWN else ""
    times = "forward_ms" in kinds or "backward_ms" in kinds
    remedy = "--fill analytic with --model and --cluster" if times else "--model FILE works them out"
    raise InputError(Mistake("", "", f"missing: {'; '.join(lacking[:SHOWN])}{more} ({remedy}, or further files)"))


def _holes(rows: Merged) -> tuple[RowKey, ...]:
    """Pairs of a TP degree and a micro-batch size that an accelerator's rows span but don't have."""
    keys = rows.keys
    spanned = (
        RowKey(name, tp, size)
        for name in dict.fromkeys(at.accelerator for at in keys)
        for tp in sorted({at.tp for at in keys if at.accelerator == name})
        for size in sorted({at.micro_batch_size for at in keys if at.accelerator == name})
    )
    return tuple(hole for hole in spanned if hole not in set(keys))


def _profile(
    chosen: Format, reading: Reading, rows: Merged, options: ImportOptions, seq_length: int, recompute: Recompute
) -> Profile:
    model = options.model.name if options.model else agreed("model", reading.model, None, "--model") or "unnamed"
    names = {at.accelerator for at in rows.keys}
    precision = agreed("precision", reading.precision, options.precision, "--precision") or "bf16"
    layers = {
        LayerKey(at, part, recompute): _row(cells)
        for (part, at), cells in rows.rows.items()
        if part != "embedding" and part != "head"
    }
    vocabulary = {
        name: {at: _row(cells) for (part, at), cells in rows.rows.items() if part == name} for name in VOCABULARY
    }
    return Profile(
        model=model,
        seq_length=seq_length,
        precision=precision,
        source="; ".join((f"imported from {chosen.name} files ({chosen.origin})", *reading.notes)),
        layers=layers,
        embedding=vocabulary["embedding"],
        head=vocabulary["head"],
        transfers=tuple(row for row in reading.transfers if {row.sender, row.receiver} <= names),
        all_reduce=tuple(row for row in reading.all_reduce if row.accelerator in names),
    )


def _row(cells: Mapping[Quantity, Cell]) -> Row:
    again = cells.get("recomputed_bytes")
    filled = [quantity for quantity in QUANTITIES if cells[quantity].derived == ANALYTIC]
    source = ANALYTIC if len(filled) == len(QUANTITIES) else f"{ANALYTIC}: {', '.join(filled)}"
    return Row(
        forward_ms=cells["forward_ms"].value,
        backward_ms=cells["backward_ms"].value,
        weight_bytes=cells["weight_bytes"].value,
        activation_bytes=cells["activation_bytes"].value,
        recomputed_bytes=again.value if again else 0.0,
        source=source if filled else "",
    )
