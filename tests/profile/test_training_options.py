"""What the options of a training job change in the analytic profile, worked out by hand on the tiny model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from poseidon.errors import InputError
from poseidon.inputs.accelerator import Accelerator
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.model import Model
from poseidon.profile import LayerKey, RowKey, analytic_profile
from poseidon.profile.analytic import Device, layer_rows
from poseidon.profile.attention_core import attended_tokens
from poseidon.profile.calibration import DEFAULT_CALIBRATION, calibration_of
from poseidon.profile.layer import layer_operations
from poseidon.profile.micro_batch import MicroBatch

Make = Callable[..., Experiment]


def test_a_sliding_window_attends_to_the_window_less_its_ramp(tiny_model: Model) -> None:
    """8 tokens, window 4: queries see 1, 2, 3, 4, 4, 4, 4, 4 tokens; the formula leaves out half a token of the
    diagonal, as that of the whole sequence does."""
    windowed = tiny_model.model_copy(update={"sliding_window": 4})

    assert attended_tokens(tiny_model, 8) == 4.0
    assert attended_tokens(windowed, 8) == (1 + 2 + 3 + 4 * 5) / 8 - 0.5 + 0.5 / 2
    assert attended_tokens(windowed, 4) == attended_tokens(tiny_model, 4) == 2.0


@pytest.mark.parametrize(
    ("option", "name", "fused", "unfused"),
    [("fused_rotary", "rotary", 2, 10), ("fused_activation", "mlp activation", 3, 5)],
)
def test_kernels_that_are_not_fused_move_more(
    tiny_model: Model, option: str, name: str, fused: int, unfused: int
) -> None:
    def moved(batch: MicroBatch) -> float:
        return next(op.forward_bytes for op in layer_operations(tiny_model, "dense", batch) if op.name == name)

    batch = MicroBatch(1, 4)

    assert moved(replace(batch, **{option: False})) / moved(batch) == pytest.approx(unfused / fused)


def test_overlapped_communication_shows_one_piece(tiny_model: Model, round_device: Device) -> None:
    """Two regions at TP 2: 2 x (2 x 0.5 ms + 64 / 1000 ms) = 2.128 ms; the products take far less than that."""
    plain, overlapped = (
        layer_rows(tiny_model, "dense", MicroBatch(1, 4, 2, tp_overlap=overlap), round_device, ["none"])[0]
        for overlap in (False, True)
    )
    products_ms = 2 * 4 * 640 / 2 / 1e6  # 640 weights in matrices, a rate of 1e6 FLOP/ms

    hidden = products_ms / 2
    assert plain.forward_ms - overlapped.forward_ms == pytest.approx(hidden)
    assert plain.backward_ms - overlapped.backward_ms == pytest.approx(2 * hidden)


def test_at_most_all_pieces_but_one_are_hidden(tiny_model: Model, round_device: Device) -> None:
    slow = replace(round_device, rates=replace(round_device.rates, matmul_flops_per_ms=1.0))
    plain, overlapped = (
        layer_rows(tiny_model, "dense", MicroBatch(1, 4, 2, tp_overlap=overlap), slow, ["none"])[0]
        for overlap in (False, True)
    )

    assert plain.forward_ms - overlapped.forward_ms == pytest.approx(2.128 / 2)


@pytest.mark.parametrize(
    ("training", "step_bytes"),
    [
        ({}, 28 + 12 + 4 + 6),
        ({"gradient_precision": "bf16"}, 28 + 12 + 2 + 6 + 6),
        ({"precision": "fp16", "gradient_precision": "fp16"}, 28 + 12 + 2 + 6 + 8 + 6),
    ],
)
def test_the_optimizer_step_moves_its_bytes_at_the_memory_bandwidth(
    make_experiment: Make, training: dict[str, Any], step_bytes: int
) -> None:
    """656 parameters a layer at TP 1; `fast` has 4 x 200 GB/s, 80 % of which are reached: 6.4e8 bytes/ms."""
    at = LayerKey(RowKey("fast", 1, 1), "dense", "none")

    without = analytic_profile(make_experiment(training=training))
    counted = analytic_profile(make_experiment(training=training | {"optimizer_step": True}))

    assert without.layers[at].update_ms == 0.0
    assert counted.layers[at].update_ms == pytest.approx(656 * step_bytes / 6.4e8)
    assert counted.layers[at].forward_ms == without.layers[at].forward_ms


def test_gradients_that_are_added_up_apart_take_a_pass(make_experiment: Make) -> None:
    """Reads 2 bytes, reads and writes 4, for each of 656 parameters."""
    at = LayerKey(RowKey("fast", 1, 1), "dense", "none")

    fused, apart = (
        analytic_profile(make_experiment(training={"fused_gradient_accumulation": fused})).layers[at]
        for fused in (True, False)
    )

    assert apart.backward_ms - fused.backward_ms == pytest.approx(656 * 10 / 6.4e8)


def test_fp32_needs_a_measured_profile(make_experiment: Make) -> None:
    with pytest.raises(InputError, match="use bf16 or fp16, or give a profile file"):
        analytic_profile(make_experiment(training={"precision": "fp32"}))


def test_attention_without_fusion_is_an_option(make_experiment: Make) -> None:
    at = LayerKey(RowKey("fast", 1, 1), "dense", "none")

    fused, apart = (
        analytic_profile(make_experiment(training={"flash_attention": fused})).layers[at] for fused in (True, False)
    )

    assert apart.activation_bytes > fused.activation_bytes


def test_an_accelerator_brings_its_own_calibration(make_experiment: Make) -> None:
    accelerators = make_experiment().cluster.model_dump()["accelerators"]
    accelerators["fast"]["calibration"] = {"training_share": 0.425, "forward_overhead_us": 0.0}
    experiment = make_experiment(cluster={"accelerators": accelerators})

    found = calibration_of(experiment.cluster.accelerators["fast"])

    assert found == replace(DEFAULT_CALIBRATION, training_share=0.425, forward_overhead_us=0.0)
    assert calibration_of(Accelerator(peak_tflops=1.0, memory_gb=1.0)) == DEFAULT_CALIBRATION
    plain, own = (analytic_profile(item) for item in (make_experiment(), experiment))
    slow, fast = (LayerKey(RowKey(name, 1, 1), "dense", "none") for name in ("slow", "fast"))
    assert own.layers[slow] == plain.layers[slow]
    assert own.layers[fast].forward_ms != plain.layers[fast].forward_ms
