from __future__ import annotations

from dataclasses import replace

import pytest

from poseidon.calibrate.fit import fit
from poseidon.calibrate.measurement import Measurement, mean_error, residuals
from poseidon.calibrate.parameters import PARAMETERS, sensible_parameters
from poseidon.errors import InputError
from poseidon.profile.calibration import DEFAULT_CALIBRATION
from tests.calibrate.conftest import TRUE

FITTED = ("training_share", "collective_efficiency", "half_rate_side")
Runs = tuple[Measurement, ...]


def test_the_parameters_that_made_the_times_are_found(synthetic: Runs) -> None:
    result = fit(synthetic, FITTED)

    assert mean_error(result.before) > 0.15
    assert mean_error(result.after) < 2e-3
    for name in FITTED:
        assert getattr(result.calibration, name) == pytest.approx(getattr(TRUE, name), rel=0.1), name


def test_what_is_not_fitted_stays_as_it_was(synthetic: Runs) -> None:
    result = fit(synthetic, ["training_share"])

    assert replace(result.calibration, training_share=DEFAULT_CALIBRATION.training_share) == DEFAULT_CALIBRATION


def test_a_fit_never_sees_what_is_held_out(synthetic: Runs) -> None:
    marked = [replace(item, held_out=index >= 5) for index, item in enumerate(synthetic)]
    lies = [replace(item, measured_ms=17.0 * item.measured_ms) if item.held_out else item for item in marked]

    honest, deceived = fit(marked, FITTED[:2]), fit(lies, FITTED[:2])

    assert deceived.calibration == honest.calibration
    assert len(honest.of(held_out=True)) == 3
    assert mean_error(deceived.of(held_out=True)) > 0.9 > mean_error(honest.of(held_out=True))


def test_one_odd_run_does_not_bend_the_others(synthetic: Runs) -> None:
    odd = (replace(synthetic[0], measured_ms=3 * synthetic[0].measured_ms), *synthetic[1:])

    result = fit(odd, ["training_share", "collective_efficiency"])
    plain = fit(synthetic, ["training_share", "collective_efficiency"])

    others = [item for item in result.after if item.measurement.name != odd[0].name]
    assert mean_error(others) < mean_error(plain.after) + 0.02


def test_a_parameter_that_no_run_tells_about_stays_at_its_default(synthetic: Runs) -> None:
    alone = [item for item in synthetic if item.name.startswith("tp1 ")]

    result = fit(alone, ["training_share", "collective_efficiency"])

    assert result.calibration.collective_efficiency == pytest.approx(DEFAULT_CALIBRATION.collective_efficiency)


def test_one_parameter_for_three_runs(synthetic: Runs) -> None:
    def parameters(num_fitted: int) -> tuple[str, ...]:
        return sensible_parameters([replace(run, held_out=i >= num_fitted) for i, run in enumerate(synthetic)])

    assert [len(parameters(count)) for count in (1, 3, 4, 7, 8)] == [1, 1, 2, 3, 3]
    assert parameters(4)[0] == "training_share"
    without_tp = [item for item in synthetic if item.name.startswith("tp1")]
    assert "collective_efficiency" not in sensible_parameters(without_tp)


@pytest.mark.parametrize("names", [[], ["speed"]])
def test_parameters_that_cannot_be_fitted_are_refused(synthetic: Runs, names: list[str]) -> None:
    with pytest.raises(InputError, match="accepted: training_share"):
        fit(synthetic, names)


def test_nothing_to_fit_is_refused(synthetic: Runs) -> None:
    with pytest.raises(InputError, match="every run is held out"):
        fit([replace(item, held_out=True) for item in synthetic], ["training_share"])


def test_every_parameter_is_a_field_within_its_limits() -> None:
    for name, parameter in PARAMETERS.items():
        assert parameter.low <= getattr(DEFAULT_CALIBRATION, name) <= parameter.high


def test_an_error_is_predicted_over_measured(synthetic: Runs) -> None:
    (item,) = residuals([replace(synthetic[0], measured_ms=2 * synthetic[0].predicted_ms(TRUE))], TRUE)

    assert item.error == pytest.approx(-0.5)
