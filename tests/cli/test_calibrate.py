from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.inputs.accelerator import Accelerator
from poseidon.validate.data_files import DATA


def test_a_file_of_runs_becomes_an_accelerator_that_clusters_can_refer_to(
    cli: Any, write_experiment: Any, tmp_path: Path
) -> None:
    ran = cli("calibrate", DATA / "ascend.yaml", "--out", tmp_path / "ascend.yaml")

    assert (ran.status, ran.err) == (0, f"written: {tmp_path / 'ascend.yaml'}\n")
    assert "7 runs held out: mean absolute error" in ran.out
    written = yaml.safe_load((tmp_path / "ascend.yaml").read_text())
    accelerator = Accelerator.model_validate(written)
    assert accelerator.calibration.training_share == written["calibration"]["training_share"] < 0.85

    def predicted(reference: Any) -> float:
        cluster = {
            "name": "one",
            "accelerators": {"npu": reference},
            "nodes": [{"accelerator": "npu", "count": 1, "devices": 4}],
        }
        fixed = {"fixed_dp": 1, "fixed_tp": 4}
        path = write_experiment(cluster=cluster, training={"micro_batch_sizes": [1]}, search=fixed)
        return float(cli("search", path, "--json", "-q").data["iteration_time_ms"])

    plain = {key: value for key, value in written.items() if key != "calibration"}
    assert predicted(str(tmp_path / "ascend.yaml")) > 1.05 * predicted(plain)


def test_the_result_for_programs_says_what_was_held_out(cli: Any) -> None:
    data = cli("calibrate", DATA / "ascend.yaml", "--json", "-q", "--fit", "training_share").data

    assert list(data["calibration"]) == ["training_share"]
    assert [run["use"] for run in data["runs"]].count("hold out") == 7
    assert data["mean_error_held_out"] == pytest.approx(
        sum(abs(run["error"]) for run in data["runs"] if run["use"] == "hold out") / 7
    )


def test_matrix_products_come_first(cli: Any, tmp_path: Path) -> None:
    rows = [{"m": size, "k": 4096, "n": 4096, "tflops": 150.0 * size / (size + 100)} for size in (256, 1024, 4096)]
    path = tmp_path / "products.yaml"
    path.write_text(yaml.safe_dump({"accelerator": {"peak_tflops": 200, "memory_gb": 32}, "matmuls": rows}))

    ran = cli("calibrate", path)

    accelerator = yaml.safe_load(ran.out[ran.out.index("# Calibrated") :])
    assert accelerator["compute_efficiency"] == pytest.approx(0.75, rel=0.01)
    assert accelerator["calibration"] == {"half_rate_side": pytest.approx(100.0, rel=0.05)}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("accelerator: {peak_tflops: 1, memory_gb: 1}\nrun: []\n", "unknown key 'run'; did you mean 'runs'?"),
        ("accelerator: nowhere.yaml\nmatmuls: [{m: 1, k: 1, n: 1, ms: 1}]\n", "nowhere.yaml: no such file"),
    ],
)
def test_a_wrong_file_is_one_line_and_status_2(cli: Any, tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "runs.yaml"
    path.write_text(content)

    ran = cli("calibrate", path)

    assert ran.status == 2
    assert len(ran.mistakes) == 1
    assert message in ran.mistakes[0]


def test_a_folder_that_is_not_there_is_told_of_before_the_fit(cli: Any, tmp_path: Path) -> None:
    ran = cli("calibrate", DATA / "ascend.yaml", "--out", tmp_path / "none" / "x.yaml")

    assert (ran.status, ran.out) == (2, "")
    assert "cannot be written: there is no folder" in ran.mistakes[0]


def test_a_parameter_at_its_limit_is_marked(cli: Any, tmp_path: Path) -> None:
    """A run that is far faster than the peak allows."""
    text = (DATA / "ascend.yaml").read_text()
    head, _, _ = text.partition("runs: ")
    run = "name: wrong, model: llama-7b, pp: 8, micro_batch_size: 4, global_batch_size: 256, seq_length: 2048"
    runs = f"runs: [{{{run}, iteration_ms: 10}}]\n"
    path = tmp_path / "runs.yaml"
    path.write_text(head + runs)

    ran = cli("calibrate", path, "--fit", "training_share")

    assert "1.2 (at its limit)" in ran.out
    assert "No run is held out" in ran.out
