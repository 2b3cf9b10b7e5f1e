"""Reports: one HTML page about a plan, its trace and its picture, and what a change of the cluster would give."""

from poseidon.report.breakdown import Breakdown, StageParts, break_down
from poseidon.report.page import page_html
from poseidon.report.sensitivity import Sensitivity, find_sensitivity
from poseidon.report.simulated import Simulated, simulated_plan, simulated_stages
from poseidon.report.summary import summary_to_json
from poseidon.report.trace import trace_json

__all__ = [
    "Breakdown",
    "Sensitivity",
    "Simulated",
    "StageParts",
    "break_down",
    "find_sensitivity",
    "page_html",
    "simulated_plan",
    "simulated_stages",
    "summary_to_json",
    "trace_json",
]
