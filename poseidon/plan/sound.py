"""Whether a plan that was read from a file can be reasoned about at all."""

from __future__ import annotations

from poseidon.errors import InputError, Mistake
from poseidon.plan.check_layout import check_devices, check_layers, check_neighbours, check_settings
from poseidon.plan.check_time import check_iteration_time
from poseidon.plan.finding import Verdict
from poseidon.plan.plan import Plan


def require_sound(plan: Plan, file: str) -> None:
    """Raises InputError for a plan (of `file`) whose devices, layers, settings or iteration time contradict each other.

    These are the checks of `poseidon verify` that take no time.
    """
    pipeline = plan.pipeline
    checks = (check_devices, check_layers, check_settings, check_neighbours)
    findings = [check(plan.experiment, pipeline) for check in checks]
    wrong = [finding for finding in findings if finding.verdict is Verdict.WRONG]
    if not wrong:
        wrong = [finding for finding in (check_iteration_time(pipeline),) if finding.verdict is Verdict.WRONG]
    if wrong:
        raise InputError(Mistake(file, finding.check, f"{finding.detail}; see poseidon verify") for finding in wrong)
