"""``poseidon verify``: re-checks a plan without the search."""

from __future__ import annotations

from pathlib import Path

import click

from poseidon.cli.exit_codes import ExitCode
from poseidon.cli.reporting import Reporting
from poseidon.cli.result_options import result_options


@click.command("verify", short_help="Re-check a plan with code that shares nothing with the search.")
@click.argument("plan", type=click.Path(path_type=Path))
@result_options
def verify(plan: Path, as_json: bool, quiet: bool) -> int:
    """Re-checks PLAN: devices, layers, memory, times, and that no better plan exists where it says so.

    Exit status 0 if nothing is wrong, 1 if something is.

    \b
    Example:
      poseidon verify runs/quickstart/plan.json
    """
    from poseidon.output.plan_file import read_plan
    from poseidon.output.verdict_view import findings_text, findings_to_json
    from poseidon.plan.check import check_plan
    from poseidon.plan.finding import Verdict

    findings = check_plan(read_plan(plan))
    reporting = Reporting(as_json, quiet)
    reporting.tell(lambda stream: findings_text(str(plan), findings, stream))
    reporting.result(findings_to_json(findings))
    wrong = any(finding.verdict is Verdict.WRONG for finding in findings)
    return ExitCode.CHECK_FAILED if wrong else ExitCode.DONE
