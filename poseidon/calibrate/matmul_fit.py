"""Fits the rate of matrix products: which part of the peak large ones reach, and how much slower small ones are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from poseidon.calibrate.fit import OUTLIER_ERROR, least_squares
from poseidon.calibrate.runs_model import Matmul
from poseidon.errors import InputError, Mistake
from poseidon.inputs.accelerator import Accelerator
from poseidon.profile.calibration import DEFAULT_CALIBRATION

LARGEST_SIDE = 100_000.0


@dataclass(frozen=True)
class MatmulFit:
    """The fitted rate, and each product with its predicted time."""

    compute_efficiency: float
    half_rate_side: float
    matmuls: tuple[Matmul, ...]
    predicted_ms: tuple[float, ...]

    @property
    def errors(self) -> tuple[float, ...]:
        """Predicted / measured - 1 of each product."""
        return tuple(
            predicted / measured_ms(item) - 1 for item, predicted in zip(self.matmuls, self.predicted_ms, strict=True)
        )


def flops(matmul: Matmul) -> float:
    """Floating-point operations of a product."""
    return 2.0 * matmul.m * matmul.k * matmul.n


def measured_ms(matmul: Matmul) -> float:
    """The measured time; raises InputError where the row says neither time nor rate, or both."""
    if (matmul.ms is None) == (matmul.tflops is None):
        name = f"{matmul.m} x {matmul.k} x {matmul.n}"
        raise InputError(Mistake("", "matmuls", f"{name}: either ms or tflops is expected"))
    return matmul.ms if matmul.ms is not None else flops(matmul) / (1e9 * (matmul.tflops or math.nan))


def fit_matmuls(accelerator: Accelerator, matmuls: Sequence[Matmul]) -> MatmulFit:
    """Least squares on logarithms over the products that are not held out.

    Raises InputError where none is left, MissingPackageError without SciPy.
    """
    seen = [(item, measured_ms(item)) for item in matmuls if item.use != "hold out"]
    if not seen:
        raise InputError(Mistake("", "matmuls", "every row is held out: at least one must be there to fit"))
    peak = accelerator.peak_tflops * 1e9

    def time_ms(item: Matmul, efficiency: float, side: float) -> float:
        smallest = min(item.m, item.k, item.n)
        return flops(item) / (peak * efficiency) * (smallest + side) / smallest

    start = [
        accelerator.compute_efficiency or DEFAULT_CALIBRATION.compute_efficiency,
        DEFAULT_CALIBRATION.half_rate_side,
    ]
    solution = least_squares()(
        lambda point: [math.log(time_ms(item, *point) / ms) for item, ms in seen],
        start,
        bounds=([1e-3, 0.0], [1.0, LARGEST_SIDE]),
        x_scale=[0.1, 100.0],
        loss="soft_l1",
        f_scale=OUTLIER_ERROR,
    )
    efficiency, side = (float(value) for value in solution.x)
    return MatmulFit(efficiency, side, tuple(matmuls), tuple(time_ms(item, efficiency, side) for item in matmuls))
