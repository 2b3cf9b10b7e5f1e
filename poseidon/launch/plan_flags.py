"""The flags that a plan decides on: it sets them, or they must go."""

from __future__ import annotations

from dataclasses import dataclass

from poseidon.launch.read_recompute import RECOMPUTE_FLAGS
from poseidon.plan.plan import Pipeline

SPLIT_FLAGS = (
    "--num-layers-per-virtual-pipeline-stage",
    "--num-virtual-stages-per-pipeline-rank",
    "--decoder-first-pipeline-num-layers",
    "--decoder-last-pipeline-num-layers",
    "--account-for-embedding-in-pipeline-split",
    "--account-for-loss-in-pipeline-split",
    "--pipeline-model-parallel-layout",
    "--num-layer-list",
    "--pipeline-num-transformer-layers",
    "--microbatch-group-size-per-virtual-pipeline-stage",
)
"""How layers are split; Megatron-LM accepts one way at a time (its arguments.py)."""


@dataclass(frozen=True)
class Removal:
    """A flag that can't stand beside the plan's, and why."""

    flag: str
    reason: str


def removals(pipeline: Pipeline, *, sequence_parallel: bool, keeps_recomputation: bool) -> tuple[Removal, ...]:
    """Everything that must go unless the plan sets it."""
    split = [Removal(flag, "the plan splits the layers") for flag in SPLIT_FLAGS]
    split += [Removal("--sequence-parallel", "means nothing with TP 1")]
    if not keeps_recomputation:
        split += [Removal(flag, "the plan decides on recomputation") for flag in RECOMPUTE_FLAGS]
    tp = max(stage.tp for stage in pipeline.stages)
    if tp == 1 or not sequence_parallel:
        overlaps = ("--tp-comm-overlap", "--use-mc2", "--use-ascend-mc2", "--use-ascend-coc")
        split += [Removal(flag, "needs TP with sequence parallelism") for flag in overlaps]
    if pipeline.num_chunks == 1:
        chunked = ("--overlap-param-gather-with-optimizer-step", "--overlap-p2p-communication-warmup-flush")
        split += [Removal(flag, "needs the interleaved schedule") for flag in chunked]
    if pipeline.pp == 1:
        split += [Removal("--defer-embedding-wgrad-compute", "needs a pipeline")]
    return tuple(split)
