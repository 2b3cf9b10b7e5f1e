"""Whether a checkpoint that the command loads survives a plan's split."""

from __future__ import annotations

from pathlib import Path

from poseidon.errors import InputError, Mistake
from poseidon.inputs.file_model import shown
from poseidon.launch.arguments import Arguments
from poseidon.launch.framework import Framework
from poseidon.launch.read_training import Degrees
from poseidon.launch.rewrite import Change
from poseidon.launch.vocabulary import padding_multiple
from poseidon.plan.plan import Pipeline

TRACKER = "latest_checkpointed_iteration.txt"
"""The file by which Megatron-LM finds the newest checkpoint of a directory (checkpointing.py)."""
LOADS = ("--load", "--pretrained-checkpoint")
SPLITTING = (
    "--tensor-model-parallel-size",
    "--pipeline-model-parallel-size",
    "--pipeline-model-parallel-layout",
    "--num-layer-list",
    "--pipeline-num-transformer-layers",
    "--num-layers-per-virtual-pipeline-stage",
    "--num-virtual-stages-per-pipeline-rank",
    "--decoder-first-pipeline-num-layers",
    "--decoder-last-pipeline-num-layers",
    "--account-for-embedding-in-pipeline-split",
    "--account-for-loss-in-pipeline-split",
)
"""Flags that decide on which rank holds which weights."""
RESHARDING = ("torch_dist", "torch_dcp", "zarr", "fsdp_dtensor")
"""Formats that are read under any split; torch, with a file for each rank, is not (Megatron-LM's documentation)."""


def checkpoint_notes(
    arguments: Arguments,
    framework: Framework,
    pipeline: Pipeline,
    changes: tuple[Change, ...],
    directory: Path,
    *,
    allow_change: bool,
) -> tuple[str, ...]:
    """What to know about the checkpoint; InputError for one that the new split can't read.

    `directory` is where relative paths begin. A directory without a checkpoint is where a training starts from nothing.
    """
    paths = [text for flag in LOADS if (text := arguments.text(flag)) is not None]
    path = next((path for path in paths if (directory / path / TRACKER).exists()), None)
    if path is None:
        return ()
    vocabulary = _vocabulary_note(arguments, changes)
    split = [change for change in changes if change.flag in SPLITTING]
    if not split or _is_same_split(arguments, pipeline):
        return vocabulary
    kind = arguments.text("--ckpt-format")
    if kind in RESHARDING or (kind is None and not framework.is_ascend):
        return (
            "--load: torch_dist checkpoints are resharded when they are loaded, so the new split can read it",
            *vocabulary,
        )
    if allow_change:
        note = f"--load: {shown(path, 120)} was written under another split: it must be converted before it can be read"
        return (note, *vocabulary)
    listed = ", ".join(dict.fromkeys(change.flag for change in split[:4]))
    message = (
        f"{shown(path, 120)} has a checkpoint of another split ({listed}), which {framework.title} can't read in the "
        "format torch; convert it, or keep the split (--fixed-tp, --fixed-pp), and add --allow-checkpoint-change"
    )
    raise InputError(Mistake("--load", "", message))


def _is_same_split(arguments: Arguments, pipeline: Pipeline) -> bool:
    """Whether the user's flags and the plan both split all layers evenly, over as many stages and TP ranks."""
    degrees = Degrees.of(arguments)
    has_own_split = any(map(arguments.has, SPLITTING[2:]))
    layers = {stage.layers for stage in pipeline.stages}
    is_even = pipeline.num_chunks == 1 and len(layers) == 1
    return (degrees.tp, degrees.pp) == (pipeline.tp, pipeline.pp) and is_even and not has_own_split


def _vocabulary_note(arguments: Arguments, changes: tuple[Change, ...]) -> tuple[str, ...]:
    """The embedding is padded to a multiple of TP, so another TP may give it another number of rows."""
    if arguments.has("--padded-vocab-size") or arguments.has("--no-pad-vocab-size"):
        return ()
    if all(change.flag != SPLITTING[0] for change in changes):
        return ()
    before = padding_multiple(arguments, arguments.count(SPLITTING[0]) or 1)
    return (
        f"--make-vocab-size-divisible-by: the vocabulary was padded to a multiple of {before}, and TP changes; where "
        "that gives the embedding other rows, the checkpoint's do not fit (--padded-vocab-size keeps them)",
    )
