"""What became of a command: for people, as a shell command, and for programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from rich.text import Text

from poseidon.launch.launcher import LauncherCall
from poseidon.launch.prepare import Prepared
from poseidon.launch.rewrite import Change
from poseidon.output.console import rendered
from poseidon.output.numbers import milliseconds, percent, plural
from poseidon.output.plan_json import plan_to_json
from poseidon.output.plan_view import shape_line
from poseidon.plan.plan import Plan
from poseidon.search.result import SolutionStatus

ORIGINS = {"file": "from --plan", "cache": "from the cache", "search": "searched now"}


def launch_text(prepared: Prepared, stream: TextIO) -> str:
    """The framework, the plan, the flags that change, and what there is to know. Flags are never broken or cut."""
    plan = prepared.plan
    head = [
        Text(f"{prepared.framework.title} ({prepared.framework.evidence}): {plan.experiment.name}", style="bold"),
        Text(f"{shape_line(plan.pipeline)}: {milliseconds(plan.pipeline.iteration_time_ms)} ms an iteration predicted"),
        Text(f"The plan is {_proof(plan)}, {ORIGINS[prepared.origin]}. Layers: {_layers(plan)}."),
    ]
    notes = [Text(f"Note: {note}") for note in prepared.notes]
    applied = prepared.applied
    changes = [f"  {line}" for line in change_lines(applied.changes, applied.num_kept)]
    return "\n".join(part for part in (rendered(head, stream), *changes, rendered(notes, stream)) if part)


def _proof(plan: Plan) -> str:
    return "proven optimal" if plan.status is SolutionStatus.OPTIMAL else f"within {percent(plan.gap)} of the optimum"


def _layers(plan: Plan) -> str:
    """``4 + 10 + 10 on a, b, b``, at most 24 stages."""
    stages = plan.pipeline.stages[:24]
    layers = " | ".join(f"{'+'.join(map(str, stage.layers))} {stage.accelerator}" for stage in stages)
    return layers + (" | ..." if len(plan.pipeline.stages) > len(stages) else "")


def change_lines(changes: tuple[Change, ...], num_kept: int) -> Iterator[str]:
    """One line for each flag that changes, removed ones first, and how many stay."""
    order = ("removed", "changed", "added")
    for change in sorted(changes, key=lambda change: order.index(change.kind)):
        after = change.after.removeprefix(f"{change.flag} ") if change.before else change.after
        shown = " -> ".join(_printable(part) for part in (change.before, after) if part)
        yield f"{change.kind:8} {shown}  ({change.reason})"
    yield f"kept     {plural(num_kept, 'other flag')}, in their order"


def _printable(text: str) -> str:
    """On one line, whatever a flag's value is."""
    return text if text.isprintable() else ascii(text)[1:-1]


def shell_command(call: LauncherCall, environment: Mapping[str, str]) -> str:
    """The call as it can be pasted into a shell, a flag a line; `environment` is set for it alone."""
    assignments = [f"{name}={shlex.quote(value)}" for name, value in environment.items()]
    start = " ".join([*assignments, shlex.join((*call.program, *call.options.words))])
    lines: list[str] = [start, shlex.quote(call.script)]
    for word in call.arguments:
        quoted = shlex.quote(word)
        if word.startswith("--") or len(lines) == 2:
            lines.append(quoted)
        else:
            lines[-1] += f" {quoted}"
    return " \\\n  ".join(lines)


def launch_to_json(prepared: Prepared, environment: Mapping[str, str]) -> dict[str, Any]:
    """The same for programs; the exit status is added when there is one."""
    applied, framework = prepared.applied, prepared.framework
    return {
        "framework": framework.name,
        "framework_version": framework.version,
        "command": list(applied.call.words),
        "shell": shell_command(applied.call, environment),
        "environment": dict(environment),
        "changes": [
            {"kind": c.kind, "flag": c.flag, "before": c.before, "after": c.after, "reason": c.reason}
            for c in applied.changes
        ],
        "kept": applied.num_kept,
        "notes": list(prepared.notes),
        "plan_from": prepared.origin,
        "plan": plan_to_json(prepared.plan),
        "exit_status": None,
    }
