"""Megatron-LM's 22B and 175B models on A100 (Korthikanti et al. 2022): iteration times from a calibrated profile."""

from __future__ import annotations

from poseidon.calibrate.measurement import mean_error
from poseidon.validate.comparison import Comparison, Target
from poseidon.validate.fitted_runs import fitted, fitted_values, of_group, rows_of

SOURCE = "Korthikanti et al. 2022 (arXiv 2205.05198), tables 3 and 5, section 6.3: A100 80 GB of Selene"


def korthikanti() -> Comparison:
    """Iteration times of both models with full and with selective recomputation."""
    result = fitted("a100.yaml")
    items = of_group(result, "Korthikanti")
    unseen = [item for item in items if item.measurement.held_out]
    mean, held = mean_error(items), mean_error(unseen)
    return Comparison(
        name="korthikanti",
        title="Megatron-LM 22B and 175B on A100: iteration time",
        source=SOURCE,
        basis="measured",
        rows=rows_of(items, {"22B": "22B", "175B": "175B"}),
        targets=(
            Target("mean absolute error", mean, 0.05, "%"),
            Target("mean absolute error of the runs held out", held, 0.05, "%"),
        ),
        summary=f"{100 * mean:.1f} % on average; {100 * held:.1f} % on the {len(unseen)} runs held out.",
        notes=(
            f"{fitted_values(result)} The same calibration as vTrain's.",
            "The optimizer's step counts: the paper's own table 4 leaves 114 and 126 ms of the 22B model's "
            "iterations outside its 48 layers (1420 - 48 x 27.2 and 1100 - 48 x 20.3 ms); 62 bytes a parameter at "
            "the memory's speed are 104 ms of that.",
        ),
    )
