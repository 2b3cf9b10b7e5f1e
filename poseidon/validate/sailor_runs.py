"""Sailor's measured training runs of OPT-350M on GH200, each as a job of this project."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from poseidon.calibrate.prediction import Job, job_of
from poseidon.inputs.experiment import Experiment
from poseidon.validate.data_files import data_rows
from poseidon.validate.sailor_profile import ACCELERATOR, HEAD, NUM_LAYERS, SEQ_LENGTH, TP

DEVICES_PER_NODE = 4
MODEL = {
    "name": "OPT-350M",
    "num_layers": NUM_LAYERS,
    "hidden_size": 1024,
    "ffn_hidden_size": 4096,
    "num_attention_heads": 16,
    "vocab_size": 50_304,  # padded: Sailor's embedding holds 50,304 x 1024 and 2048 x 1024 numbers
    "gated_mlp": False,
    "norm": "layernorm",
    "max_position_embeddings": SEQ_LENGTH,
}
LINKS = {"intra_node": {"bandwidth_gbps": 1000.0}, "inter_node": {"bandwidth_gbps": 184.0}}
"""Stands in where the profile has no measured row; it has one for every message of these runs."""


@dataclass(frozen=True)
class SailorRun:
    """A run: its job, what was measured, and what is wrong with the row, if anything."""

    name: str
    nodes: int
    job: Job
    iteration_ms: float
    peak_bytes: float
    flag: str

    def with_reserve(self, reserve_gb: float) -> Job:
        """The job where a process holds so much beside its tensors."""
        experiment = self.job.experiment
        training = experiment.training.model_copy(update={"memory_reserve_gb": reserve_gb})
        return replace(self.job, experiment=experiment.model_copy(update={"training": training}))


def sailor_runs() -> Iterator[SailorRun]:
    """The runs, in the order of the file."""
    for row in data_rows("sailor_runs.csv"):
        dp, pp, size = int(row["dp"]), int(row["pp"]), int(row["micro_batch_size"])
        experiment = Experiment.model_validate(
            {
                "name": row["name"],
                "model": MODEL,
                "cluster": {
                    "name": "clariden",
                    "accelerators": {ACCELERATOR: {"peak_tflops": 494.0, "memory_gb": 96.0}},  # TF32, dense
                    "nodes": [{"accelerator": ACCELERATOR, "count": int(row["nodes"]), "devices": DEVICES_PER_NODE}],
                    "links": LINKS,
                },
                "training": {
                    "global_batch_size": int(row["global_batch_size"]),
                    "seq_length": SEQ_LENGTH,
                    "micro_batch_sizes": [size],
                    "precision": "fp32",
                    "distributed_optimizer": False,
                    # Every rank of a stage sends its part to all ranks of the next one (sailor's pipe_engine.py, one
                    # send for each of `my_pp_groups`): as much as the whole activation.
                    "sequence_parallel": False,
                },
                "search": {"fixed_dp": dp, "fixed_tp": TP, "fixed_pp": pp},
            }
        )
        layers = tuple((_own_layers(stage),) for stage in row["layers_per_stage"].split("|"))
        seconds, peak = float(row["iteration_s"]), float(row["peak_bytes"])
        yield SailorRun(
            row["name"], int(row["nodes"]), job_of(experiment, layers, "serial"), 1e3 * seconds, peak, row["flag"]
        )


def _own_layers(stage: str) -> int:
    """Transformer layers of a stage that Sailor writes as first-last, embedding and head counted."""
    first, last = map(int, stage.split("-"))
    return last - first + 1 - (first == 0) - (last == HEAD)
