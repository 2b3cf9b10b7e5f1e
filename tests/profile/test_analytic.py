from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon.inputs.accelerator import Accelerator
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.links import Link
from poseidon.inputs.model import Model
from poseidon.inputs.training import Recompute
from poseidon.profile import LayerKey, RowKey, analytic_profile
from poseidon.profile.analytic import Device, device_of, embedding_row, head_row, layer_rows
from poseidon.profile.calibration import DEFAULT_CALIBRATION
from poseidon.profile.micro_batch import MicroBatch
from poseidon.profile.timing import device_rates

LAYER_TIMES = Path(__file__).parent / "data" / "korthikanti_layer_time.csv"
A100 = Accelerator(peak_tflops=312.0, memory_gb=80.0, memory_bandwidth_gb_per_s=2039.0, compute_efficiency=0.869)
NVLINK = Link(bandwidth_gbps=2400.0, latency_us=5.0)
DEVICE = Device(device_rates(A100, DEFAULT_CALIBRATION), NVLINK, 8, DEFAULT_CALIBRATION)


def published_layers() -> list[dict[str, str]]:
    with LAYER_TIMES.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize("row", published_layers(), ids=lambda row: row["experiment"])
def test_a_layer_takes_what_was_measured_on_a100_within_a_tenth(row: dict[str, str], gpt_22b: Model) -> None:
    name = row["experiment"].lower()
    recompute: Recompute = "full" if "full" in name else "selective" if "selective" in name else "none"
    batch = MicroBatch(4, 2048, 8, "sequence" in name, flash_attention=False)

    (layer,) = layer_rows(gpt_22b, "dense", batch, DEVICE, [recompute])

    assert layer.forward_ms == pytest.approx(float(row["forward_ms"]), rel=0.1)
    assert layer.backward_ms == pytest.approx(float(row["backward_ms"]), rel=0.1)


def test_times_of_the_tiny_layer_are_those_worked_out_by_hand(tiny_model: Model, round_device: Device) -> None:
    """5376 FLOPs at 1e6 FLOP/ms; backward twice that, 2.5 times for the 256 of the attention core."""
    none, selective, full = layer_rows(
        tiny_model, "dense", MicroBatch(1, 4), round_device, ["none", "selective", "full"]
    )

    assert none.forward_ms == pytest.approx(0.005376, rel=1e-3)
    assert none.backward_ms == pytest.approx(0.010752 + 0.000128, rel=1e-3)
    assert full.backward_ms == pytest.approx(none.backward_ms + none.forward_ms)
    assert none.backward_ms < selective.backward_ms < full.backward_ms
    assert none.weight_bytes == 2 * 656


def test_a_tensor_parallel_layer_adds_two_all_reduces_each_way(tiny_model: Model, round_device: Device) -> None:
    """64 bytes over 2 ranks at 1000 bytes/ms: 0.064 ms and two steps of 0.5 ms latency, for attention and MLP."""
    (row,) = layer_rows(tiny_model, "dense", MicroBatch(1, 4, 2), round_device, ["none"])

    assert row.forward_ms == pytest.approx(0.005376 / 2 + 2 * (0.064 + 1.0), rel=1e-3)
    assert row.backward_ms == pytest.approx((0.010752 + 0.000128) / 2 + 2 * (0.064 + 1.0), rel=1e-3)
    assert row.weight_bytes == 656


def test_the_head_computes_the_logits_and_holds_a_tied_matrix(tiny_model: Model, round_device: Device) -> None:
    tied = tiny_model.model_copy(update={"tied_embeddings": True})
    plain, shared = (head_row(model, MicroBatch(1, 4), round_device) for model in (tiny_model, tied))

    assert plain.forward_ms == pytest.approx(2 * 4 * 8 * 32 / 1e6, rel=1e-2)
    assert plain.weight_bytes == shared.weight_bytes == 2 * (8 * 32 + 8)
    assert plain.activation_bytes == 4 * 4 * 32 + 2 * (4 * 8 * 2)


def test_the_embedding_moves_bytes_but_computes_nothing(tiny_model: Model, round_device: Device) -> None:
    row = embedding_row(tiny_model, MicroBatch(1, 4), round_device)

    assert 0 < row.forward_ms < 1e-4
    assert row.weight_bytes == 2 * 8 * 32


@given(
    tp=st.sampled_from([1, 2, 4]),
    size=st.sampled_from([1, 2, 4]),
    heads=st.sampled_from([8, 16, 64]),
    sequence_parallel=st.booleans(),
)
def test_more_tp_takes_less_computing_and_less_memory(tp: int, size: int, heads: int, sequence_parallel: bool) -> None:
    model = Model(
        name="m",
        num_layers=2,
        hidden_size=64 * heads,
        ffn_hidden_size=256 * heads,
        num_attention_heads=heads,
        vocab_size=32_000,
    )
    instant = Device(DEVICE.rates, Link(bandwidth_gbps=1e6), 8, DEFAULT_CALIBRATION)
    few, many = (
        layer_rows(model, "dense", MicroBatch(size, 2048, degree, sequence_parallel), instant, ["none"])[0]
        for degree in (tp, 2 * tp)
    )

    assert many.forward_ms < few.forward_ms
    assert many.backward_ms < few.backward_ms
    assert many.activation_bytes < few.activation_bytes
    assert many.weight_bytes == few.weight_bytes / 2


@given(size=st.integers(1, 8), seq_length=st.sampled_from([512, 2048, 8192]))
def test_recomputation_costs_time_in_the_backward_pass_only(size: int, seq_length: int) -> None:
    model = Model(
        name="m", num_layers=2, hidden_size=1024, ffn_hidden_size=4096, num_attention_heads=16, vocab_size=32_000
    )
    none, selective, full = layer_rows(
        model, "dense", MicroBatch(size, seq_length, 2), DEVICE, ["none", "selective", "full"]
    )

    assert none.forward_ms == selective.forward_ms == full.forward_ms
    assert none.backward_ms < selective.backward_ms < full.backward_ms


def test_a_profile_has_a_row_for_every_type_degree_and_size(make_experiment: Callable[..., Experiment]) -> None:
    profile = analytic_profile(make_experiment())

    keys = {RowKey(name, tp, size) for name in ("fast", "slow") for tp in (1, 2) for size in (1, 2)}
    assert set(profile.embedding) == set(profile.head) == keys
    assert set(profile.layers) == {LayerKey(key, "dense", "none") for key in keys}


def test_a_faster_accelerator_has_the_shorter_rows(make_experiment: Callable[..., Experiment]) -> None:
    layers = analytic_profile(make_experiment(training={"seq_length": 4096}, model={"hidden_size": 512})).layers

    fast, slow = (layers[LayerKey(RowKey(name, 1, 1), "dense", "none")] for name in ("fast", "slow"))
    assert fast.forward_ms < slow.forward_ms
    assert fast.activation_bytes == slow.activation_bytes


def test_the_slowest_node_of_a_type_sets_its_link(make_experiment: Callable[..., Experiment]) -> None:
    nodes = [
        {"accelerator": "fast", "count": 1, "devices": 2},
        {"accelerator": "fast", "count": 1, "devices": 2, "links": {"intra_node": {"bandwidth_gbps": 100.0}}},
    ]
    cluster = make_experiment(cluster={"nodes": nodes}).cluster

    assert device_of(cluster, "fast").link.bandwidth_gbps == 100.0
