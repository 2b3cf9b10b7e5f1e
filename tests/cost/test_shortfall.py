from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from poseidon.cost import memory_shortfall
from poseidon.inputs.experiment import Experiment, load_experiment
from poseidon.profile import Profile

EXPERIMENTS = Path(__file__).parents[2] / "configs" / "experiments"
Make = Callable[..., Experiment]


def test_memory_is_not_what_binds_where_the_layers_fit(make_experiment: Make, profile: Profile) -> None:
    accelerators = {name: {"peak_tflops": 100.0, "memory_gb": 40.0} for name in ("fast", "slow")}

    assert memory_shortfall(make_experiment(cluster={"accelerators": accelerators}), profile) is None


def test_the_stage_that_lacks_least_is_named(make_experiment: Make, profile: Profile) -> None:
    """DP 1, TP 2: a layer takes 0.9 + in-flight x 0.25 GB; fast first holds 8.75 / 1.4 = 6 of 14 layers, slow 3 more.

    Five more are missing: each goes where it hurts least.
    """
    experiment = make_experiment(model={"num_layers": 14})
    short = memory_shortfall(experiment, profile)

    assert short is not None
    assert short.choice == "dp1 tp2 mbs1 1f1b"
    assert short.fitting_layers == 9
    assert short.total_layers == 14
    assert short.accelerator in ("fast", "slow")
    assert short.needed_bytes == short.limit_bytes + short.short_gb * 1e9
    assert 2.0 < short.short_gb < 4.0
    assert f"stage {short.stage} on {short.accelerator} would need" in str(short)
    assert f"short of {short.short_gb:.1f} GB" in str(short)


def test_a_schedule_that_holds_less_is_recommended(make_experiment: Make, profile: Profile) -> None:
    """A profile that was measured can't tell about recomputation, but a schedule or sharding it can."""
    experiment = make_experiment(training={"schedules": ["gpipe"]}).model_copy(update={"profile": "measured.json"})
    short = memory_shortfall(experiment, profile)

    assert short is not None
    assert short.remedies == ("training.schedules: [1f1b]",)
    assert str(short).endswith("A plan fits with training.schedules: [1f1b].")


def test_recomputation_is_recommended_where_it_is_enough() -> None:
    setting = load_experiment(EXPERIMENTS / "setting1.yaml", training={"schedules": ["gpipe"]})
    short = memory_shortfall(setting)

    assert short is not None
    assert "training.recompute: full" in short.remedies
    assert "training.recompute: selective" not in short.remedies


def test_what_no_setting_can_mend_is_said(make_experiment: Make, profile: Profile) -> None:
    experiment = make_experiment(model={"num_layers": 100}).model_copy(update={"profile": "measured.json"})

    assert "more memory or more devices are needed" in str(memory_shortfall(experiment, profile))
