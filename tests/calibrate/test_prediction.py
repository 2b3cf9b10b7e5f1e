from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from poseidon import find_plan
from poseidon.calibrate.prediction import job_of
from poseidon.calibrate.serial_transfers import with_serial_transfers
from poseidon.errors import InputError
from poseidon.inputs.experiment import Experiment, load_experiment
from poseidon.profile import analytic_profile
from poseidon.simulate import stage_times

CLUSTER = {
    "name": "alike",
    "accelerators": {"device": {"peak_tflops": 100.0, "memory_gb": 32.0}},
    "nodes": [{"accelerator": "device", "count": 2, "devices": 2}],
}


@pytest.fixture
def experiment(write_experiment: Callable[..., Any]) -> Callable[..., Experiment]:
    """The shared example on four alike devices, with everything fixed; keyword arguments change its search."""

    def make(**search: Any) -> Experiment:
        training = {"micro_batch_sizes": [1]}
        fixed = {"fixed_dp": 1, "fixed_tp": 2, "fixed_pp": 2} | search
        return load_experiment(write_experiment(cluster=CLUSTER, training=training, search=fixed))

    return make


def test_a_prediction_is_what_the_plan_says(experiment: Callable[..., Experiment]) -> None:
    asked = experiment()
    plan = find_plan(asked)
    layers = tuple(stage.layers for stage in plan.pipeline.stages)

    job = job_of(asked, layers)

    profile = analytic_profile(asked)
    assert job.iteration_ms(profile) == pytest.approx(plan.pipeline.iteration_time_ms, rel=1e-12)
    assert [stage.total_bytes for stage in job.memories(profile)] == pytest.approx(
        [stage.memory.total_bytes for stage in plan.pipeline.stages]
    )


def test_layers_are_shared_out_evenly(experiment: Callable[..., Experiment]) -> None:
    assert job_of(experiment()).layers == ((4,), (4,))


def test_an_experiment_that_leaves_a_choice_is_refused(experiment: Callable[..., Experiment]) -> None:
    with pytest.raises(InputError, match="is not one training job"):
        job_of(experiment(fixed_dp=None, fixed_pp=None))


def test_a_stage_that_stands_still_for_messages_takes_them_as_its_own_time() -> None:
    """Three stages; messages up take 1, 2 ms, down 10, 20 ms (to stage 0 and to stage 1)."""
    times = stage_times(
        [[5.0], [6.0], [7.0]],
        [[50.0], [60.0], [70.0]],
        send_forward_ms=[1.0, 2.0, 0.0],
        send_backward_ms=[0.0, 10.0, 20.0],
        all_reduce_ms=[3.0, 4.0, 5.0],
    )

    serial = with_serial_transfers(times)

    assert serial.forward_ms[:, 0].tolist() == [6.0, 9.0, 9.0]
    assert serial.backward_ms[:, 0].tolist() == [60.0, 90.0, 90.0]
    assert not np.any(serial.send_forward_ms)
    assert not np.any(serial.send_backward_ms)
    assert serial.all_reduce_ms.tolist() == [3.0, 4.0, 5.0]


def test_serial_transfers_take_longer(experiment: Callable[..., Experiment]) -> None:
    asked = experiment()
    profile = analytic_profile(asked)

    overlapped, serial = (job_of(asked, None, kind).iteration_ms(profile) for kind in ("overlapped", "serial"))

    assert serial > overlapped
