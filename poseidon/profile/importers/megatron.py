"""Megatron-LM's training logs with ``--timing-log-level 2``.

Format: Megatron-LM, megatron/core/timers.py and training.py, core 0.12 to main d98e8a64 (2026-08), and the one-line
form of 2022 and before. The log holds, at every --log-interval iterations, one block:

    (min, max) time across ranks (ms):                      --timing-log-option minmax (the default)
        forward-compute ................................: (812.31, 835.02)
    max time across ranks (ms):                             max
        forward-compute ................................: 835.02
    times across ranks (ms):                                all
      forward-compute:
         rank  0: 812.31
    time (ms) | forward-compute: 812.31 | ...               2022 and before: the last rank's

and, at the start, all arguments (``tensor_model_parallel_size ...... 2``), which give TP, pipeline stages, layers,
batch sizes, sequence length, precision and recomputation; without them: --tp, --pipeline-stages, --micro-batch-size,
--num-micro-batches, --seq-length and --model. All times are ms of an iteration.

Derived: forward-compute and backward-compute / micro-batches = a stage's pass; its median over the blocks (the first
one, which warms up, is left out); of several ranks of a stage the slowest. A stage's pass = (embedding) + layers x
layer + (head): solved by least squares over the stages of all logs of one TP and micro-batch size. Where they can't
tell embedding from head, the embedding gets --embedding-share of both. Weights and activations are missing: --model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from poseidon.errors import InputError, Mistake
from poseidon.inputs.source_file import file_label
from poseidon.profile.importers.cell import Cell, Fact, Place, Reading, time_cells
from poseidon.profile.importers.megatron_log import TrainingLog, read_log
from poseidon.profile.importers.megatron_run import Observation, Run, run_of
from poseidon.profile.importers.numbers import Checked, whole
from poseidon.profile.importers.options import ImportOptions
from poseidon.profile.importers.stage_times import Solved, solved_times
from poseidon.profile.importers.text import lines_of
from poseidon.profile.profile import RowKey

NAME = "megatron"
_SIGNS = ("time across ranks (ms)", "times across ranks (ms)", "time (ms) | forward-compute")
SCANNED_LINES = 20_000


def is_megatron(path: Path) -> bool:
    """Whether a file looks like a training log with timers."""
    if path.is_dir() or path.suffix.lower() in (".json", ".csv"):
        return False
    for number, line in enumerate(lines_of(path, stray_bytes=True)):
        if any(sign in line for sign in _SIGNS):
            return True
        if number > SCANNED_LINES:
            break
    return False


def read_megatron(files: Sequence[Path], options: ImportOptions) -> Reading:
    """The rows of all logs together: logs of one configuration complete each other."""
    runs: dict[RowKey, list[Run]] = {}
    mistakes: list[Mistake] = []
    reading = Reading()
    for path in files:
        checked = Checked(file_label(path))
        try:
            log = read_log(path, checked)
            run = run_of(path, log, options, checked)
            checked.finish()
        except InputError as error:
            mistakes += error.mistakes
            continue
        runs.setdefault(run.at, []).append(run)
        reading = reading.joined(_facts(log, Place(checked.file, "arguments")))
    if mistakes:
        raise InputError(mistakes)
    for at, group in runs.items():
        reading = reading.joined(_rows(at, group, options))
    return reading


def _facts(log: TrainingLog, place: Place) -> Reading:
    arguments = log.arguments
    length = whole(arguments.get("seq_length", ""))
    granularity = arguments.get("recompute_granularity", "")
    precision = [name for name in ("bf16", "fp16") if arguments.get(name) == "True"]
    recompute = "none" if granularity == "None" else granularity
    return Reading(
        seq_length=(Fact(length, place),) if length else (),
        precision=(Fact(precision[0], place),) if precision else (),
        recompute=(Fact(recompute, place),) if recompute in ("none", "selective", "full") else (),
    )


def _rows(at: RowKey, runs: Sequence[Run], options: ImportOptions) -> Reading:
    observations: list[Observation] = [stage for run in runs for stage in run.stages]
    place = Place(runs[0].file, "forward-compute, backward-compute")
    forward = solved_times(observations, "forward", place, options.embedding_share)
    backward = solved_times(observations, "backward", place, options.embedding_share)
    how = f"least squares over {len(observations)} stages"
    cells: list[Cell] = []
    cells += time_cells(runs[0].layer_type, at, forward.layer, backward.layer, place, how)
    cells += time_cells("embedding", at, forward.embedding, backward.embedding, place, how)
    cells += time_cells("head", at, forward.head, backward.head, place, how)
    notes = (
        f"megatron: {at}: {how}, medians of {min(run.num_blocks for run in runs)} or more logged intervals",
        *(f"megatron: {at}: {said}" for said in dict.fromkeys((*forward.notes, *backward.notes))),
    )
    return Reading(tuple(cells), notes=notes, warnings=_warnings(at, forward, backward))


def _warnings(at: RowKey, forward: Solved, backward: Solved) -> tuple[str, ...]:
    return tuple(f"{at}: {said}" for said in dict.fromkeys((*forward.warnings, *backward.warnings)))
