"""A calibration as people see it in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.markup import escape

from poseidon.calibrate.calibration_result import CalibrationResult
from poseidon.calibrate.fit import Fit
from poseidon.calibrate.matmul_fit import MatmulFit, measured_ms
from poseidon.calibrate.measurement import Residual, mean_error
from poseidon.calibrate.parameters import PARAMETERS
from poseidon.output.console import Columns, rendered
from poseidon.output.numbers import milliseconds_column, plural
from poseidon.profile.calibration import DEFAULT_CALIBRATION


def calibration_text(result: CalibrationResult, stream: TextIO) -> str:
    """Every measurement with its error, the fitted parameters, and how far the fit is from what it has not seen."""
    parts = []
    if result.matmuls:
        parts.append(_matmul_table(result.matmuls, stream))
    if result.runs:
        parts += [_run_table(result.runs, stream), _summary(result.runs, stream)]
    parts.append(_parameter_table(result, stream))
    return "\n".join(parts)


def _run_table(runs: Fit, stream: TextIO) -> str:
    columns = Columns(stream)
    columns.name("run")
    columns.number("measured ms", "predicted ms", "error", "before")
    columns.name("use")
    measured = milliseconds_column([item.measurement.measured_ms for item in runs.after])
    predicted = milliseconds_column([item.predicted_ms for item in runs.after])
    for item, before, ms, other in zip(runs.after, runs.before, measured, predicted, strict=True):
        use = "held out" if item.measurement.held_out else "fit"
        columns.row(item.measurement.name, ms, other, _signed(item.error), _signed(before.error), use)
    return rendered([columns.table()], stream)


def _summary(runs: Fit, stream: TextIO) -> str:
    lines = []
    for held_out, what in ((False, "fitted"), (True, "held out")):
        items = runs.of(held_out=held_out)
        if items:
            lines.append(
                f"{plural(len(items), 'run')} {what}: {_mean(items)} (before {_mean(_before(runs, held_out))})"
            )
    if not runs.of(held_out=True):
        lines.append("No run is held out: nothing says how well other runs are predicted.")
    return rendered([escape(line) for line in ["", *lines, ""]], stream)


def _before(runs: Fit, held_out: bool) -> Sequence[Residual]:
    return [item for item in runs.before if item.measurement.held_out == held_out]


def _mean(items: Sequence[Residual]) -> str:
    return f"mean absolute error {100 * mean_error(items):.1f} %"


def _matmul_table(fit: MatmulFit, stream: TextIO) -> str:
    columns = Columns(stream)
    columns.name("matrix product")
    columns.number("measured ms", "predicted ms", "error")
    columns.name("use")
    for item, predicted, error in zip(fit.matmuls, fit.predicted_ms, fit.errors, strict=True):
        name = f"{item.m} x {item.k} x {item.n}"
        use = "held out" if item.use == "hold out" else "fit"
        columns.row(name, f"{measured_ms(item):.4g}", f"{predicted:.4g}", _signed(error), use)
    return rendered([columns.table(), ""], stream)


def _parameter_table(result: CalibrationResult, stream: TextIO) -> str:
    columns = Columns(stream)
    columns.name("parameter")
    columns.number("fitted", "default", "accepted")
    if result.matmuls:
        stated = result.measurements.accelerator.compute_efficiency or DEFAULT_CALIBRATION.compute_efficiency
        columns.row("compute_efficiency", f"{result.matmuls.compute_efficiency:.4g}", f"{stated:.4g}", "0 to 1")
    for name, value in result.fitted.items():
        limits = PARAMETERS[name]
        default = getattr(DEFAULT_CALIBRATION, name)
        edge = " (at its limit)" if limits.is_limit(value) else ""
        columns.row(name, f"{value:.4g}{edge}", f"{default:.4g}", f"{limits.low:g} to {limits.high:g}")
    return rendered([columns.table(), ""], stream)


def _signed(error: float) -> str:
    return f"{100 * error:+.1f} %"
