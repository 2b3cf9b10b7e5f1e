"""Why a candidate for an outer choice is refused, and the one line that a person gets when all are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from poseidon.errors import InputError, Mistake
from poseidon.inputs.experiment import Experiment


class Cause(IntEnum):
    """What a candidate failed at, in the order of the checks."""

    MODEL = 0
    NODES = 1
    STAGES = 2
    BATCH = 3
    SCHEDULE = 4


@dataclass(frozen=True)
class Refusal:
    """A refused candidate: its DP and TP degrees and stages (0: any) and the reason in one sentence."""

    cause: Cause
    reason: str
    dp: int = 0
    tp: int = 0
    num_stages: int = 0


FIELDS = {
    Cause.MODEL: "model.num_attention_heads",
    Cause.NODES: "cluster.nodes",
    Cause.STAGES: "model.num_layers",
    Cause.BATCH: "training.global_batch_size",
    Cause.SCHEDULE: "training.schedules",
}
"""The field that a person would change."""
SHOWN_REASONS = 3


def no_choice_error(experiment: Experiment, refusals: Sequence[Refusal]) -> InputError:
    """What binds when no outer choice is feasible: the check at which the last candidates failed, in one line."""
    cause = max((refusal.cause for refusal in refusals), default=Cause.NODES)
    binding = [refusal for refusal in refusals if refusal.cause == cause]
    file = next(iter(experiment.files), experiment.name)
    if cause == Cause.BATCH:
        return InputError(Mistake(file, FIELDS[cause], _batch_message(experiment, binding)))
    if cause == Cause.STAGES:
        return InputError(_stages_mistake(experiment, file, binding))
    reasons = list(dict.fromkeys(refusal.reason for refusal in binding))
    more = f"; and {len(reasons) - SHOWN_REASONS} more reasons" if len(reasons) > SHOWN_REASONS else ""
    return InputError(Mistake(file, FIELDS[cause], f"no plan is possible: {'; '.join(reasons[:SHOWN_REASONS])}{more}"))


def _batch_message(experiment: Experiment, refusals: Sequence[Refusal]) -> str:
    degrees = _listed(sorted({refusal.dp for refusal in refusals}))
    sizes = _listed(experiment.training.micro_batch_sizes)
    return (
        f"{experiment.training.global_batch_size} is not divisible by any DP x micro-batch: "
        f"DP can be {degrees} here, and micro_batch_sizes are {sizes}"
    )


def _stages_mistake(experiment: Experiment, file: str, refusals: Sequence[Refusal]) -> Mistake:
    hint = "" if experiment.search.allow_idle else "; or let devices stay idle with search: {allow_idle: true}"
    counts = _listed(sorted({refusal.num_stages for refusal in refusals if refusal.num_stages}))
    fixed = experiment.search.fixed_pp
    if fixed is not None:
        message = f"{fixed} stages do not use every device of the cluster; numbers of stages that do: {counts}{hint}"
        return Mistake(file, "search.fixed_pp", message)
    message = (
        f"the model has {experiment.model.num_layers} layers, and every stage needs one; "
        f"stages that use every device of the cluster number {counts or 'none'}{hint}"
    )
    return Mistake(file, FIELDS[Cause.STAGES], message)


def _listed(values: Sequence[int], limit: int = 12) -> str:
    shown = ", ".join(map(str, values[:limit]))
    return f"{shown}, ..." if len(values) > limit else shown
