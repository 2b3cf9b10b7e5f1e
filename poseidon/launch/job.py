"""The training job of a launcher's call: everything that is read from the framework's flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poseidon.errors import InputError, Mistake
from poseidon.launch.arguments import Arguments, parsed
from poseidon.launch.choices import Choices
from poseidon.launch.flag_table import framework_flags
from poseidon.launch.framework import Framework, framework_of
from poseidon.launch.launcher import LauncherCall
from poseidon.launch.plan_flags import SPLIT_FLAGS
from poseidon.launch.read_model import MODEL_FLAGS, model_fields
from poseidon.launch.read_recompute import RECOMPUTE_FLAGS, Recomputation, recomputation_of
from poseidon.launch.read_training import TRAINING_FLAGS, Degrees, training_fields
from poseidon.launch.unmodelled import check_spelling, notes_on_unmodelled
from poseidon.launch.vocabulary import padded_vocabulary

TELL_TALE = ("--num-layers", "--encoder-num-layers", "--hidden-size", "--use-checkpoint-args", "--yaml-cfg")
"""One of these is in every call of Megatron-LM's training scripts."""


@dataclass(frozen=True)
class Job:
    """What to plan for. `model` and `training` are fields of `Model` and `Training`."""

    framework: Framework
    arguments: Arguments
    degrees: Degrees
    model: Mapping[str, Any]
    training: Mapping[str, Any]
    recomputation: Recomputation
    notes: tuple[str, ...]


def is_training(words: Sequence[str]) -> bool:
    """Whether a command line is that of a training of the family, and not of some other program."""
    return any(word.partition("=")[0] in TELL_TALE for word in words)


def read_job(call: LauncherCall, world_size: int, choices: Choices) -> Job:
    """Reads the job; InputError where the flags describe none, or one whose cost a plan can't count."""
    if not is_training(call.arguments):
        message = f"has no --num-layers: it is not called as a training script of Megatron-LM ({call.program[0]})"
        raise InputError(Mistake(call.script, "", message))
    arguments = parsed(call.arguments, framework_flags())
    check_spelling(arguments, (*MODEL_FLAGS, *TRAINING_FLAGS, *RECOMPUTE_FLAGS, *SPLIT_FLAGS))
    notes = notes_on_unmodelled(arguments, choices.accept)
    framework = framework_of(
        call.script, call.is_module, arguments, call.environment, choices.framework, choices.framework_version
    )
    degrees = Degrees.of(arguments)
    model = model_fields(arguments, padded_vocabulary(arguments, degrees.tp, choices.vocab_size))
    training = training_fields(arguments, framework, world_size)
    if "moe" in model and degrees.tp > 1 and not training["sequence_parallel"]:
        message = "is missing: Megatron-LM trains experts under TP with sequence parallelism only"
        raise InputError(Mistake("--sequence-parallel", "", message))
    recomputation = _recomputation(arguments, model, training, choices)
    return Job(framework, arguments, degrees, model, training, recomputation, (*notes, *_notes(recomputation)))


def _recomputation(
    arguments: Arguments, model: Mapping[str, Any], training: Mapping[str, Any], choices: Choices
) -> Recomputation:
    """What the user's flags recompute; where the plan is to choose (--recompute), the flags give way."""
    if choices.recompute is not None:
        return Recomputation("none", stays=False)
    moe = model.get("moe")
    only_experts = moe is not None and not moe["first_dense_layers"] and not moe["dense_layers"]
    fused = bool(training["flash_attention"])
    return recomputation_of(arguments, fused_attention=fused, only_experts=only_experts)


def _notes(recomputation: Recomputation) -> tuple[str, ...]:
    return (f"--recompute-granularity: {recomputation.note}",) if recomputation.note else ()
