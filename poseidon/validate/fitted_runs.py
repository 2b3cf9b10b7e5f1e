"""The comparisons that fit one calibration to a few runs of a data file and predict the others."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from poseidon.calibrate.fit import Fit, fit
from poseidon.calibrate.measurement import Residual
from poseidon.calibrate.parameters import sensible_parameters
from poseidon.calibrate.runs_file import read_measurements
from poseidon.validate.comparison import Row
from poseidon.validate.data_files import DATA


@lru_cache(maxsize=8)
def fitted(name: str) -> Fit:
    """The fit of a data file, as `poseidon calibrate` makes it."""
    measurements = read_measurements(DATA / name)
    return fit(measurements.runs, measurements.fit or sensible_parameters(measurements.runs))


def rows_of(items: Iterable[Residual], groups: dict[str, str] | None = None) -> tuple[Row, ...]:
    """Rows of a comparison; `groups` maps the beginning of a run's name to its group."""
    return tuple(
        Row(
            label=item.measurement.name,
            predicted=item.predicted_ms,
            observed=item.measurement.measured_ms,
            unit="ms",
            group=next(
                (group for start, group in (groups or {}).items() if item.measurement.name.startswith(start)), ""
            ),
            held_out=item.measurement.held_out,
            note=item.measurement.note,
        )
        for item in items
    )


def of_group(result: Fit, group: str) -> tuple[Residual, ...]:
    """The runs of one group after the fit."""
    return tuple(item for item in result.after if item.measurement.group == group)


def fitted_values(result: Fit) -> str:
    """The fitted parameters as a note says them."""
    values = ", ".join(f"{name} {getattr(result.calibration, name):.3g}" for name in result.fitted)
    count = sum(not item.measurement.held_out for item in result.after)
    return f"Fitted to {count} of {len(result.after)} runs: {values}."
