"""What several frameworks cannot express, with the search option that avoids it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from poseidon.errors import Mistake
from poseidon.output.export.request import Request


def unequal_tp(request: Request, framework: str) -> Iterator[Mistake]:
    """One TP degree for all stages."""
    degrees = list(dict.fromkeys(stage.tp for stage in request.pipeline.stages))
    if len(degrees) > 1:
        listed = ", ".join(map(str, degrees[:8]))
        yield request.mistake(
            "stages",
            f"TP differs between stages ({listed}), and {framework} has one TP degree for all; search again with "
            "--target megatron (or --tp uniform), or export to flagscale or hexiscale",
        )


def other_schedule(request: Request, framework: str, schedules: Collection[str]) -> Iterator[Mistake]:
    """The schedules that the framework runs."""
    schedule = request.pipeline.schedule
    if schedule not in schedules:
        options = " or ".join(f"--schedule {name}" for name in schedules)
        yield request.mistake(
            "schedule",
            f"{framework} does not run {schedule}; search again with {options}, or export to torchtitan, "
            "which runs any order",
        )


def chunks_of_one_stage(request: Request, framework: str) -> Iterator[Mistake]:
    """Chunks need a pipeline."""
    if request.pipeline.num_chunks > 1 and request.pipeline.pp == 1:
        yield request.mistake(
            "num_chunks",
            f"{framework} interleaves chunks of several stages only, and the plan has one; --schedule 1f1b",
        )


def selective_recompute(request: Request, framework: str) -> Iterator[Mistake]:
    """Recomputation of a part of a layer."""
    if request.pipeline.recompute == "selective":
        yield request.mistake(
            "recompute",
            f"{framework} recomputes whole layers or nothing; search again with --recompute none or --recompute full",
        )


def experts(request: Request, framework: str, reason: str) -> Iterator[Mistake]:
    """Mixture-of-experts models."""
    if request.experiment.model.moe is not None:
        yield request.mistake(
            "inputs.model.moe", f"{framework} {reason}; export to megatron, mindspeed-llm or flagscale instead"
        )
