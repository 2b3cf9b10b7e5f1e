"""The paper's settings: no policy has a faster plan than Poseidon where both may choose TP for each stage."""

from __future__ import annotations

from pathlib import Path

import pytest

from poseidon.compare.compare import compare
from poseidon.compare.entry import fits
from poseidon.inputs.experiment import load_experiment

EXPERIMENTS = Path(__file__).parent.parent.parent / "configs" / "experiments"


@pytest.mark.parametrize("setting", ["setting1", "setting4", "setting5"])
def test_poseidon_is_at_least_as_fast(setting: str) -> None:
    """Metis' best plan appears in the first second (docs/rivals.md), so three are enough for it here."""
    experiment = load_experiment(EXPERIMENTS / f"{setting}.yaml")
    ours = compare(experiment, ("exact", "exact-wide", "eq1"))
    rivals = compare(experiment, ("metis", "hexiscale"), time_limit_s=3)
    times = {}
    for entry in (*ours.entries, *rivals.entries):
        assert entry.pipeline is not None, entry.reason
        assert fits(entry.pipeline)
        times[entry.name] = entry.pipeline.iteration_time_ms
    assert {entry.name: entry.status for entry in ours.entries[:2]} == {"exact": "optimal", "exact-wide": "optimal"}
    assert times["exact"] <= times["eq1"] * (1 + 1e-9)
    assert times["exact-wide"] <= min(times.values()) * (1 + 1e-9)
