from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poseidon.calibrate.runs_file import read_measurements
from poseidon.errors import InputError
from tests.calibrate.conftest import runs

Write = Callable[..., Path]


def mistakes(path: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_measurements(path)
    return [f"{item.field}: {item.message}" for item in caught.value.mistakes]


def test_every_run_becomes_one_job(write_runs: Write) -> None:
    found = read_measurements(write_runs())

    assert len(found.runs) == 8
    for run in found.runs:
        choice = run.job.choice
        assert run.name == f"tp{choice.layout.tp} pp{choice.num_stages} b{choice.micro_batch_size}"
        assert choice.dp == 2
        assert run.job.experiment.cluster.num_devices == 2 * choice.layout.tp * choice.num_stages
        assert run.job.layers == ((8 // choice.num_stages,),) * choice.num_stages


def test_every_third_run_is_held_out_where_none_says_what_it_is_for(write_runs: Write) -> None:
    assert [run.held_out for run in read_measurements(write_runs()).runs] == [False, False, True] * 2 + [False, False]


def test_what_the_runs_say_decides(write_runs: Write) -> None:
    rows = [{**row, "use": "hold out"} if index == 0 else row for index, row in enumerate(runs())]

    assert [run.held_out for run in read_measurements(write_runs(rows)).runs] == [True] + 7 * [False]


def test_runs_may_stand_in_a_csv_file(write_runs: Write, tmp_path: Path) -> None:
    lines = ["name,model,tp,micro_batch_size,global_batch_size,recompute,sequence_parallel,iteration_ms"]
    lines += ["one,small,2,1,8,full,false,12.5", "two,small,,1,8,,,"]
    (tmp_path / "runs.csv").write_text("\n".join([lines[0], lines[1]]) + "\n")

    (run,) = read_measurements(write_runs("runs.csv")).runs

    assert (run.measured_ms, run.job.choice.recompute) == (12.5, "full")
    assert not run.job.experiment.training.sequence_parallel

    (tmp_path / "runs.csv").write_text("\n".join(lines) + "\n")
    assert mistakes(write_runs("runs.csv")) == ["['line 3'].iteration_ms: is missing"]


def test_layers_may_be_shared_out_unevenly(write_runs: Write) -> None:
    rows = [{**runs()[1], "layers": [3, 5]}]

    assert read_measurements(write_runs(rows)).runs[0].job.layers == ((3,), (5,))


def test_an_accelerator_is_read_without_its_old_calibration(write_runs: Write) -> None:
    accelerator = {"peak_tflops": 300, "memory_gb": 80, "calibration": {"training_share": 0.5}}

    found = read_measurements(write_runs(accelerator=accelerator))

    assert found.accelerator.calibration.training_share is None


def changed(**fields: Any) -> list[dict[str, Any]]:
    return [{**runs()[0], **fields}]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rows": changed(model="smal")}, "runs[0].model: 'smal' is not known; did you mean 'small'? accepted: small"),
        ({"rows": changed(system="moon")}, "runs[0].system: 'moon' is not known; accepted: cluster"),
        ({"systems": None}, "systems: is missing: runs need the machines they ran on"),
        ({"rows": changed(iteration_ms=0)}, "runs[0].iteration_ms: 0 is too small: more than 0 is accepted"),
        ({"rows": changed(iteration_ms="fast")}, "runs[0].iteration_ms: expected a number, got the text 'fast'"),
        ({"rows": changed(recompute="some")}, "runs[0].training.recompute: 'some' is not known; accepted: none, "
         "selective, full, auto"),
        ({"rows": changed(use="maybe")}, "runs[0].use: 'maybe' is not known; accepted: fit, hold out"),
        ({"rows": changed(pp=3, dp=1)}, "runs[0]: 8 layers can't be shared out evenly over 3 parts of the pipeline"),
        ({"rows": changed(global_batch_size=3)}, "runs[0].search.fixed_dp: 2 x micro-batch divides"),
        ({"rows": []}, "runs: is missing: runs or matmuls are expected"),
        ({"rows": "nowhere.csv"}, ": no such file"),
        ({"accelerator": {"peak_tflops": 300}}, "accelerator.memory_gb: is missing"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_in_plain_words(write_runs: Write, changes: dict[str, Any], expected: str) -> None:
    found = mistakes(write_runs(**changes))

    assert any(line.startswith(expected) for line in found), found


def test_a_csv_file_with_too_many_cells_is_refused(write_runs: Write, tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("name,model\none,small,3\n")

    assert mistakes(write_runs("runs.csv")) == [": line 2 has more cells than there are columns"]
