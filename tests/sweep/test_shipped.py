"""The sweeps in configs/sweeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from poseidon.inputs.experiment import Experiment
from poseidon.sweep.grid import expand
from poseidon.sweep.outcome import RunStatus
from poseidon.sweep.plot import plot_plan
from poseidon.sweep.run import do_run
from poseidon.sweep.sweep import load_sweep

CONFIGS = Path(__file__).parents[2] / "configs"
SWEEPS = sorted((CONFIGS / "sweeps").glob("*.yaml"))


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_every_run_is_an_experiment_and_the_first_one_works(path: Path) -> None:
    sweep = load_sweep(path)
    runs = expand(sweep)
    assert plot_plan(sweep).x.name in {axis.name for axis in sweep.axes}
    assert [run.name for run in runs if not isinstance(run.content, Experiment)] == []
    assert len({run.identity for run in runs}) == len(runs)
    assert do_run(runs[0]).status is RunStatus.OPTIMAL
    assert path.read_text().startswith("# ")


def test_the_paper_sweep_is_setting_6_with_both_policies_and_an_end() -> None:
    runs = expand(load_sweep(CONFIGS / "sweeps" / "paper-scale.yaml"))
    experiments = [run.content for run in runs if isinstance(run.content, Experiment)]
    assert [(item.cluster.num_devices, item.search.policy) for item in experiments] == [
        (devices, policy) for devices in (96, 192, 288) for policy in ("exact", "paper")
    ]
    assert all(item.search.time_limit_s == 60 for item in experiments if item.search.policy == "paper")
    assert all(item.search.time_limit_s is None for item in experiments if item.search.policy == "exact")


def test_the_base_of_a_sweep_is_the_experiment_of_its_file() -> None:
    from poseidon.inputs.experiment import load_experiment

    runs = expand(load_sweep(CONFIGS / "sweeps" / "paper-scale.yaml"))
    for run, name in zip(runs[::2], ("96", "192", "288"), strict=True):
        assert isinstance(run.content, Experiment)
        alone = load_experiment(CONFIGS / "experiments" / f"setting6-{name}.yaml")
        assert run.content.model_copy(update={"files": {}}) == alone.model_copy(update={"files": {}})
