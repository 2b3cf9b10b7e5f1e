"""Wrong units: refused where no device could do it, reported where it is odd."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from poseidon.errors import InputError
from poseidon.inputs.model import Model

from .conftest import DATA, Importer

A100 = "sailor/OPT-350_A100-40.json"


def scaled(tmp_path: Path, forward: float, backward: float, size: str | None = None) -> Path:
    data = json.loads((DATA / A100).read_text(encoding="utf-8"))
    for found, degrees in data.items():
        for layers in degrees.values() if size in (None, found) else ():
            for entry in layers.values():
                entry[0] *= forward
                entry[1] *= backward
    path = tmp_path / "OPT-350_A100-40.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_real_profiles_raise_no_alarm(import_files: Importer, opt_350: Model) -> None:
    for gpu in ("A100-40", "RTX-3090", "V100-16"):
        assert import_files(f"sailor/OPT-350_{gpu}.json", model=opt_350, seq_length=2048).warnings == ()


def test_times_that_no_device_can_have_are_refused(tmp_path: Path, import_files: Importer, opt_350: Model) -> None:
    """Milliseconds written as if they were a thousandth."""
    with pytest.raises(InputError) as error:
        import_files(scaled(tmp_path, 1e-3, 1e-3), model=opt_350, seq_length=2048)
    message = error.value.mistakes[0].message
    flops = (24 * 2048 * 1024**2 + 2 * 2048**2 * 1024) / 2
    assert f"would be {flops / 1.9057e-6 / 1e12:,.0f}"[:13] in message, "half the layer in 1.906 microseconds"
    assert "but the peak is 5,000: are unit (seconds for ms?), model and sequence length right?" in message


def test_the_clusters_peak_counts_where_it_is_known(tmp_path: Path, import_files: Importer, opt_350: Model) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(
        "name: c\naccelerators: {A100-40: {peak_tflops: 25, memory_gb: 40}}\n"
        "nodes: [{accelerator: A100-40, count: 1, devices: 4}]\n"
        "links: {intra_node: {bandwidth_gbps: 100, latency_us: 5}, inter_node: {bandwidth_gbps: 10, latency_us: 5}}\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="would be 26 TFLOPS, but the peak is 25"):
        import_files(A100, model=opt_350, seq_length=2048, cluster=cluster)


def test_milliseconds_taken_for_seconds_are_reported(tmp_path: Path, import_files: Importer, opt_350: Model) -> None:
    warnings = import_files(scaled(tmp_path, 1e4, 1e4), model=opt_350, seq_length=2048).warnings
    assert any(
        "ms for a dense layer's forward pass is 0.0" in said and "is the unit right?" in said for said in warnings
    )


def test_one_direction_in_another_unit_is_reported(tmp_path: Path, import_files: Importer, opt_350: Model) -> None:
    warnings = import_files(scaled(tmp_path, 1.0, 1e3), model=opt_350, seq_length=2048).warnings
    assert any("backward is 1,782.8 x forward of a dense layer; 1 to 3 is usual" in said for said in warnings)


def test_a_larger_batch_that_is_faster_is_reported(tmp_path: Path, import_files: Importer, opt_350: Model) -> None:
    warnings = import_files(scaled(tmp_path, 0.1, 0.1, "4"), model=opt_350, seq_length=2048).warnings
    assert any("less than 15.8 ms with micro-batches of 2" in said for said in warnings)


def test_layers_that_take_no_time_are_refused(tmp_path: Path, import_files: Importer, opt_350: Model) -> None:
    with pytest.raises(InputError, match=r"backward_ms of dense layers \(accelerator A100-40.* is 0"):
        import_files(scaled(tmp_path, 1.0, 0.0), model=opt_350, seq_length=2048)
