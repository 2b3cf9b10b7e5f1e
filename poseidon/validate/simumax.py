"""Peak memory of every rank on B200 (SimuMax): 12 layers of LLaMA-3 70B, no recomputation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from poseidon.calibrate.prediction import job_of
from poseidon.inputs.experiment import Experiment
from poseidon.profile import analytic_profile
from poseidon.validate.comparison import Comparison, Row, Target, largest_absolute, mean_absolute
from poseidon.validate.data_files import data_rows

SOURCE = "SimuMax (github.com/MooreThreads/SimuMax at 4dcaae513b), docs/b200/b200_release_v1.2_summary.json: 8 B200"
MODEL = {
    "name": "LLaMA-3 70B, 12 layers",
    "num_layers": 12,
    "hidden_size": 8192,
    "ffn_hidden_size": 28_672,
    "num_attention_heads": 64,
    "num_kv_heads": 8,
    "vocab_size": 128_256,
}
GB_PER_MIB = 2**20 / 1e9


def simumax_memory() -> Comparison:
    """Largest allocation of each rank; nothing is fitted and no reserve counted."""
    rows = tuple(_rows())
    errors = tuple(row.relative_error for row in rows)
    mean = mean_absolute(errors)
    return Comparison(
        name="simumax-memory",
        title="LLaMA-3 70B (12 layers) on B200: peak memory of every rank",
        source=SOURCE,
        basis="measured",
        rows=rows,
        targets=(Target("mean absolute error", mean, 0.06, "%"),),
        summary=f"{100 * mean:.1f} % on average over {len(rows)} ranks, nothing fitted; at most "
        f"{100 * largest_absolute(errors):.1f} %.",
        notes=(
            "The measured value is the largest allocation of PyTorch's allocator, so no reserve is counted: a plan "
            "adds 8 % of the device to these predictions. Cases that repeat another one's memory are left out.",
            "Context parallelism is outside this project's space. A rank of such a run is predicted as one of as many "
            "data-parallel ranks with a share of the sequence: the same parameters, shards and tokens.",
        ),
    )


def _rows() -> Iterator[Row]:
    for row in data_rows("simumax_b200.csv"):
        if row["measured_in"] not in ("", row["case"]):
            continue
        cp = int(row["cp"])
        degrees = f"TP {row['tp']} PP {row['pp']} DP {row['dp']}" + (f" CP {cp}, {row['seq_length']}" if cp > 1 else "")
        shape = (int(row["tp"]), int(row["pp"]), int(row["dp"]) * cp, int(row["seq_length"]) // cp)
        predicted = _stage_bytes(*shape, int(row["num_micro_batches"]))[int(row["stage"])]
        measured_gb = float(row["peak_mib"]) * GB_PER_MIB
        yield Row(f"{degrees}, rank {row['rank']}", predicted / 1e9, measured_gb, "GB", degrees)


@lru_cache(maxsize=64)
def _stage_bytes(tp: int, pp: int, dp: int, seq_length: int, num_micro_batches: int) -> tuple[float, ...]:
    experiment = Experiment.model_validate(
        {
            "name": "b200",
            "model": MODEL,
            "cluster": {
                "name": "b200",
                "accelerators": {"B200": {"peak_tflops": 2250.0, "memory_gb": 180.0}},
                "nodes": [{"accelerator": "B200", "count": 1, "devices": tp * pp * dp}],
                "links": {"intra_node": {"bandwidth_gbps": 7200.0}, "inter_node": {"bandwidth_gbps": 400.0}},
            },
            "training": {
                "global_batch_size": dp * num_micro_batches,
                "seq_length": seq_length,
                "micro_batch_sizes": [1],
                "memory_reserve_gb": 0.0,
            },
            "search": {"fixed_dp": dp, "fixed_tp": tp, "fixed_pp": pp},
        }
    )
    return tuple(stage.total_bytes for stage in job_of(experiment).memories(analytic_profile(experiment)))
