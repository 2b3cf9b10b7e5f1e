"""The runs of a sweep: the product of its axes, each with the experiment that it is."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.variant import REPLACEABLE_PARTS, VariantBase, load_variant_base
from poseidon.sweep.field_change import UnknownFieldError, set_field
from poseidon.sweep.identity import refused_identity, run_identity
from poseidon.sweep.sweep import EXPERIMENT, Change, Point, Sweep

MAX_RUNS = 20_000
"""Most runs of a sweep: 22 kB and 3 ms each before anything is done (measured on setting 1); more is likely a slip."""


@dataclass(frozen=True)
class Refusal:
    """Why a point of the grid is no experiment."""

    reason: str


@dataclass(frozen=True)
class Run:
    """One point of the grid. Runs of the same inputs have the same identity (and are done once)."""

    number: int
    name: str
    """``npus=96, policy=exact``."""
    labels: tuple[str, ...]
    """The label of each axis."""
    identity: str
    content: Experiment | Refusal


def expand(sweep: Sweep) -> tuple[Run, ...]:
    """All runs of a sweep, the last axis fastest.

    A point whose inputs are refused is a run, too. Raises InputError for a path that is no field of the experiment, and
    when no point at all is an experiment.
    """
    size = math.prod(len(axis.points) for axis in sweep.axes)
    if size > MAX_RUNS:
        raise InputError(Mistake(sweep.source.label, "axes", f"make {size:,} runs: at most {MAX_RUNS:,} are accepted"))
    bases = _Bases(sweep)
    points = itertools.product(*(axis.points for axis in sweep.axes))
    runs = tuple(_run(sweep, bases, number, chosen) for number, chosen in enumerate(points))
    if all(isinstance(run.content, Refusal) for run in runs):
        raise InputError(bases.first_mistakes)
    return runs


def _run(sweep: Sweep, bases: _Bases, number: int, points: tuple[Point, ...]) -> Run:
    labels = tuple(point.label for point in points)
    name = ", ".join(f"{axis.title}={label}" for axis, label in zip(sweep.axes, labels, strict=True))
    changes = {
        change.path: change for change in (*sweep.changes, *(item for point in points for item in point.changes))
    }
    content: Experiment | Refusal
    try:
        content = bases.experiment(tuple(changes.values()))
        identity = run_identity(content)
    except UnknownFieldError:
        raise
    except InputError as error:
        content = Refusal("; ".join(map(str, error.mistakes)))
        bases.first_mistakes = bases.first_mistakes or error.mistakes
        identity = refused_identity(name, content.reason)
    return Run(number, name, labels, identity, content)


class _Bases:
    """The base of each combination of files, loaded once."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._loaded: dict[str, VariantBase] = {}
        self.first_mistakes: tuple[Mistake, ...] = ()

    def experiment(self, changes: Iterable[Change]) -> Experiment:
        """The experiment that results from the changes: whole parts first, then their fields."""
        in_order = sorted(changes, key=lambda change: len(change.path))
        wholes = [change for change in in_order if len(change.path) == 1 and change.path[0] in REPLACEABLE_PARTS]
        fields = [change for change in in_order if change not in wholes and change.path != EXPERIMENT]
        experiment = next((change for change in in_order if change.path == EXPERIMENT), None)
        base = self._base(experiment, {str(change.path[0]): change.value for change in wholes})
        file = self._sweep.source.label

        def apply(data: dict[str, Any]) -> None:
            for change in fields:
                set_field(data, change.path, change.value, file, change.place)

        return base.variant(apply)

    def _base(self, experiment: Change | None, replaced: dict[str, Any]) -> VariantBase:
        source = self._sweep.source
        path = self._sweep.experiment if experiment is None else experiment.value
        place = "experiment" if experiment is None else experiment.place
        if not isinstance(path, str) or not path:
            raise InputError(Mistake(source.label, place, "the path of an experiment file is expected"))
        key = json.dumps([path, replaced], sort_keys=True)
        if key not in self._loaded:
            self._loaded[key] = load_variant_base(source, path, (place,), replaced)
        return self._loaded[key]
