"""Checks that the parts of an experiment fit together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from poseidon.inputs.file_model import Problem, shown

if TYPE_CHECKING:
    from poseidon.inputs.cluster import Cluster
    from poseidon.inputs.experiment import Experiment


def experiment_problems(experiment: Experiment) -> Iterator[Problem]:
    """All problems between the parts of an experiment."""
    yield from _sequence_problems(experiment)
    yield from _fixed_degree_problems(experiment)
    if not experiment.search.allow_idle:
        yield from _communication_problems(experiment.cluster)


def _sequence_problems(experiment: Experiment) -> Iterator[Problem]:
    longest, seq_length = experiment.model.max_position_embeddings, experiment.training.seq_length
    if longest is not None and seq_length > longest:
        message = f"{seq_length} is longer than the model's learned positions: at most {longest} is accepted"
        yield Problem(("training", "seq_length"), message)


def _fixed_degree_problems(experiment: Experiment) -> Iterator[Problem]:
    model, cluster, search = experiment.model, experiment.cluster, experiment.search
    dp, tp, pp = search.fixed_dp, search.fixed_tp, search.fixed_pp
    if tp is not None and model.num_attention_heads % tp:
        message = f"{tp} does not divide the model's {model.num_attention_heads} attention heads"
        yield Problem(("search", "fixed_tp"), message)
    largest = max(group.devices for group in cluster.nodes)
    if tp is not None and tp > largest:
        message = f"a TP group stays in one node, and {tp} is more than the {largest} devices of the largest node"
        yield Problem(("search", "fixed_tp"), message)
    if pp is not None and pp > model.num_layers:
        yield Problem(("search", "fixed_pp"), f"{pp} stages are more than the model's {model.num_layers} layers")
    batch, sizes = experiment.training.global_batch_size, experiment.training.micro_batch_sizes
    if dp is not None and all(batch % (dp * size) for size in sizes):
        message = f"{dp} x micro-batch divides the global batch {batch} for none of micro_batch_sizes {list(sizes)}"
        yield Problem(("search", "fixed_dp"), message)
    needed = (dp or 1) * (tp or 1) * (pp or 1)
    if needed > cluster.num_devices:
        message = f"the fixed degrees need {needed} devices; the cluster has {cluster.num_devices}"
        yield Problem(("search",), message)


def _communication_problems(cluster: Cluster) -> Iterator[Problem]:
    """Every device is in the pipeline, so neighbours that can talk must connect all vendors."""
    groups = {cluster.accelerator_of(group).vendor: group for group in reversed(cluster.nodes)}
    first = cluster.accelerator_of(cluster.nodes[0]).vendor
    reached, pending = {first}, [first]
    while pending:
        current = groups[pending.pop()]
        for vendor in groups.keys() - reached:
            if cluster.can_communicate(current, groups[vendor]):
                reached.add(vendor)
                pending.append(vendor)
    apart = [vendor for vendor in groups if vendor not in reached]
    if apart:
        message = (
            f"accelerators of vendor {shown(apart[0])} cannot talk to those of {shown(first)}; if their backends can, "
            f"add `communication: [[{first}, {apart[0]}]]`; otherwise let devices idle (search.allow_idle: true)"
        )
        yield Problem(("cluster", "communication"), message)
