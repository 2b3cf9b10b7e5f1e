"""A profile measured now, on this machine, with `poseidon profile`."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from poseidon.errors import InputError, MissingPackageError, Mistake
from poseidon.inputs.cluster import Cluster
from poseidon.launch.cache import cache_directory
from poseidon.launch.choices import Choices
from poseidon.launch.cluster_shape import node_groups
from poseidon.launch.job import Job
from poseidon.launch.launcher import LauncherCall
from poseidon.profile.file import read_profile
from poseidon.whole_file import write_whole_text

CPU_VENDOR = "cpu"
"""Vendor of accelerators that are processors: only they are measured where there is no GPU and no NPU."""


def measured_profile(job: Job, cluster: Cluster, call: LauncherCall, choices: Choices) -> str:
    """Path of the profile: measured before for the same, or measured now; InputError where that can't be.

    One process for each device of this node, as `torchrun -m poseidon.cli profile` is documented.
    """
    accelerator = _only_accelerator(cluster, call)
    if importlib.util.find_spec("torch") is None:
        raise MissingPackageError("torch", "profile")
    folder = cache_directory() / "profiles"
    words = _options(job, choices, accelerator)
    key = hashlib.sha256(repr((sorted(job.model.items(), key=str), words, cluster.num_devices)).encode()).hexdigest()
    target, model = folder / f"{key}.json", folder / f"{key}.model.yaml"
    if choices.use_cache and _is_profile(target):
        return str(target)
    write_whole_text(model, yaml.safe_dump(_plain(job.model)))
    is_cpu = cluster.accelerators[accelerator].vendor == CPU_VENDOR
    words += ["--device", "cpu" if is_cpu else _present_device(), "--model", str(model), "--out", str(target)]
    processes = str(cluster.num_devices)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", processes]
    command = [*launcher, "-m", "poseidon.cli", "profile", *words, "-q"]
    status = subprocess.run(command, stdout=sys.stderr, env=_environment(), check=False).returncode
    if status != 0:
        raise InputError(Mistake("--measure", "", f"poseidon profile failed with {status}; its output says why"))
    return str(target)


def _is_profile(path: Path) -> bool:
    """Whether a file that was kept is there and whole."""
    try:
        read_profile(path)
    except InputError:
        return False
    return True


def _only_accelerator(cluster: Cluster, call: LauncherCall) -> str:
    """The type that this machine can measure for the whole cluster."""
    if call.num_nodes > 1:
        message = (
            "measures on this machine alone, and every node needs the same profile; run poseidon profile on one node "
            "of each type, put the files together with --merge, and give every node --profile FILE"
        )
        raise InputError(Mistake("--measure", "", message))
    return node_groups(cluster)[0].accelerator


def _present_device() -> str:
    from poseidon.profile.measure.device import find_device

    kind = find_device("auto", 0).kind
    if kind == "cpu":
        message = "finds no GPU and no NPU on this machine; give --profile FILE, or plan with the analytic profile"
        raise InputError(Mistake("--measure", "", message))
    return kind


def _options(job: Job, choices: Choices, accelerator: str) -> list[str]:
    """The options of `poseidon profile` that the job needs."""
    training = job.training
    sizes = choices.micro_batch_sizes or tuple(training["micro_batch_sizes"])
    words = ["--accelerator", accelerator, "--seq-length", str(training["seq_length"])]
    words += ["--precision", training["precision"]]
    words += ["--sequence-parallel" if training["sequence_parallel"] else "--no-sequence-parallel"]
    words += [word for size in sizes for word in ("--micro-batch-size", str(size))]
    return [*words, "--recompute", choices.recompute or job.recomputation.mode]


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Without the tuples and mappings that YAML's safe writer has no word for."""
    return {key: dict(value) if isinstance(value, Mapping) else value for key, value in fields.items()}


def _environment() -> dict[str, str]:
    """This package is found whether it is installed or not."""
    root = str(Path(__file__).parents[2])
    path = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{path}" if path else root}
