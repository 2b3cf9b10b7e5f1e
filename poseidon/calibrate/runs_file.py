"""Reads a file of measurements: every run becomes an experiment that leaves nothing to choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from poseidon.calibrate.csv_table import read_table
from poseidon.calibrate.job_experiment import job_experiment
from poseidon.calibrate.measurement import Measurement
from poseidon.calibrate.prediction import StageLayers, job_of
from poseidon.calibrate.runs_model import Matmul, Run, RunsFile, Use, run_fields
from poseidon.errors import InputError, Mistake
from poseidon.inputs.accelerator import Accelerator
from poseidon.inputs.efficiencies import Efficiencies
from poseidon.inputs.file_model import nearest
from poseidon.inputs.loading import Loading
from poseidon.inputs.model import Model
from poseidon.inputs.model_file import default_name, model_from_mapping
from poseidon.inputs.source_file import SourceFile
from poseidon.inputs.validation import validate

HOLD_OUT_EVERY = 3
"""Where no row says `use`: every third one is held out."""
COLUMNS = {"runs": ("name", "model", "iteration_ms"), "matmuls": ("m", "k", "n")}
"""What every row says."""
Value = TypeVar("Value")


@dataclass(frozen=True)
class Measurements:
    """What a file holds. The accelerator is without a calibration of its own: the fit makes one."""

    name: str
    accelerator: Accelerator
    runs: tuple[Measurement, ...]
    matmuls: tuple[Matmul, ...]
    fit: tuple[str, ...] | None
    file: str


def read_measurements(path: str | Path) -> Measurements:
    """Reads a file of measurements with all files that it refers to.

    Raises InputError with every mistake: fields, unknown names, settings that make no training job.
    """
    loading, source = Loading(), SourceFile.first(path)
    return _Reader(loading, source, validate(RunsFile, loading.read(source).data, source.label)).read()


@dataclass(frozen=True)
class _Reader:
    loading: Loading
    source: SourceFile
    file: RunsFile

    def read(self) -> Measurements:
        runs, matmuls = self._rows("runs"), self._rows("matmuls")
        if not runs and not matmuls:
            raise InputError(Mistake(self.source.label, "runs", "is missing: runs or matmuls are expected"))
        name, accelerator = self._accelerator()
        keys = list(self.file.models)
        models = dict(zip(keys, self._all(lambda index: self._model(keys[index]), len(keys)), strict=True))
        products = self._all(partial(self._row, Matmul, "matmuls", matmuls), len(matmuls))
        checked = self._all(partial(self._run, runs), len(runs))
        uses = _uses([run.use for run in checked])
        measured = self._all(
            lambda index: self._measurement(checked[index], uses[index], index, accelerator, models), len(checked)
        )
        return Measurements(name, accelerator, tuple(measured), tuple(products), self.file.fit, self.source.label)

    def _all(self, step: Callable[[int], Value], count: int) -> list[Value]:
        """The step's value for every index; raises InputError with the mistakes of all of them."""
        values = [self.loading.attempt(partial(step, index)) for index in range(count)]
        self.loading.finish()
        return [value for value in values if value is not None]

    def _rows(self, field: Literal["runs", "matmuls"]) -> Sequence[Mapping[str, Any]]:
        rows = getattr(self.file, field)
        return read_table(self.source.refer(rows), COLUMNS[field]) if isinstance(rows, str) else tuple(rows)

    def _place(self, field: Literal["runs", "matmuls"], index: int) -> tuple[str, tuple[str | int, ...]]:
        """File and place of a row in errors; lines of a CSV file are counted with its header."""
        rows = getattr(self.file, field)
        if isinstance(rows, str):
            return self.source.refer(rows).label, (f"line {index + 2}",)
        return self.source.label, (field, index)

    def _content(self, reference: Any, place: tuple[str, ...]) -> tuple[Mapping[str, Any], str, str, tuple[str, ...]]:
        """The mapping that a reference is or names, with its file, its name and its place in that file."""
        if isinstance(reference, Mapping):
            return reference, self.source.label, place[-1], place
        target = self.source.refer(reference)
        return self.loading.read_referred(target, self.source, place).data, target.label, default_name(target.path), ()

    def _accelerator(self) -> tuple[str, Accelerator]:
        data, file, name, place = self._content(self.file.accelerator, ("accelerator",))
        accelerator = validate(Accelerator, data, file, place)
        return self.file.name or name, accelerator.model_copy(update={"calibration": Efficiencies()})

    def _model(self, key: str) -> Model:
        data, file, name, place = self._content(self.file.models[key], ("models", key))
        return model_from_mapping(data, file, name, place)

    def _row(self, kind: type[Any], field: Literal["runs", "matmuls"], rows: Sequence[Any], index: int) -> Any:
        file, place = self._place(field, index)
        return validate(kind, rows[index], file, place)

    def _run(self, rows: Sequence[Mapping[str, Any]], index: int) -> Run:
        file, place = self._place("runs", index)
        run = validate(Run, run_fields(rows[index]), file, place)
        mistakes = [
            Mistake(file, f"{_field(place)}.{field}", _unknown(word, known))
            for field, word, known in (
                ("model", run.model, self.file.models),
                ("system", run.system, self.file.systems),
            )
            if word is not None and word not in known
        ]
        if not self.file.systems:
            mistakes.append(Mistake(self.source.label, "systems", "is missing: runs need the machines they ran on"))
        if mistakes:
            raise InputError(mistakes)
        return run

    def _measurement(
        self, run: Run, use: Use, index: int, accelerator: Accelerator, models: Mapping[str, Model]
    ) -> Measurement:
        file, place = self._place("runs", index)
        system = self.file.systems[run.system or next(iter(self.file.systems))]
        settings = {**self.file.training, **run.settings}
        experiment = job_experiment(run, models[run.model], accelerator, system, settings, file, place)
        layers: StageLayers | None = tuple((count,) for count in run.layers) if run.layers else None
        try:
            job = job_of(experiment, layers, run.transfers)
        except InputError as error:
            raise InputError(Mistake(file, _field(place), item.message) for item in error.mistakes) from None
        return Measurement(run.name, job, run.iteration_ms, use == "hold out", run.group, run.note)


def _uses(given: Sequence[Use | None]) -> list[Use]:
    """What each row is for: as they say; every third is held out where none says anything."""
    if any(use is not None for use in given):
        return [use or "fit" for use in given]
    return ["hold out" if index % HOLD_OUT_EVERY == HOLD_OUT_EVERY - 1 else "fit" for index in range(len(given))]


def _field(place: Sequence[str | int]) -> str:
    return str(place[0]) if len(place) == 1 else f"{place[0]}[{place[1]}]"


def _unknown(word: str, known: Mapping[str, Any]) -> str:
    suggestion = nearest(word, known)
    hint = f"did you mean {suggestion!r}? " if suggestion else ""
    return f"{word!r} is not known; {hint}accepted: {', '.join(known) or 'none is declared'}"
