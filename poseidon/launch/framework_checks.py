"""What Megatron-LM itself checks when it starts: a plan that would fail there is refused here."""

from __future__ import annotations

from collections.abc import Iterator

from poseidon.errors import InputError, Mistake
from poseidon.launch.job import Job
from poseidon.output.export.request import parsed_version
from poseidon.plan.plan import Plan

REPLICATED_HEADS = (0, 16)
"""First core that trains with more TP ranks than key/value heads."""


def check_startable(plan: Plan, job: Job, file: str) -> None:
    """Raises InputError with everything that keeps the framework from starting with this plan."""
    tp = max(stage.tp for stage in plan.pipeline.stages)
    hint = f"search with another TP degree, e.g. --fixed-tp {max(1, tp // 2)}"
    reasons = [f"{reason}; {hint}" for reason in _tp_reasons(plan, job, tp)]
    if reasons := [*reasons, *_other_reasons(plan, job)]:
        raise InputError(Mistake(file, "", reason) for reason in reasons)


def _other_reasons(plan: Plan, job: Job) -> Iterator[str]:
    pipeline, arguments = plan.pipeline, job.arguments
    if pipeline.num_chunks > 1 and arguments.has("--no-overlap-p2p-communication"):
        yield (
            "its interleaved schedule counts overlapped messages, and --no-overlap-p2p-communication switches that "
            "off; remove the flag, or plan with --schedule 1f1b"
        )
    batch = arguments.count("--eval-global-batch-size")
    replicas = (arguments.count("--eval-micro-batch-size") or pipeline.micro_batch_size) * pipeline.dp
    if batch is not None and replicas and batch % replicas:
        yield (
            f"DP x micro-batch, {replicas}, does not divide --eval-global-batch-size, {batch}; choose with --fixed-dp "
            "and --micro-batch-size"
        )


def _tp_reasons(plan: Plan, job: Job, tp: int) -> Iterator[str]:
    model, training = plan.experiment.model, plan.experiment.training
    widths = {"--ffn-hidden-size": model.ffn_hidden_size} if "dense" in model.distinct_layer_types else {}
    if model.moe is not None:
        widths["--moe-ffn-hidden-size"] = model.moe.expert_ffn_hidden_size
        widths["--moe-shared-expert-intermediate-size"] = model.moe.shared_ffn_hidden_size
    if training.sequence_parallel:
        widths["--seq-length"] = training.seq_length
    for flag, width in widths.items():
        if width % tp:
            yield f"TP {tp} does not divide {flag}, {width}"
    if model.mla is None and tp > model.num_kv_heads and _old_core(job):
        groups = f"--num-query-groups, {model.num_kv_heads}"
        yield f"{job.framework.title} needs TP to divide {groups}, and the plan has {tp}"


def _old_core(job: Job) -> bool:
    """MindSpeed's core is 0.12; a Megatron-LM whose version is not known is taken for a new one."""
    if job.framework.is_ascend:
        return True
    version = job.framework.export_version
    return version is not None and parsed_version(version) < REPLICATED_HEADS
