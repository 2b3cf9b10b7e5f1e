"""The HTML page of a report: one file that loads nothing and may load nothing.

Its Content-Security-Policy allows the page's own script and style sheet by their hashes and nothing else (W3C, Content
Security Policy Level 3, section 2.3.1), so that even a name that slipped through unescaped could neither run nor send.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from poseidon.output.json_text import json_line
from poseidon.output.numbers import milliseconds, plural
from poseidon.report.breakdown import Breakdown
from poseidon.report.figures import MEMORY_PARTS, TIME_PARTS, path_bar, time_bar
from poseidon.report.page_plan import plan_context
from poseidon.report.sensitivity import Sensitivity
from poseidon.report.simulated import Simulated
from poseidon.report.timeline_data import MOST_DRAWN, timeline_to_json
from poseidon.report.words import kept_together, share_words

TEMPLATE, STYLE = "report.html.jinja", "report.css"
SCRIPTS = ("data.js", "view.js", "colours.js", "drawing.js", "words.js", "input.js")
"""Parts of one script, in the order in which they need each other."""
UNSAFE_IN_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""What could end a script element or a line of it (HTML Standard, "Restrictions for contents of script elements")."""


def page_html(simulated: Simulated, breakdown: Breakdown, sensitivity: Sensitivity | str | None) -> str:
    """The page as text; `sensitivity` may be the reason why there is none, or None where nobody asked for it."""
    style, script = _source(STYLE), _script()
    timeline = timeline_to_json(simulated)
    context: dict[str, Any] = {
        "policy": _policy(style, script),
        "style": Markup(style),
        "script": Markup(script),
        "simulated": simulated,
        "breakdown": breakdown,
        "iteration_ms": simulated.iteration_time_ms,
        "data": None if timeline is None else _embedded(timeline),
        "most_drawn": MOST_DRAWN,
        "num_operations": simulated.timeline.order.num_operations,
        "kinds": _kinds(simulated),
        "time_parts": TIME_PARTS,
        "memory_legend": [*((style, name) for style, name, _ in MEMORY_PARTS), ("path", "limit")],
        "path_parts": path_bar(breakdown.path, simulated.iteration_time_ms),
        "stage_bars": [time_bar(parts) for parts in breakdown.stages],
        "device_bar": time_bar(breakdown.devices),
        "version": _version(),
        "plan": None,
    }
    if simulated.plan is not None:
        context["plan"] = plan_context(simulated.plan, simulated.iteration_time_ms, breakdown, sensitivity)
    return _environment().get_template(TEMPLATE).render(context)


def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update({"ms": milliseconds, "share": _share, "plural": plural})
    return environment


def _share(fraction: float) -> str:
    return kept_together(share_words(fraction))


def _source(name: str) -> str:
    return (files("poseidon.report") / "page" / name).read_text(encoding="utf-8")


def _script() -> str:
    """All parts in one block, so that their names stay their own."""
    parts = (_source(f"timeline/{name}") for name in SCRIPTS)
    return '"use strict";\n{\n' + "\n".join(parts) + "}\n"


def _policy(style: str, script: str) -> str:
    rules = (
        "default-src 'none'",
        f"script-src {_hash(script)}",
        f"style-src {_hash(style)}",
        "img-src data:",  # the empty icon, for which browsers would ask otherwise
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def _hash(text: str) -> str:
    """The source expression of an inline element with exactly this content."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _embedded(data: dict[str, Any]) -> Markup:
    """JSON that nothing in a page takes for markup."""
    text = json_line(data)
    for character, escaped in UNSAFE_IN_SCRIPT.items():
        text = text.replace(character, escaped)
    return Markup(text)


def _kinds(simulated: Simulated) -> list[tuple[str, str]]:
    """Style and name of what is drawn."""
    names = {"F": "forward", "B": "backward", "I": "backward: input part", "W": "backward: weight part"}
    there = {action.kind for stage in simulated.timeline.order.stages for action in stage}
    drawn = [(f"kind-{kind}", name) for kind, name in names.items() if kind in there]
    if any(stage.all_reduce_ms > 0 for stage in simulated.timeline.stages):
        drawn.append(("reduce", "gradient all-reduce"))
    if (simulated.messages.arrived_ms > simulated.messages.sent_ms).any():
        drawn.append(("transfer", "message (from near)"))
    return [*drawn, ("path", "critical path")]


def _version() -> str:
    try:
        return version("poseidon-planner")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return ""
