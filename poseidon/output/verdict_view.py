"""The verdict table of a checked plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from poseidon.output.console import rendered
from poseidon.plan.finding import Finding, Verdict

STYLES = {Verdict.RIGHT: "green", Verdict.WRONG: "bold red", Verdict.NOT_CHECKED: "yellow"}


def findings_text(name: str, findings: Sequence[Finding], stream: TextIO) -> str:
    """A line for each check, and one for all."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True, min_width=max(len(finding.check) for finding in findings))
    table.add_column(no_wrap=True, min_width=max(len(verdict) for verdict in Verdict))
    table.add_column()
    for finding in findings:
        table.add_row(finding.check, Text(finding.verdict, style=STYLES[finding.verdict]), Text(finding.detail))
    return rendered([table, Text(f"{name}: {_summary(findings)}", style="bold")], stream)


def _summary(findings: Sequence[Finding]) -> str:
    verdicts = [finding.verdict for finding in findings]
    wrong, open_ = verdicts.count(Verdict.WRONG), verdicts.count(Verdict.NOT_CHECKED)
    if wrong:
        return f"{wrong} of {len(findings)} checks failed"
    return "all right" + (f"; {open_} of {len(findings)} checks could not be made in full" if open_ else "")


def findings_to_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """The same for programs."""
    verdicts = {Verdict.RIGHT: "ok", Verdict.WRONG: "wrong", Verdict.NOT_CHECKED: "not checked"}
    return {
        "right": all(finding.verdict is not Verdict.WRONG for finding in findings),
        "checks": [
            {"check": finding.check, "verdict": verdicts[finding.verdict], "detail": finding.detail}
            for finding in findings
        ],
    }
