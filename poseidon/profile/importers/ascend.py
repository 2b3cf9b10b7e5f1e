"""Ascend's PyTorch profiler: ``kernel_details.csv`` of an ``ASCEND_PROFILER_OUTPUT`` folder.

Format: torch_npu.profiler with the documentation of CANN 8.0 to 8.5 (hiascend.com, "Timeline and Summary Data").
Columns used: Type (operator type) and Start Time(us), microseconds; further columns differ between versions and
profiler levels and are passed over. ``step_trace_time.csv`` beside it (Computing, Communication(Not
Overlapped), Free, in microseconds) gives a remark on how much of a step is neither computing nor hidden.

Derived: the profiler doesn't mark layers or directions. Fused attention does: every layer runs FlashAttentionScore
once in its forward pass and FlashAttentionScoreGrad once in its backward pass. The time from one forward attention to
the next, with no backward one between, is one layer's forward pass (TP communication and gaps included); likewise
backward, where with recomputation layer by layer one forward attention lies between. Medians over all of them: the
longer distances from one micro-batch to the next don't count as long as the device holds 3 or more layers. Several
layers recomputed at once are refused. Embedding and head can't be told apart from the rest: missing (--fill
analytic); weights and activations too (--model). Without fused attention nothing marks a layer: refused.

The files don't say TP degree, micro-batch size, sequence length and accelerator: options. ``op_statistic.csv``
and ``step_trace_time.csv`` alone hold sums that can't be split, and are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isfinite
from pathlib import Path
from statistics import median, quantiles
from typing import Literal

from poseidon.errors import InputError, Mistake
from poseidon.inputs.source_file import file_label
from poseidon.profile.importers.cell import Place, Reading, time_cells
from poseidon.profile.importers.numbers import Checked
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.importers.peek import Peeked
from poseidon.profile.importers.run_key import key_of
from poseidon.profile.importers.text import rows_of

NAME = "ascend"
KERNELS = "kernel_details.csv"
STEPS = "step_trace_time.csv"
FOLDER = "ASCEND_PROFILER_OUTPUT"
FORWARD, BACKWARD = "FlashAttentionScore", "FlashAttentionScoreGrad"
START, DURATION, TYPE = "Start Time(us)", "Duration(us)", "Type"
US_PER_MS = 1e3
FEWEST = 4
"""Distances of each direction that a median needs."""
SPREAD = 0.3
"""Middle half of the distances over their median that is reported."""
Direction = Literal["forward", "backward"]
Events = Sequence[tuple[float, Direction]]


def is_ascend(look: Peeked) -> bool:
    """Whether a folder or CSV is the profiler's."""
    if look.path.is_dir():
        return _kernels_in(look.path) is not None
    header = look.lines[0] if look.lines else ""
    return (START in header and DURATION in header) or "Communication(Not Overlapped)" in header or "OP Type," in header


def _kernels_in(folder: Path) -> Path | None:
    return next((path for path in (folder / KERNELS, folder / FOLDER / KERNELS) if path.is_file()), None)


def read_ascend(path: Path, options: ImportOptions) -> Reading:
    """The rows of one device's profile."""
    file = file_label(path)
    kernels = _kernels_in(path) if path.is_dir() else path
    if kernels is None:
        raise InputError(Mistake(file, "", f"holds no {KERNELS} (nor {FOLDER}/{KERNELS})"))
    checked = Checked(file_label(kernels))
    at = key_of(path, options, checked)
    events = sorted(_events(kernels, checked))
    checked.finish()
    forward, (backward, again) = _distances(events), _backward_distances(events)
    if min(len(forward), len(backward)) < FEWEST:
        checked.say(TYPE, _too_few(events))
    elif again and options.recompute in (None, "none"):
        checked.say(TYPE, f"{FORWARD} runs again before each {BACKWARD}: say --recompute full (or selective)")
    elif not again and options.recompute == "full":
        checked.say(TYPE, f"no {FORWARD} runs before each {BACKWARD}: several layers recomputed at once can't be read")
    checked.finish()
    place = Place(checked.file, TYPE)
    part = options.model.distinct_layer_types[0] if options.model else "dense"
    if options.model and len(options.model.distinct_layer_types) > 1:
        checked.say("", f"{options.model.name} mixes dense and MoE layers, which the profiler doesn't tell apart")
        checked.finish()
    how = f"median distance of {len(forward)} {FORWARD} and {len(backward)} {BACKWARD}"
    times = (median(forward) / US_PER_MS, median(backward) / US_PER_MS)
    notes = (f"ascend: {at}: {how}", *_steps(kernels.parent / STEPS))
    return Reading(
        tuple(time_cells(part, at, *times, place, how)), notes=notes, warnings=tuple(_spread(at, forward, backward))
    )


def _events(path: Path, checked: Checked) -> Iterator[tuple[float, Direction]]:
    """Start times of the attention kernels, microseconds."""
    rows = rows_of(path)
    _, header = next(rows, (1, list[str]()))
    if TYPE not in header or START not in header:
        said = f"is no {KERNELS}: the columns {TYPE} and {START} are expected; step and operator sums "
        checked.say(
            "line 1", f"{said}(step_trace_time.csv, op_statistic.csv) can't be split into layers, forward and backward"
        )
        return
    kind, start = header.index(TYPE), header.index(START)
    for line, row in rows:
        if len(row) <= max(kind, start):
            checked.say(f"line {line}", f"has {len(row)} fields, the header {len(header)}: is the file cut off?")
        elif row[kind] in (FORWARD, BACKWARD):
            yield _time(row[start], line, checked), "forward" if row[kind] == FORWARD else "backward"


def _time(text: str, line: int, checked: Checked) -> float:
    """A time stamp; they count from 1970 and are larger than any duration."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if isfinite(value) and 0 <= value < 1e17:
        return value
    checked.say(f"line {line}, {START}", f"{text[:40]!r} is no time in microseconds")
    return 0.0


def _distances(events: Events, direction: Direction = "forward") -> list[float]:
    """From each attention of a direction to the next, where no other direction lies between."""
    return [b[0] - a[0] for a, b in pairwise(events) if a[1] == b[1] == direction and b[0] > a[0]]


def _backward_distances(events: Events) -> tuple[list[float], bool]:
    """From each backward attention to the next, and whether one forward attention lies between: it is recomputed."""
    plain = _distances(events, "backward")
    kinds = [kind for _, kind in events]
    again = [
        events[i + 2][0] - events[i][0]
        for i in range(len(events) - 2)
        if kinds[i : i + 3] == ["backward", "forward", "backward"]
    ]
    return (again, True) if len(again) > len(plain) else (plain, False)


def _too_few(events: Events) -> str:
    counts = {direction: sum(1 for _, kind in events if kind == direction) for direction in ("forward", "backward")}
    return (
        f"has {counts['forward']} {FORWARD} and {counts['backward']} {BACKWARD} kernels, too few one after the other: "
        "fused attention, 3 or more layers on the device and a whole training step are needed"
    )


def _spread(at: object, forward: Sequence[float], backward: Sequence[float]) -> Iterator[str]:
    for direction, distances in (("forward", forward), ("backward", backward)):
        low, middle, high = quantiles(distances, n=4)
        if high - low > SPREAD * middle:
            yield f"{at}: {direction} passes of layers differ by {(high - low) / middle:.0%}: are layers alike?"


def _steps(path: Path) -> tuple[str, ...]:
    """How much of a step is communication that isn't hidden, and idle."""
    if not path.is_file():
        return ()
    rows = [row for _, row in rows_of(path)]
    names = ("Computing", "Communication(Not Overlapped)", "Free")
    if len(rows) < 2 or not set(names) <= set(rows[0]):
        return ()
    checked = Checked(file_label(path))
    sums = [
        sum(
            checked.number(row[rows[0].index(name)], name, "microseconds")
            for row in rows[1:]
            if len(row) == len(rows[0])
        )
        for name in names
    ]
    checked.finish()
    total = sum(sums)
    if not total:
        return ()
    return (
        f"ascend: of the steps {sums[1] / total:.1%} is communication that isn't hidden, {sums[2] / total:.1%} idle",
    )
