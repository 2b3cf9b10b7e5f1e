"""FlagScale: an experiment file, a train file with the `hetero` block, and a hostfile with a label for each mesh.

Schema of FlagScale 16a2dd5b (flagscale/train/arguments.py, flagscale/runner): a mesh is [tp, cp, ep, dp, pp] of
consecutive stages; ranks are sorted by the place of their host's label among the meshes' labels, so every mesh has a
label of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from poseidon.errors import Mistake
from poseidon.output.export.about import about
from poseidon.output.export.exported import Export, ExportedFile, Start
from poseidon.output.export.megatron_settings import expert_refusals, recompute_settings, shared_settings
from poseidon.output.export.places import Place, divided_nodes, placement_notes, places_of
from poseidon.output.export.refusals import other_schedule
from poseidon.output.export.request import Request, label
from poseidon.output.numbers import ranges

TITLE = "FlagScale"
VENDORS = "between vendors FlagScale needs distributed_backend: flagcx, or hetero_use_cpu_communication: true"
COMMAND = 'python FLAGSCALE/run.py --config-path "$PWD" --config-name experiment action=run'


@dataclass(frozen=True)
class Mesh:
    """Consecutive stages of one accelerator and one TP degree."""

    label: str
    tp: int
    dp: int
    stages: range

    @property
    def tuple_of_five(self) -> list[int]:
        """TP, CP, EP, DP, PP."""
        return [self.tp, 1, 1, self.dp, len(self.stages)]


def meshes_of(request: Request) -> tuple[Mesh, ...]:
    """The plan's meshes in pipeline order, labelled ``A100-m0``, ``A100-m1``, ..."""
    starts: list[int] = []
    stages = request.pipeline.stages
    for index, stage in enumerate(stages):
        same = index and (stages[index - 1].accelerator, stages[index - 1].tp) == (stage.accelerator, stage.tp)
        if not same:
            starts.append(index)
    ends = [*starts[1:], len(stages)]
    return tuple(
        Mesh(f"{label(stages[first].accelerator)}-m{number}", stages[first].tp, request.pipeline.dp, range(first, end))
        for number, (first, end) in enumerate(zip(starts, ends, strict=True))
    )


def refusals(request: Request) -> Iterator[Mistake]:
    """What FlagScale's heterogeneous mode can't run."""
    yield from other_schedule(request, TITLE, ("1f1b",))
    yield from expert_refusals(request, TITLE)
    yield from _mesh_refusals(request)
    places = places_of(request)
    if divided := divided_nodes(places):
        yield request.mistake(
            "stages",
            f"FlagScale starts each host once, with consecutive ranks, and those of node {ranges(divided)} are not; "
            "search again with --assignment node",
        )
    for place in places:
        if place.devices != tuple(range(place.num_ranks)):
            yield request.mistake(
                "stages",
                f"FlagScale uses a host's first devices in their order, and the plan uses {place.device_list} of node "
                f"{place.node}; search again without --allow-idle",
            )


def _mesh_refusals(request: Request) -> Iterator[Mistake]:
    meshes, training = meshes_of(request), request.experiment.training
    if len({mesh.tp for mesh in meshes}) > 1 and not training.sequence_parallel:
        yield request.mistake(
            "inputs.training.sequence_parallel",
            "FlagScale passes activations between different TP degrees with sequence parallelism only; "
            "set training.sequence_parallel: true, or search with --tp uniform",
        )
    if request.experiment.model.tied_embeddings and meshes[0].tp != meshes[-1].tp:
        yield request.mistake(
            "stages",
            f"FlagScale ties the embeddings of stages with one TP degree, and the first has {meshes[0].tp}, the last "
            f"{meshes[-1].tp}; search again with --tp uniform",
        )
    for place in places_of(request):
        if len({mesh.label for mesh in meshes if set(mesh.stages) & set(place.stages)}) > 1:
            yield request.mistake(
                "stages",
                f"FlagScale labels whole hosts, and node {place.node} has stages of several TP degrees; search again "
                "with --tp per-type (or --tp uniform)",
            )


def export(request: Request) -> Export:
    """Three files; FlagScale itself starts all hosts."""
    places = places_of(request)
    train, head = train_settings(request), [f"# {line}" for line in about(request, TITLE)]
    files = (
        ExportedFile("experiment.yaml", _document(head, _experiment(places))),
        ExportedFile("train/plan.yaml", _document(head, train)),
        ExportedFile("hostfile", _hostfile(request, places, head)),
    )
    return Export(files, places, (Start(None, COMMAND),), train, _notes(request, places))


def train_settings(request: Request) -> dict[str, object]:
    """The train file."""
    pipeline, model = request.pipeline, request.experiment.model
    shared = shared_settings(request)
    recompute = recompute_settings(pipeline)
    model_keys = ("num_layers", "seq_length", "micro_batch_size", "global_batch_size")
    precision = request.experiment.training.precision
    system: dict[str, object] = {
        key: value for key, value in shared.items() if key not in (*model_keys, *recompute, precision)
    }
    system["tensor_model_parallel_size"] = pipeline.stages[0].tp
    system["hetero"] = _hetero(request)
    if recompute:
        system["recompute"] = dict(recompute)
    system["precision"] = {precision: True}
    in_model: dict[str, object] = {key: shared[key] for key in model_keys}
    if not model.tied_embeddings:
        in_model["untie_embeddings_and_output_weights"] = True
    return {"system": system, "model": in_model, "data": {"data_path": "???"}}


def _hetero(request: Request) -> dict[str, object]:
    meshes = meshes_of(request)
    block: dict[str, object] = {
        "enable_hetero": True,
        "hetero_pipeline_layer_split": [stage.layers[0] for stage in request.pipeline.stages],
        "hetero_process_meshes": [number for mesh in meshes for number in mesh.tuple_of_five],
        "hetero_device_types": [mesh.label for mesh in meshes],
        # FlagScale replaces it on every host with the hostfile's label.
        "hetero_current_device_type": meshes[0].label,
    }
    if request.experiment.model.moe is not None:
        block["expert_tensor_parallel_size_per_process_mesh"] = [mesh.tp for mesh in meshes]
    return block


def _experiment(places: Sequence[Place]) -> dict[str, object]:
    return {
        "defaults": [{"train": "plan"}, "_self_"],
        "experiment": {
            "exp_name": "poseidon",
            "exp_dir": "./outputs",
            "task": {"type": "train", "backend": "megatron", "entrypoint": "flagscale/train/train_gpt.py"},
            "runner": {
                "backend": "torchrun",
                "rdzv_backend": "static",
                "nnodes": len(places),
                "nproc_per_node": max(place.num_ranks for place in places),
                "hostfile": "./hostfile",
            },
            "envs": {"CUDA_DEVICE_MAX_CONNECTIONS": 1},
        },
        "action": "run",
        "hydra": {"run": {"dir": "${experiment.exp_dir}/hydra"}},
    }


def _document(head: Sequence[str], data: Mapping[str, object]) -> str:
    return "\n".join([*head, yaml.safe_dump(dict(data), sort_keys=False, default_flow_style=None, width=10_000)])


def _hostfile(request: Request, places: Sequence[Place], head: Sequence[str]) -> str:
    labels = {stage: mesh.label for mesh in meshes_of(request) for stage in mesh.stages}
    lines = [f"{place.host} slots={place.num_ranks} type={labels[place.stages[0]]}" for place in places]
    return "\n".join([*head, *lines]) + "\n"


def _notes(request: Request, places: tuple[Place, ...]) -> tuple[str, ...]:
    vendors = {request.vendor(place.node) for place in places}
    unknown = () if request.hosts else ("the hostfile names hosts node0, node1, ...; give --hosts, or change it",)
    return (
        *unknown,
        *placement_notes(request, places),
        "model shape, data, tokenizer and optimizer are yours: add them to train/plan.yaml (data_path is asked for)",
        "the start command is run in this directory, on the first host; FLAGSCALE is FlagScale's checkout",
        *(() if len(vendors) < 2 else (VENDORS,)),
    )
