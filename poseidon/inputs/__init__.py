"""What a person gives: cluster, model, training job and search settings, read from files and checked."""

from poseidon.inputs.accelerator import Accelerator
from poseidon.inputs.cluster import Cluster, NodeGroup
from poseidon.inputs.cluster_file import load_cluster
from poseidon.inputs.experiment import Experiment, build_experiment, experiment_from_resolved, load_experiment
from poseidon.inputs.links import Link, Links
from poseidon.inputs.model import MixtureOfExperts, Model, MultiHeadLatentAttention
from poseidon.inputs.model_file import load_model
from poseidon.inputs.reading import ReadDocument, read_document
from poseidon.inputs.search import SearchSettings
from poseidon.inputs.training import Training
from poseidon.inputs.validation import validate

__all__ = [
    "Accelerator",
    "Cluster",
    "Experiment",
    "Link",
    "Links",
    "MixtureOfExperts",
    "Model",
    "MultiHeadLatentAttention",
    "NodeGroup",
    "ReadDocument",
    "SearchSettings",
    "Training",
    "build_experiment",
    "experiment_from_resolved",
    "load_cluster",
    "load_experiment",
    "load_model",
    "read_document",
    "validate",
]
