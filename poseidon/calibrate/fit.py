"""Least squares on the logarithms of predicted / measured times, over the runs that are not held out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from poseidon.calibrate.measurement import Measurement, Residual, residuals
from poseidon.calibrate.parameters import PARAMETERS, PRIOR_ERROR, Parameter
from poseidon.errors import InputError, MissingPackageError, Mistake
from poseidon.profile.calibration import DEFAULT_CALIBRATION, Calibration

OUTLIER_ERROR = 0.05
"""Errors beyond this count less than with their square (SciPy's soft_l1): one odd run must not bend all others."""
STEP = 1e-4
"""Of the numerical derivatives, as a share of a parameter's value: predictions are piecewise smooth."""


TOLERANCE = 1e-12
"""SciPy's 1e-8 stops on the flat floor where two parameters explain nearly the same."""


@dataclass(frozen=True)
class Fit:
    """A calibration, the names of what was fitted, and every run with its error before and after."""

    calibration: Calibration
    fitted: tuple[str, ...]
    before: tuple[Residual, ...]
    after: tuple[Residual, ...]

    def of(self, *, held_out: bool) -> tuple[Residual, ...]:
        """The runs after the fit: those that it was made from, or those that it has not seen."""
        return tuple(item for item in self.after if item.measurement.held_out == held_out)


def fit(measurements: Sequence[Measurement], names: Sequence[str], start: Calibration = DEFAULT_CALIBRATION) -> Fit:
    """Fits the named parameters, starting from (and leaning towards) `start`.

    Raises InputError for an unknown parameter or where every run is held out, MissingPackageError without SciPy.
    """
    parameters = _parameters(names)
    seen = [item for item in measurements if not item.held_out]
    if not seen:
        raise InputError(Mistake("", "runs", "every run is held out: at least one must be there to fit"))
    origin = [parameter.value(start) / parameter.spread for parameter in parameters]
    solution = least_squares()(
        lambda point: _errors(seen, parameters, start, point, origin),
        origin,
        bounds=([item.low / item.spread for item in parameters], [item.high / item.spread for item in parameters]),
        loss="soft_l1",
        f_scale=OUTLIER_ERROR,
        diff_step=STEP,
        x_scale="jac",
        ftol=TOLERANCE,
        xtol=TOLERANCE,
        gtol=TOLERANCE,
    )
    found = _calibration(parameters, start, solution.x)
    return Fit(found, tuple(names), residuals(measurements, start), residuals(measurements, found))


def _parameters(names: Sequence[str]) -> list[Parameter]:
    unknown = [name for name in names if name not in PARAMETERS]
    if unknown or not names:
        message = f"{unknown[0]!r} can't be fitted" if unknown else "is empty"
        raise InputError(Mistake("", "fit", f"{message}; accepted: {', '.join(PARAMETERS)}"))
    return [PARAMETERS[name] for name in names]


def _calibration(parameters: Sequence[Parameter], start: Calibration, point: Sequence[float]) -> Calibration:
    changes = {item.name: float(value) * item.spread for item, value in zip(parameters, point, strict=True)}
    return replace(start, **changes)


def _errors(
    seen: Sequence[Measurement],
    parameters: Sequence[Parameter],
    start: Calibration,
    point: Sequence[float],
    origin: Sequence[float],
) -> list[float]:
    """One for each run, then one for each parameter's distance from where it started."""
    calibration = _calibration(parameters, start, point)
    errors = [math.log(item.predicted_ms(calibration) / item.measured_ms) for item in seen]
    return errors + [PRIOR_ERROR * (value - first) for value, first in zip(point, origin, strict=True)]


def least_squares() -> Any:
    """SciPy's least squares; raises MissingPackageError where SciPy is not installed."""
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise MissingPackageError("scipy", "calibrate") from None
    return least_squares
