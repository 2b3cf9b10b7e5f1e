"""A training job with its measured iteration time, and what a set of parameters makes of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from poseidon.calibrate.prediction import Job
from poseidon.profile.analytic import analytic_profile
from poseidon.profile.calibration import Calibration


@dataclass(frozen=True)
class Measurement:
    """One measured run. `held_out` says that no fit may see it; `group` sorts runs into tables."""

    name: str
    job: Job
    measured_ms: float
    held_out: bool
    group: str = ""
    note: str = ""

    def predicted_ms(self, calibration: Calibration) -> float:
        """The iteration time with an analytic profile of these parameters."""
        return self.job.iteration_ms(analytic_profile(self.job.experiment, calibration=calibration))


@dataclass(frozen=True)
class Residual:
    """A run with its predicted time."""

    measurement: Measurement
    predicted_ms: float

    @property
    def error(self) -> float:
        """Predicted / measured - 1."""
        return self.predicted_ms / self.measurement.measured_ms - 1


def residuals(measurements: Iterable[Measurement], calibration: Calibration) -> tuple[Residual, ...]:
    """Every run with what the parameters predict for it."""
    return tuple(Residual(item, item.predicted_ms(calibration)) for item in measurements)


def mean_error(items: Sequence[Residual]) -> float:
    """The mean of the errors without their signs; NaN where there is none."""
    return sum(abs(item.error) for item in items) / len(items) if items else math.nan
