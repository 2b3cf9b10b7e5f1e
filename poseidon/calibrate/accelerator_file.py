"""The calibrated accelerator as a file that clusters can refer to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from poseidon.inputs.accelerator import Accelerator

FIGURES = 4
"""Significant figures of fitted values: more than any measurement supports."""


def calibrated(accelerator: Accelerator, fitted: dict[str, float], compute_efficiency: float | None) -> dict[str, Any]:
    """The accelerator's mapping with the fitted parameters; without what it leaves to the defaults."""
    data = accelerator.model_dump(mode="json", exclude_defaults=True)
    if compute_efficiency is not None:
        data["compute_efficiency"] = rounded(compute_efficiency)
    if fitted:
        data["calibration"] = {name: rounded(value) for name, value in fitted.items()}
    return data


def rounded(value: float) -> float:
    """A fitted value as files hold it."""
    return float(f"{value:.{FIGURES}g}")


def accelerator_text(data: dict[str, Any], comments: Sequence[str]) -> str:
    """The file: what the numbers come from as comments, then the accelerator."""
    lines = [f"# {comment}" for comment in comments]
    return "\n".join([*lines, yaml.safe_dump(data, sort_keys=False, default_flow_style=False)])
