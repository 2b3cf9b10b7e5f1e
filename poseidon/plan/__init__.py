"""The plan: what to run where, built from a search's answer and re-checked without it."""

from poseidon.plan.build import build_plan
from poseidon.plan.check import PlanCheckError, assured, check_pipeline, check_plan
from poseidon.plan.finding import Finding, Verdict
from poseidon.plan.plan import CriticalPathShares, NodeDevices, NoPlan, Pipeline, Plan, PlannedStage, SearchSummary
from poseidon.plan.timing import pipeline_order, pipeline_timeline, pipeline_times

__all__ = [
    "CriticalPathShares",
    "Finding",
    "NoPlan",
    "NodeDevices",
    "Pipeline",
    "Plan",
    "PlanCheckError",
    "PlannedStage",
    "SearchSummary",
    "Verdict",
    "assured",
    "build_plan",
    "check_pipeline",
    "check_plan",
    "pipeline_order",
    "pipeline_timeline",
    "pipeline_times",
]
