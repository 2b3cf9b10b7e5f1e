"""MindSpeed-LLM's published runs on Ascend 910B: iteration times after calibrating on half of them."""

from __future__ import annotations

from poseidon.calibrate.measurement import mean_error
from poseidon.validate.comparison import Comparison, Target
from poseidon.validate.fitted_runs import fitted, fitted_values, rows_of

SOURCE = (
    "MindSpeed-LLM v1.0.RC3.0 (github.com/Ascend/MindSpeed-LLM at bbccdce218): tokens/s of its README joined to "
    "the launch scripts of the same tag; 8 NPUs of an Atlas 900 A2"
)


def ascend() -> Comparison:
    """Iteration times of 7B and 13B models."""
    result = fitted("ascend.yaml")
    unseen = result.of(held_out=True)
    mean, held = mean_error(result.after), mean_error(unseen)
    return Comparison(
        name="ascend",
        title="MindSpeed-LLM on Ascend 910B: iteration time",
        source=SOURCE,
        basis="measured",
        rows=rows_of(result.after),
        targets=(
            Target("mean absolute error", mean, 0.10, "%"),
            Target("mean absolute error of the runs held out", held, 0.10, "%"),
        ),
        summary=f"{100 * mean:.1f} % on average, {100 * held:.1f} % on the {len(unseen)} runs held out; before the "
        f"calibration {100 * mean_error(result.before):.1f} %.",
        notes=(
            f"{fitted_values(result)} Every other run of those with MC2 and of those without is "
            "fitted: less than half.",
            "What the launch scripts say counts: MC2 (TP communication overlapped with matrix products), kernels "
            "that are not fused (rotary positions, gated activation, gradient accumulation), Mistral's sliding "
            "window of 4096, Gemma's heads of 256, Baichuan-13B without flash attention. The variant of the 910B "
            "is not stated; its peak is taken to be the 910B2's, so the fitted share of the peak is relative to "
            "that.",
            "The iteration times are arithmetic on a printed tokens/s; which script belongs to which row of the README "
            "is inferred from model, nodes and sequence length.",
        ),
    )
