"""The paper's links between nodes, read in three ways: it prints 200 and 75 Gbps, but not whose."""

from __future__ import annotations

from poseidon.inputs.experiment import Experiment, experiment_from_resolved

LINK_CLASSES = ("inter_node", "cross_cluster")
READINGS = ("device", "stage", "node")
WORDS = {
    "device": "each device has its own",
    "stage": "a stage's devices on a node share one",
    "node": "all devices of a node share one",
}


def with_links(experiment: Experiment, reading: str) -> Experiment:
    """The experiment with its links between nodes shared as a reading says.

    `device`: as the file has it. `stage`: those devices that send a message at once share the link. `node`: every
    device has its part of the link, whoever sends.
    """
    data = experiment.resolved()
    links, devices = data["cluster"]["links"], max(group.devices for group in experiment.cluster.nodes)
    for name in LINK_CLASSES if reading != "device" else ():
        if reading == "stage":
            links[name]["shared_by"] = "node"
        else:
            links[name]["bandwidth_gbps"] /= devices
    return experiment_from_resolved(data, experiment.name)
