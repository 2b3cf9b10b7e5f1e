"""How far the analytic profile is from published measurements: ``python tests/benchmarks/profile_accuracy.py FOLDER``.

FOLDER holds the csv files of published measurements that docs/profile.md names. For each set: its role (in the
objective of the fit; seen when a fit was picked; held out), the number of rows, the median error (predicted / measured
- 1), the median of its absolute value, and Spearman's rank correlation. Nothing was fitted for memory.

Iteration times come from the uniform pipelines' closed form (Narayanan et al. 2021, arXiv 2104.04473, section 2.2), so
that only the profile is judged and not the simulator; the optimizer step is left out. These frameworks reduce gradients
in 16 bits, and their machines have one network card for each device, which the DP rings of a node share out.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from poseidon.cost import FinishedStage, ProblemBuilder, finished_memories, outer_choices
from poseidon.inputs.accelerator import Accelerator
from poseidon.inputs.experiment import Experiment
from poseidon.inputs.links import Link
from poseidon.inputs.model import Model
from poseidon.inputs.training import Recompute
from poseidon.profile import Row, analytic_profile
from poseidon.profile.analytic import Device, embedding_row, head_row, layer_rows
from poseidon.profile.calibration import DEFAULT_CALIBRATION
from poseidon.profile.collectives import all_reduce_ms
from poseidon.profile.micro_batch import MicroBatch
from poseidon.profile.timing import device_rates

Pair = tuple[float, float]
A100 = Accelerator(peak_tflops=312.0, memory_gb=80.0, memory_bandwidth_gb_per_s=2039.0, compute_efficiency=0.869)
ASCEND_910B = Accelerator(peak_tflops=376.0, memory_gb=64.0, memory_bandwidth_gb_per_s=1600.0)
B200 = Accelerator(peak_tflops=2250.0, memory_gb=180.0, memory_bandwidth_gb_per_s=8000.0, compute_efficiency=0.776)
NVLINK3 = Link(bandwidth_gbps=2400.0, latency_us=5.0)
NVLINK5 = Link(bandwidth_gbps=7200.0, latency_us=5.0)
HCCS = Link(bandwidth_gbps=1400.0, latency_us=5.0)
NETWORK_GBPS, DEVICES_PER_NODE = 200.0, 8
VOCABULARIES = {"Aquila": 100_008, "Aquila2": 100_008, "Baichuan": 64_000, "Baichuan2": 125_696, "Qwen": 151_936}
"""Vocabulary sizes of models whose launch settings don't state them."""


@dataclass(frozen=True)
class Job:
    """A homogeneous training job."""

    model: Model
    accelerator: Accelerator
    link: Link
    batch: MicroBatch
    dp: int
    pp: int
    num_micro_batches: int
    recompute: Recompute
    num_chunks: int = 1

    @property
    def device(self) -> Device:
        """One device of the job."""
        rates = device_rates(self.accelerator, DEFAULT_CALIBRATION)
        return Device(rates, self.link, DEVICES_PER_NODE, DEFAULT_CALIBRATION)

    def layer(self) -> Row:
        """The row of one layer."""
        return layer_rows(self.model, self.model.distinct_layer_types[0], self.batch, self.device, [self.recompute])[0]

    def iteration_ms(self) -> float:
        """Time of one iteration without the optimizer step."""
        layer, embedding = self.layer(), embedding_row(self.model, self.batch, self.device)
        head = head_row(self.model, self.batch, self.device)
        stage_ms = (layer.forward_ms + layer.backward_ms) * self.model.num_layers / self.pp
        ends = sum(row.forward_ms + row.backward_ms for row in (embedding, head))
        slowest_ms = stage_ms + (ends if self.pp == 1 else head.forward_ms + head.backward_ms)
        fill_ms = ((self.pp - 1) * stage_ms + ends * (self.pp > 1)) / self.num_chunks
        weights = layer.weight_bytes * self.model.num_layers / self.pp + embedding.weight_bytes
        return self.num_micro_batches * slowest_ms + fill_ms + self._all_reduce_ms(weights)

    def _all_reduce_ms(self, gradient_bytes: float) -> float:
        if self.dp == 1:
            return 0.0
        if self.dp * self.batch.tp <= DEVICES_PER_NODE:
            return all_reduce_ms(gradient_bytes, self.dp, self.link)
        cards = max(1.0, DEVICES_PER_NODE / self.batch.tp)
        network = Link(bandwidth_gbps=NETWORK_GBPS * cards, latency_us=10.0)
        return all_reduce_ms(gradient_bytes, self.dp, network)


def gpt(hidden: int, heads: int, layers: int, seq_length: int = 2048) -> Model:
    """A GPT as Megatron-LM trains it."""
    return Model.model_validate(
        {
            "name": "gpt",
            "num_layers": layers,
            "hidden_size": hidden,
            "ffn_hidden_size": 4 * hidden,
            "num_attention_heads": heads,
            "vocab_size": 51_200,
            "gated_mlp": False,
            "norm": "layernorm",
            "max_position_embeddings": seq_length,
            "tied_embeddings": True,
        }
    )


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    """The rows of a file of measurements."""
    with (folder / name).open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def korthikanti_layers(folder: Path) -> Iterator[Pair]:
    """Forward and backward of one layer of the 22B model, with and without recomputation and sequence parallelism."""
    for row in rows(folder, "korthikanti_layer_time.csv"):
        name = row["experiment"].lower()
        recompute: Recompute = "full" if "full" in name else "selective" if "selective" in name else "none"
        batch = MicroBatch(4, 2048, 8, "sequence" in name, flash_attention=False)
        layer = Job(gpt(6144, 64, 48), A100, NVLINK3, batch, 1, 1, 1, recompute).layer()
        yield layer.forward_ms, float(row["forward_ms"])
        yield layer.backward_ms, float(row["backward_ms"])


def zero_bubble_layers(folder: Path) -> Iterator[Pair]:
    """Forward and backward of a stage; the first and last stage have a layer less, so a stage has (layers + 2) / p."""
    models = {row["model"]: row for row in rows(folder, "zb_models.csv")}
    for row in rows(folder, "zb_profiled_times.csv"):
        model = models[row["model"]]
        layers = (int(model["layers"]) + 2) // int(row["p"])
        gpt_model = gpt(int(model["hidden"]), int(model["heads"]), int(model["layers"]), 1024)
        batch = MicroBatch(int(row["microbatch_size"]), 1024, flash_attention=False)
        layer = Job(gpt_model, A100, NVLINK3, batch, 1, 1, 1, "none").layer()
        yield layers * layer.forward_ms, float(row["T_F_ms"])
        yield layers * layer.backward_ms, float(row["T_B_ms"]) + float(row["T_W_ms"])


def vtrain(folder: Path, params_b: str) -> Iterator[Pair]:
    """Iterations of one model size; TP groups that leave a node are outside our space."""
    for row in rows(folder, "vtrain_measured_multi_a100.csv"):
        if row["params_b"] == params_b and int(row["tp"]) <= DEVICES_PER_NODE:
            yield _megatron_job(row, "full", False).iteration_ms(), float(row["iter_ms"])


def megatron_sc21(folder: Path) -> Iterator[Pair]:
    """1.7B to 1T parameters, 32 to 3072 devices."""
    for row in rows(folder, "megatron_sc21_table1.csv"):
        yield _megatron_job(row, "full", False).iteration_ms(), 1e3 * float(row["iter_s_derived"])


def korthikanti_iterations(folder: Path) -> Iterator[Pair]:
    """22B and 175B, with full and with selective recomputation."""
    for row in rows(folder, "korthikanti_iteration_time.csv"):
        selective = row["mode"].startswith("selective")
        job = _megatron_job(row, "selective" if selective else "full", selective)
        yield job.iteration_ms(), 1e3 * float(row["iter_s"])


def _megatron_job(row: dict[str, str], recompute: Recompute, sequence_parallel: bool) -> Job:
    model = gpt(int(row["hidden"]), int(row["heads"]), int(row["layers"]))
    batch = MicroBatch(int(row["mbs"]), int(row["seq"]), int(row["tp"]), sequence_parallel, flash_attention=False)
    dp = int(row["dp"])
    num_micro_batches = int(row["gbs"]) // (dp * batch.size)
    num_chunks = int(row.get("vpp") or 1)
    return Job(model, A100, NVLINK3, batch, dp, int(row["pp"]), num_micro_batches, recompute, num_chunks)


def ascend(folder: Path) -> Iterator[Pair]:
    """Iterations of 7B and 13B models on one Atlas 900 A2 node; the variant of the 910B is not stated (910B2
    assumed)."""
    for row in rows(folder, "ascend_perf_with_config.csv"):
        heads = int(row["heads"])
        model = Model.model_validate(
            {
                "name": row["model"],
                "num_layers": int(row["layers"]),
                "hidden_size": int(row["hidden"]),
                "ffn_hidden_size": int(row["ffn"]),
                "num_attention_heads": heads,
                "num_kv_heads": int(row["kv_groups"] or heads),
                "vocab_size": int(row["vocab"] or VOCABULARIES.get(row["model"], 32_000)),
            }
        )
        batch = MicroBatch(int(row["mbs"]), int(row["seq"]), int(row["tp"]), row["sp"] == "yes")
        dp, gbs = int(float(row["dp"])), int(row["gbs"])
        job = Job(model, ASCEND_910B, HCCS, batch, dp, int(row["pp"]), gbs // (dp * batch.size), "none")
        tokens_per_s = float(row["tokens_per_s_per_npu"]) * int(row["npus"])
        yield job.iteration_ms(), 1e3 * gbs * int(row["seq"]) / tokens_per_s


def b200_iterations(folder: Path) -> Iterator[Pair]:
    """Iterations of 12 layers of LLaMA-3 70B on 8 B200."""
    for experiment, _, row in _b200_runs(folder):
        batch = MicroBatch(1, int(row["seq"]), int(row["tp"]))
        size = (int(row["dp"]), int(row["pp"]), int(row["micro_batches"]))
        yield Job(experiment.model, B200, NVLINK5, batch, *size, "none").iteration_ms(), float(row["real_ms"])


def b200_memory(folder: Path) -> Iterator[Pair]:
    """Largest allocation of each stage, GB; no reserve is counted."""
    for experiment, measured_gb, row in _b200_runs(folder):
        (choice,) = outer_choices(experiment).choices
        builder = ProblemBuilder(experiment, analytic_profile(experiment))
        per_stage = experiment.model.num_layers // choice.num_stages
        ranges = [(first, first + per_stage) for first in range(0, experiment.model.num_layers, per_stage)]
        stages = [FinishedStage(choice.layout.placements[0], (layers,)) for layers in ranges]
        yield finished_memories(builder, choice, stages)[int(row["stage"])].total_bytes / 1e9, measured_gb


def _b200_runs(folder: Path) -> Iterator[tuple[Experiment, float, dict[str, str]]]:
    """One for each run and stage (context parallelism is outside our space), with its largest allocation in GB."""
    peaks: dict[tuple[str, str], float] = {}
    runs: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows(folder, "simumax_b200_peak_memory_by_rank.csv"):
        if row["cp"] == "1":
            key = (row["case"], row["stage"])
            peaks[key] = max(peaks.get(key, 0.0), float(row["real_max_allocated_MiB"]) * 2**20 / 1e9)
            runs[key] = row
    for key, row in runs.items():
        yield _b200_experiment(row), peaks[key], row


def _b200_experiment(row: dict[str, str]) -> Experiment:
    dp, tp, pp = int(row["dp"]), int(row["tp"]), int(row["pp"])
    model = {
        "name": "llama-3-70b, 12 layers",
        "num_layers": int(row["layers"]),
        "hidden_size": 8192,
        "ffn_hidden_size": 28_672,
        "num_attention_heads": 64,
        "num_kv_heads": 8,
        "vocab_size": 128_256,
    }
    cluster = {
        "name": "b200",
        "accelerators": {"B200": B200.model_dump()},
        "nodes": [{"accelerator": "B200", "count": 1, "devices": 8}],
        "links": {"intra_node": NVLINK5.model_dump(), "inter_node": {"bandwidth_gbps": 400.0}},
    }
    training = {
        "global_batch_size": dp * int(row["micro_batches"]),
        "seq_length": int(row["seq"]),
        "micro_batch_sizes": [1],
        "memory_reserve_fraction": 0.0,
    }
    search = {"fixed_dp": dp, "fixed_tp": tp, "fixed_pp": pp}
    return Experiment.model_validate(
        {"name": row["case"], "model": model, "cluster": cluster, "training": training, "search": search}
    )


def rank_correlation(pairs: list[Pair]) -> float:
    """Spearman's rank correlation (ties in order of appearance)."""
    ranks = [np.argsort(np.argsort(values, kind="stable"), kind="stable") for values in np.array(pairs).T]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


SETS: tuple[tuple[str, str, Callable[[Path], Iterator[Pair]]], ...] = (
    ("fitted", "Korthikanti 2022 table 4, layer times", korthikanti_layers),
    ("fitted", "zero bubble 2024 table 6, stage times", zero_bubble_layers),
    ("fitted", "vTrain 3.6B on 64 A100, iterations", lambda folder: vtrain(folder, "3.6")),
    ("seen", "vTrain 18.4B on 256 A100, iterations", lambda folder: vtrain(folder, "18.4")),
    ("seen", "Megatron SC21 table 1, iterations", megatron_sc21),
    ("seen", "Korthikanti 2022 table 5, iterations", korthikanti_iterations),
    ("seen", "MindSpeed-LLM on Ascend 910B, iterations", ascend),
    ("held out", "SimuMax on B200, iterations", b200_iterations),
    ("held out", "SimuMax on B200, peak memory (GB)", b200_memory),
)


def main(folder: Path) -> None:
    """Prints one line for each set."""
    print(f"{'':9} {'':42} {'rows':>5} {'median':>8} {'median |e|':>11} {'worst':>7} {'rank':>6}")
    for role, title, read in SETS:
        pairs = list(read(folder))
        errors = np.array([predicted / measured - 1 for predicted, measured in pairs])
        worst = errors[np.argmax(np.abs(errors))]
        print(
            f"{role:9} {title:42} {len(pairs):5} {np.median(errors):+8.1%} {np.median(np.abs(errors)):11.1%} "
            f"{worst:+7.0%} {rank_correlation(pairs):6.3f}"
        )


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: python tests/benchmarks/profile_accuracy.py FOLDER (with the csv files of docs/profile.md)")
    main(Path(sys.argv[1]))
