"""The experiment of a run on alike devices: degrees, micro-batch size, schedule and recomputation are fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from poseidon.calibrate.runs_model import Run, System
from poseidon.inputs.accelerator import Accelerator
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.model import Model
from poseidon.inputs.validation import validate

SINGLE = {"micro_batch_size": "micro_batch_sizes", "schedule": "schedules", "num_chunks": "num_chunks"}
"""A run has one of what an experiment lists."""


def job_experiment(
    run: Run,
    model: Model,
    accelerator: Accelerator,
    system: System,
    settings: Mapping[str, Any],
    file: str,
    place: Sequence[str | int],
) -> Experiment:
    """The experiment; raises InputError for settings that it refuses, at their place in `file`."""
    devices = run.dp * run.tp * run.pp
    per_node = min(system.devices_per_node, devices)
    data = {
        "name": run.name,
        "model": model.model_dump(),
        "cluster": {
            "name": run.system or "system",
            "accelerators": {"device": accelerator.model_dump()},
            "nodes": [{"accelerator": "device", "count": -(-devices // per_node), "devices": per_node}],
            "links": system.links.model_dump(),
        },
        "training": training_fields(settings),
        "search": {"fixed_dp": run.dp, "fixed_tp": run.tp, "fixed_pp": run.pp},
    }
    return validate(Experiment, data, file, place)


def training_fields(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run as an experiment's `training`; more than one chunk means the interleaved schedule."""
    fields = {SINGLE.get(key, key): [value] if key in SINGLE else value for key, value in settings.items()}
    if settings.get("num_chunks", 1) == 1:
        fields.pop("num_chunks", None)
    else:
        fields.setdefault("schedules", ["interleaved_1f1b"])
    return fields
