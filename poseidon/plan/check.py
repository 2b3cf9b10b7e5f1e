"""Re-derives a plan from its inputs, with code that shares nothing with the search."""

from __future__ import annotations

from collections.abc import Sequence

from poseidon.errors import InputError, PoseidonError
from poseidon.inputs.experiment import Experiment
from poseidon.plan.check_costs import check_memory, check_stage_times
from poseidon.plan.check_layout import check_devices, check_layers, check_neighbours, check_settings
from poseidon.plan.check_optimum import Effort, check_bound, check_optimum
from poseidon.plan.check_time import check_iteration_time, check_throughput
from poseidon.plan.finding import Finding, Verdict
from poseidon.plan.plan import Pipeline, Plan
from poseidon.plan.rebuilt import Rebuilt, rebuild


def check_plan(plan: Plan, effort: Effort | None = None) -> tuple[Finding, ...]:
    """All checks of a plan, in the order in which they make sense.

    `effort` limits the search for a better plan (by enumeration and by an independent lower bound).
    """
    findings = list(check_pipeline(plan.experiment, plan.pipeline))
    for number, alternative in enumerate(plan.alternatives, start=2):
        wrong = [item for item in check_pipeline(plan.experiment, alternative) if item.verdict is Verdict.WRONG]
        findings += [Finding(f"plan {number}: {item.check}", item.verdict, item.detail) for item in wrong]
    findings.append(check_bound(plan))
    findings.append(check_optimum(plan, effort or Effort()))
    return tuple(findings)


def check_pipeline(experiment: Experiment, pipeline: Pipeline) -> tuple[Finding, ...]:
    """Everything about one configuration but whether there is a better one: feasibility, memory, times."""
    findings = [
        check_devices(experiment, pipeline),
        check_layers(experiment, pipeline),
        check_settings(experiment, pipeline),
        check_neighbours(experiment, pipeline),
    ]
    if any(item.verdict is Verdict.WRONG for item in findings[:3]):
        rest = ("stage times", "memory", "iteration time", "throughput")
        return (*findings, *(Finding(name, Verdict.NOT_CHECKED, "the configuration is not valid") for name in rest))
    rebuilt = _rebuilt(experiment, pipeline)
    if isinstance(rebuilt, str):
        findings += [Finding(name, Verdict.NOT_CHECKED, rebuilt) for name in ("stage times", "memory")]
    else:
        findings += [check_stage_times(rebuilt, pipeline), check_memory(rebuilt, pipeline)]
    return (*findings, check_iteration_time(pipeline), check_throughput(experiment, pipeline))


class PlanCheckError(PoseidonError):
    """A plan of our own failed its check: an error of this program."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        """`findings` are what is wrong."""
        lines = [f"the plan failed our own check, please report this: {item.check}: {item.detail}" for item in findings]
        super().__init__("\n".join(lines))


def assured(plan: Plan) -> Plan:
    """The plan, if all checks pass but the one whether there is a better plan; raises PlanCheckError otherwise."""
    pipelines = (plan.pipeline, *plan.alternatives)
    findings = [item for pipeline in pipelines for item in check_pipeline(plan.experiment, pipeline)]
    wrong = [item for item in (*findings, check_bound(plan)) if item.verdict is Verdict.WRONG]
    if wrong:
        raise PlanCheckError(wrong)
    return plan


def _rebuilt(experiment: Experiment, pipeline: Pipeline) -> Rebuilt | str:
    """The costs worked out anew, or why they can't be."""
    try:
        return rebuild(experiment, pipeline)
    except InputError as error:
        return str(error).splitlines()[0]
