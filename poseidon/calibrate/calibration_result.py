"""From a file of measurements to a calibrated accelerator: matrix products first, then iteration times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from poseidon.calibrate.accelerator_file import accelerator_text, calibrated, rounded
from poseidon.calibrate.fit import Fit, fit
from poseidon.calibrate.matmul_fit import MatmulFit, fit_matmuls
from poseidon.calibrate.measurement import Measurement, Residual, mean_error
from poseidon.calibrate.parameters import sensible_parameters
from poseidon.calibrate.runs_file import Measurements
from poseidon.inputs.accelerator import Accelerator
from poseidon.profile.calibration import DEFAULT_CALIBRATION, Calibration


@dataclass(frozen=True)
class CalibrationResult:
    """What was fitted to what; either part may be missing."""

    measurements: Measurements
    matmuls: MatmulFit | None
    runs: Fit | None

    @property
    def fitted(self) -> dict[str, float]:
        """The fields of the accelerator's `calibration` block."""
        values = {"half_rate_side": self.matmuls.half_rate_side} if self.matmuls else {}
        if self.runs:
            values |= {name: getattr(self.runs.calibration, name) for name in self.runs.fitted}
        return values

    def accelerator_text(self) -> str:
        """The accelerator file, which says what its numbers come from."""
        comments = [f"Calibrated by poseidon calibrate from {self.measurements.file}."]
        if self.matmuls:
            errors = self.matmuls.errors
            mean = 100 * sum(map(abs, errors)) / len(errors)
            comments.append(f"Matrix products: {len(errors)}, mean absolute error {mean:.1f} %.")
        if self.runs:
            seen, unseen = self.runs.of(held_out=False), self.runs.of(held_out=True)
            comments.append(f"Iteration times: {len(seen)} fitted, mean absolute error {100 * mean_error(seen):.1f} %.")
            if unseen:
                comments.append(f"Held out: {len(unseen)}, mean absolute error {100 * mean_error(unseen):.1f} %.")
        efficiency = self.matmuls.compute_efficiency if self.matmuls else None
        return accelerator_text(calibrated(self.measurements.accelerator, self.fitted, efficiency), comments)

    def to_json(self) -> dict[str, Any]:
        """The result for programs."""
        data: dict[str, Any] = {"accelerator": self.measurements.name}
        data["calibration"] = {name: rounded(value) for name, value in self.fitted.items()}
        if self.matmuls:
            data["compute_efficiency"] = rounded(self.matmuls.compute_efficiency)
            data["matmuls"] = [
                {"m": item.m, "k": item.k, "n": item.n, "predicted_ms": ms, "error": error, "use": item.use or "fit"}
                for item, ms, error in zip(
                    self.matmuls.matmuls, self.matmuls.predicted_ms, self.matmuls.errors, strict=True
                )
            ]
        if self.runs:
            seen, unseen = self.runs.of(held_out=False), self.runs.of(held_out=True)
            data["mean_error_fitted"] = mean_error(seen)
            data["mean_error_held_out"] = mean_error(unseen) if unseen else None
            data["runs"] = [_run_to_json(item) for item in self.runs.after]
        return data


def _run_to_json(item: Residual) -> dict[str, Any]:
    run = item.measurement
    return {
        "name": run.name,
        "group": run.group,
        "measured_ms": run.measured_ms,
        "predicted_ms": item.predicted_ms,
        "error": item.error,
        "use": "hold out" if run.held_out else "fit",
    }


def calibrate(measurements: Measurements, names: Sequence[str] = ()) -> CalibrationResult:
    """Fits what the file has; `names` are the parameters to fit to iteration times, before what the file says.

    Raises InputError where nothing is left to fit, MissingPackageError without SciPy.
    """
    matmuls = fit_matmuls(measurements.accelerator, measurements.matmuls) if measurements.matmuls else None
    runs, start = measurements.runs, DEFAULT_CALIBRATION
    if matmuls:
        start = Calibration(half_rate_side=matmuls.half_rate_side)
        runs = tuple(_with_efficiency(run, matmuls.compute_efficiency) for run in runs)
    if not runs:
        return CalibrationResult(measurements, matmuls, None)
    chosen = tuple(names) or measurements.fit or sensible_parameters(runs)
    if matmuls:
        chosen = tuple(name for name in chosen if name != "half_rate_side") or ("training_share",)
    return CalibrationResult(measurements, matmuls, fit(runs, chosen, start))


def _with_efficiency(run: Measurement, compute_efficiency: float) -> Measurement:
    """The run on an accelerator of this efficiency."""
    experiment = run.job.experiment
    cluster = experiment.cluster
    accelerators: dict[str, Accelerator] = {
        name: item.model_copy(update={"compute_efficiency": compute_efficiency})
        for name, item in cluster.accelerators.items()
    }
    changed = experiment.model_copy(update={"cluster": cluster.model_copy(update={"accelerators": accelerators})})
    return replace(run, job=replace(run.job, experiment=changed))
