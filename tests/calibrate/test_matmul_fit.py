from __future__ import annotations

import itertools

import pytest

from poseidon.calibrate.matmul_fit import fit_matmuls, flops
from poseidon.calibrate.runs_model import Matmul
from poseidon.errors import InputError
from poseidon.inputs.accelerator import Accelerator

DEVICE = Accelerator(peak_tflops=300.0, memory_gb=80.0)
EFFICIENCY, SIDE = 0.71, 240.0


def product(m: int, k: int, n: int, use: str | None = None) -> Matmul:
    smallest = min(m, k, n)
    rate = DEVICE.peak_tflops * EFFICIENCY * smallest / (smallest + SIDE)
    return Matmul.model_validate({"m": m, "k": k, "n": n, "tflops": rate, "use": use})


PRODUCTS = [product(*sizes) for sizes in itertools.product((512, 4096), (1024, 8192), (256, 2048))]


def test_the_rates_that_made_the_times_are_found() -> None:
    found = fit_matmuls(DEVICE, PRODUCTS)

    assert found.compute_efficiency == pytest.approx(EFFICIENCY, rel=1e-3)
    assert found.half_rate_side == pytest.approx(SIDE, rel=1e-2)
    assert max(map(abs, found.errors)) < 1e-3


def test_a_time_says_the_same_as_a_rate() -> None:
    times = [
        Matmul(m=item.m, k=item.k, n=item.n, ms=flops(item) / (1e9 * item.tflops))
        for item in PRODUCTS
        if item.tflops is not None
    ]

    assert fit_matmuls(DEVICE, times).half_rate_side == pytest.approx(SIDE, rel=1e-2)


def test_what_is_held_out_is_not_seen() -> None:
    lie = Matmul(m=4096, k=4096, n=4096, tflops=1.0, use="hold out")

    found = fit_matmuls(DEVICE, [*PRODUCTS, lie])

    assert found.compute_efficiency == pytest.approx(EFFICIENCY, rel=1e-3)
    assert found.errors[-1] < -0.9


@pytest.mark.parametrize("fields", [{}, {"ms": 1.0, "tflops": 100.0}])
def test_a_product_has_either_a_time_or_a_rate(fields: dict[str, float]) -> None:
    with pytest.raises(InputError, match="1 x 2 x 3: either ms or tflops is expected"):
        fit_matmuls(DEVICE, [Matmul(m=1, k=2, n=3, **fields)])


def test_nothing_to_fit_is_refused() -> None:
    with pytest.raises(InputError, match="every row is held out"):
        fit_matmuls(DEVICE, [product(64, 64, 64, "hold out")])
