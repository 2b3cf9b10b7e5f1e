"""The parameters that can be fitted: where each may lie, and which measurements tell something about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from poseidon.calibrate.measurement import Measurement
from poseidon.profile.calibration import Calibration


@dataclass(frozen=True)
class Parameter:
    """A field of `Calibration` with the range that a fit may choose from and how far it may sensibly stray.

    `spread` is in the parameter's own unit; a fit pays for every spread of distance from the starting value what an
    error of `PRIOR_ERROR` in one more measurement would cost, so that what the measurements don't tell stays as it was.
    """

    name: str
    low: float
    high: float
    spread: float

    def is_limit(self, value: float) -> bool:
        """Whether a fit ended at (or all but at) the end of the range."""
        return min(value - self.low, self.high - value) < 1e-3 * self.spread

    def value(self, calibration: Calibration) -> float:
        """The parameter's value in a calibration."""
        value: float = getattr(calibration, self.name)
        return value


RUNS_PER_PARAMETER = 3
"""Fewer runs a parameter and what two parameters explain alike (hidden and slow communication) is shared out by "
"chance."""
PRIOR_ERROR = 0.001
"""A tenth of a percent, less than any iteration time repeats within: it only breaks ties."""

PARAMETERS = {
    parameter.name: parameter
    for parameter in (
        Parameter("training_share", 0.05, 1.2, 0.2),
        Parameter("half_rate_side", 0.0, 2_000.0, 128.0),
        Parameter("attention_share", 0.05, 1.2, 0.2),
        Parameter("forward_overhead_us", 0.0, 1_000.0, 30.0),
        Parameter("collective_efficiency", 0.05, 1.0, 0.2),
        Parameter("backward_exposed_share", 0.0, 1.5, 0.5),
    )
}


def sensible_parameters(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """What the fitted runs can tell apart: one parameter for every three runs (rounded up), the most telling ones
    first.

    TP communication only where some run has TP, fused attention only where some run has it.
    """
    fitted = [item for item in measurements if not item.held_out]
    experiments = [item.job.experiment for item in fitted]
    names = ["training_share"]
    if any((item.search.fixed_tp or 1) > 1 for item in experiments):
        names += ["collective_efficiency", "backward_exposed_share"]
    names += ["half_rate_side", "forward_overhead_us"]
    if any(item.training.flash_attention for item in experiments):
        names.append("attention_share")
    return tuple(names[: max(1, ceil(len(fitted) / RUNS_PER_PARAMETER))])
