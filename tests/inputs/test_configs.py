from __future__ import annotations

import json
from pathlib import Path

import pytest

from poseidon.inputs.accelerator import Accelerator
from poseidon.inputs.cluster_file import load_cluster
from poseidon.inputs.experiment import Experiment, experiment_from_resolved, load_experiment
from poseidon.inputs.model_file import load_model
from poseidon.inputs.reading import read_document
from poseidon.inputs.validation import validate

CONFIGS = Path(__file__).parents[2] / "configs"
FOLDERS = ("accelerators", "clusters", "models", "experiments")

# Setting: model, nodes of 8 devices, global batch size, sequence length (arXiv 2609.06086; the batch and sequence sizes
# are ours).
SETTINGS = {
    "setting1": ("Llama-3-8B", {"A2-2": 1, "A2-3": 1}, 128, 4096),
    "setting2": ("Llama-2-13B", {"A2-2": 2, "A2-3": 2}, 128, 4096),
    "setting3": ("LLaMA-30B", {"A2-2": 2, "A2-3": 2, "A2-4": 2}, 256, 2048),
    "setting4": ("Mixtral-8x7B", {"A2-2": 1, "A2-3": 2, "A2-4": 4}, 256, 4096),
    "setting5": ("Llama-2-13B", {"A100": 1, "RTX-4090": 2, "RTX-3090": 2}, 128, 4096),
    "setting6-96": ("Llama-3-70B", {"A2-2": 2, "A2-3": 2, "A2-4": 8}, 512, 4096),
    "setting6-192": ("Llama-3-70B", {"A2-2": 4, "A2-3": 4, "A2-4": 16}, 512, 4096),
    "setting6-288": ("Llama-3-70B", {"A2-2": 6, "A2-3": 6, "A2-4": 24}, 512, 4096),
}
# Peak TFLOPS and memory in GB as the paper gives them.
PAPER_DEVICES = {
    "A2-2": (376, 64),
    "A2-3": (313, 64),
    "A2-4": (280, 32),
    "A100": (312, 80),
    "RTX-4090": (330, 24),
    "RTX-3090": (71, 24),
}


def files(folder: str) -> list[Path]:
    return sorted((CONFIGS / folder).glob("*.yaml"))


def setting(name: str) -> Experiment:
    return load_experiment(CONFIGS / "experiments" / f"{name}.yaml")


@pytest.mark.parametrize("path", files("accelerators"), ids=lambda path: path.stem)
def test_every_accelerator_is_valid(path: Path) -> None:
    accelerator = validate(Accelerator, read_document(path).data, str(path))
    assert accelerator.vendor is not None
    assert accelerator.memory_bandwidth_gb_per_s is not None


@pytest.mark.parametrize("path", files("clusters"), ids=lambda path: path.stem)
def test_every_cluster_is_valid_and_called_as_its_file(path: Path) -> None:
    assert load_cluster(path).name == path.stem


@pytest.mark.parametrize("path", files("models"), ids=lambda path: path.stem)
def test_every_model_is_valid_and_says_its_number_of_parameters(path: Path) -> None:
    model = load_model(path)
    assert path.read_text().startswith(f"# {model.num_parameters:,} parameters")
    assert model.name.lower() == path.stem


@pytest.mark.parametrize("path", files("experiments"), ids=lambda path: path.stem)
def test_every_experiment_is_valid_and_rebuilt_exactly(path: Path) -> None:
    experiment = load_experiment(path)
    assert experiment.name == path.stem
    assert experiment_from_resolved(json.loads(json.dumps(experiment.resolved()))) == experiment


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_says_where_it_comes_from(folder: str) -> None:
    assert files(folder)
    for path in (CONFIGS / folder).iterdir():
        assert path.suffix == ".yaml"
        assert path.read_text().startswith("# "), path
        if folder in ("accelerators", "models"):
            assert "\n# Source: " in path.read_text(), path


@pytest.mark.parametrize("name", SETTINGS)
def test_the_settings_are_those_of_the_paper(name: str) -> None:
    model, nodes, global_batch_size, seq_length = SETTINGS[name]
    experiment = setting(name)
    assert experiment.model.name == model
    assert {group.accelerator: group.count for group in experiment.cluster.nodes} == nodes
    assert {group.devices for group in experiment.cluster.nodes} == {8}
    training = experiment.training
    assert (training.global_batch_size, training.seq_length) == (global_batch_size, seq_length)
    assert (training.micro_batch_sizes, training.schedules) == ((1, 2, 4), ("1f1b",))


@pytest.mark.parametrize("name", SETTINGS)
def test_devices_and_links_are_those_of_the_paper(name: str) -> None:
    cluster = setting(name).cluster
    for type_name, accelerator in cluster.accelerators.items():
        assert (accelerator.peak_tflops, accelerator.memory_gb) == PAPER_DEVICES[type_name]
    intra_node, inter_node, cross_cluster = (256, 100, 75) if name == "setting5" else (1400, 200, 75)
    for group in cluster.nodes:
        assert cluster.intra_node_link(group).bandwidth_gbps == intra_node
        for other in cluster.nodes:
            expected = inter_node if group is other else cross_cluster
            assert cluster.link_between(group, other).bandwidth_gbps == expected
            assert cluster.can_communicate(group, other)


def test_the_quickstart_is_a_real_mixed_gpu_cluster() -> None:
    cluster = setting("quickstart").cluster
    assert {group.accelerator: group.num_devices for group in cluster.nodes} == {"A100": 8, "RTX-4090": 16, "A6000": 4}
    a100, rtx_4090, a6000 = (cluster.intra_node_link(group).bandwidth_gbps for group in cluster.nodes)
    assert a100 > a6000 > rtx_4090
    assert cluster.accelerators["RTX-4090"].peak_tflops == pytest.approx(165.2)


@pytest.mark.parametrize(
    ("name", "num_devices", "num_types"),
    [("scale-1152", 1152, 3), ("scale-4608", 4608, 3), ("scale-10368", 10368, 4), ("scale-10368-8-types", 10368, 8)],
)
def test_the_large_experiments_have_the_size_in_their_name(name: str, num_devices: int, num_types: int) -> None:
    cluster = setting(name).cluster
    assert (cluster.num_devices, len(cluster.accelerators)) == (num_devices, num_types)
