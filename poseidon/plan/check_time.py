"""Whether a plan takes as long as it says, by a plain replay of its operations."""

from __future__ import annotations

import math

from poseidon.inputs.experiment import Experiment
from poseidon.plan.finding import Finding, Verdict
from poseidon.plan.plan import Pipeline
from poseidon.plan.replay import PlainTimes, replayed_time_ms
from poseidon.plan.throughput import model_flops_utilisation, tokens_per_second
from poseidon.plan.timing import pipeline_order

TOLERANCE = 1e-9


def check_iteration_time(pipeline: Pipeline) -> Finding:
    """The plan's iteration time against the replay."""
    stages = pipeline.stages
    times = PlainTimes(
        forward_ms=[stage.forward_ms for stage in stages],
        backward_ms=[stage.backward_ms for stage in stages],
        send_forward_ms=[stage.send_forward_ms for stage in stages],
        send_backward_ms=[stage.send_backward_ms for stage in stages],
        all_reduce_ms=[stage.all_reduce_ms for stage in stages],
    )
    replayed = replayed_time_ms(pipeline_order(pipeline), times)
    if math.isclose(replayed, pipeline.iteration_time_ms, rel_tol=TOLERANCE):
        return Finding("iteration time", Verdict.RIGHT, f"{replayed:.3f} ms, by replaying every operation")
    detail = f"replaying every operation takes {replayed:.6f} ms; the plan says {pipeline.iteration_time_ms:.6f}"
    return Finding("iteration time", Verdict.WRONG, detail)


def check_throughput(experiment: Experiment, pipeline: Pipeline) -> Finding:
    """Tokens per second and MFU follow from the iteration time."""
    time_ms = pipeline.iteration_time_ms
    for name, given, expected in (
        ("tokens_per_second", pipeline.tokens_per_second, tokens_per_second(experiment, time_ms)),
        ("mfu", pipeline.mfu, model_flops_utilisation(experiment, time_ms, pipeline.stages)),
    ):
        if not math.isclose(given, expected, rel_tol=TOLERANCE):
            return Finding("throughput", Verdict.WRONG, f"{name} is {given:.6g}, worked out {expected:.6g}")
    detail = f"{pipeline.tokens_per_second:,.0f} tokens/s, MFU {100 * pipeline.mfu:.1f} %"
    return Finding("throughput", Verdict.RIGHT, detail)
