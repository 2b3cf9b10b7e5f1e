from __future__ import annotations

import pytest

from poseidon.inputs.accelerator import Accelerator
from poseidon.profile.calibration import Calibration
from poseidon.profile.operation import elementwise, matmul
from poseidon.profile.timing import backward_ms, device_rates, forward_ms

DEVICE = Accelerator(peak_tflops=100.0, memory_gb=16.0, memory_bandwidth_gb_per_s=1000.0, memory_efficiency=0.5)


def test_a_large_product_runs_at_its_share_of_the_peak() -> None:
    rates = device_rates(DEVICE, Calibration(compute_efficiency=0.8, training_share=0.5, half_rate_side=0.0))

    assert rates.matmul_flops_per_ms == pytest.approx(100e9 * 0.4)
    assert forward_ms([matmul("m", 1000, 1000, 1000)], rates) == pytest.approx(2e9 / 40e9 + rates.forward_overhead_ms)


def test_an_accelerator_that_states_its_efficiency_keeps_it() -> None:
    stated = DEVICE.model_copy(update={"compute_efficiency": 0.9})

    assert device_rates(stated, Calibration(training_share=1.0)).matmul_flops_per_ms == pytest.approx(90e9)


def test_a_product_with_a_side_of_the_half_rate_takes_twice_as_long() -> None:
    calibration = Calibration(half_rate_side=128.0, forward_overhead_us=0.0)
    small, large = matmul("small", 4096, 4096, 128), matmul("large", 4096, 4096, 10**9)
    rates = device_rates(DEVICE, calibration)

    per_flop = [forward_ms([op], rates) / op.forward_flops for op in (small, large)]

    assert per_flop[0] / per_flop[1] == pytest.approx(2 / (1 + 128 / 4096), rel=1e-3)


def test_an_elementwise_operation_is_bound_by_memory_bandwidth() -> None:
    rates = device_rates(DEVICE, Calibration(forward_overhead_us=0.0))
    moved = elementwise("norm", 5e8)

    assert forward_ms([moved], rates) == pytest.approx(1.0)  # 0.5 GB at half of 1000 GB/s
    assert backward_ms([moved], rates) == pytest.approx(1.5)


def test_a_product_with_few_rows_is_bound_by_reading_its_weights() -> None:
    rates = device_rates(DEVICE, Calibration(half_rate_side=0.0, forward_overhead_us=0.0))

    time = forward_ms([matmul("m", 1, 10_000, 10_000)], rates)

    assert time == pytest.approx(2 * 1e8 / 5e8, rel=1e-3)


def test_every_operation_of_the_forward_pass_costs_its_overhead() -> None:
    rates = device_rates(DEVICE, Calibration(forward_overhead_us=50.0))

    assert forward_ms([elementwise("a", 0.0)] * 4, rates) == pytest.approx(0.2)
    assert backward_ms([elementwise("a", 0.0)] * 4, rates) == 0.0
