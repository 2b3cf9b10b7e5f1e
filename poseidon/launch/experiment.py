"""From a job and a cluster to the experiment that is searched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poseidon.inputs.cluster import Cluster
from poseidon.inputs.experiment import ANALYTIC, Experiment
from poseidon.inputs.reading import read_document
from poseidon.inputs.validation import validate
from poseidon.launch.choices import Choices
from poseidon.launch.job import Job
from poseidon.output.export import FRAMEWORKS
from poseidon.output.export.request import parsed_version
from poseidon.profile.file import read_profile

LAYOUTS = {"megatron": (0, 13), "mindspeed-llm": (26, 1)}
"""First version whose interleaved schedule takes chunks of any size, by exporter (docs/export.md)."""


@dataclass(frozen=True)
class KnownCluster:
    """The cluster, and the hashes of the files that describe it (none where it was discovered)."""

    cluster: Cluster
    files: Mapping[str, str]
    notes: tuple[str, ...] = ()


def experiment_of(job: Job, known: KnownCluster, choices: Choices, profile: str | None) -> Experiment:
    """The experiment; InputError where its parts do not fit, with the flag's or the file's name."""
    files = dict(known.files)
    sizes = choices.micro_batch_sizes or tuple(job.training["micro_batch_sizes"])
    if profile is not None:
        files[Path(profile).name] = read_document(profile).sha256
        sizes = choices.micro_batch_sizes or _measured_sizes(profile, sizes)
    fixed = {"fixed_dp": choices.fixed_dp, "fixed_tp": choices.fixed_tp, "fixed_pp": choices.fixed_pp}
    search = {"target": "megatron", "time_limit_s": choices.time_limit_s, **fixed}
    training: dict[str, Any] = {
        **job.training,
        "micro_batch_sizes": sizes,
        "schedules": choices.schedules or _schedules(job),
        "recompute": choices.recompute or job.recomputation.mode,
    }
    if choices.num_chunks:
        training["num_chunks"] = choices.num_chunks
    data = {
        "name": f"{job.model['name']} on {known.cluster.name}"[:100],
        "model": dict(job.model),
        "cluster": known.cluster,
        "training": training,
        "profile": profile or ANALYTIC,
        "search": {key: value for key, value in search.items() if value is not None},
        "files": files,
    }
    return validate(Experiment, data, "the command's flags")


def _schedules(job: Job) -> tuple[str, ...]:
    """Those that the framework runs with the user's flags, and can be told in full."""
    framework = job.framework
    version = parsed_version(framework.export_version) if framework.export_version else None
    newest = FRAMEWORKS[framework.export_name].version
    has_layouts = (version or newest or ()) >= LAYOUTS[framework.export_name]
    if not has_layouts or job.arguments.has("--no-overlap-p2p-communication"):
        return ("1f1b",)
    return ("1f1b", "interleaved_1f1b")


def _measured_sizes(profile: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Of these micro-batch sizes the ones that the profile has; all where it has none, so that it is refused."""
    measured = {key.at.micro_batch_size for key in read_profile(profile).layers}
    return tuple(size for size in sizes if size in measured) or sizes
