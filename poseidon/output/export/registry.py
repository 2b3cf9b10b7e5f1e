"""The frameworks that plans can be exported to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from poseidon.errors import InputError, Mistake
from poseidon.output.export import colossalai, flagscale, hexiscale, megatron, mindspeed_llm, ms_swift, torchtitan
from poseidon.output.export.exported import Export
from poseidon.output.export.request import Refusals, Request, Version, check_layout, parsed_hosts, parsed_version
from poseidon.plan.plan import Plan


@dataclass(frozen=True)
class Framework:
    """One framework: what it is called, the version that is meant without --framework-version, and its exporter."""

    name: str
    title: str
    version: Version | None
    """None: the exporter knows one state of the framework (docs/export.md), and no version can be given."""
    refusals: Refusals
    export: Callable[[Request], Export]


FRAMEWORKS = {
    framework.name: framework
    for framework in (
        Framework("megatron", megatron.TITLE, (0, 16), megatron.refusals, megatron.export),
        Framework("mindspeed-llm", mindspeed_llm.TITLE, (26, 1), mindspeed_llm.refusals, mindspeed_llm.export),
        Framework("flagscale", flagscale.TITLE, None, flagscale.refusals, flagscale.export),
        Framework("torchtitan", torchtitan.TITLE, (0, 3), torchtitan.refusals, torchtitan.export),
        Framework("hexiscale", hexiscale.TITLE, None, hexiscale.refusals, hexiscale.export),
        Framework("ms-swift", ms_swift.TITLE, (4, 0), ms_swift.refusals, ms_swift.export),
        Framework("colossalai", colossalai.TITLE, None, colossalai.refusals, colossalai.export),
    )
}


def export_plan(plan: Plan, file: str, framework: str, version: str | None = None, hosts: str | None = None) -> Export:
    """What `framework` needs to run a plan; `file` names the plan in errors.

    InputError where the plan is damaged, or with every reason why the framework can't run it.
    """
    check_layout(plan, file)
    chosen = FRAMEWORKS[framework]
    request = Request(
        plan=plan,
        file=file,
        version=_version(chosen, version),
        hosts=() if hosts is None else parsed_hosts(hosts, plan),
    )
    refused = list(chosen.refusals(request))
    if refused:
        raise InputError(refused)
    return chosen.export(request)


def _version(framework: Framework, text: str | None) -> Version:
    if text is None:
        return framework.version or ()
    if framework.version is None:
        message = f"{framework.title} has no versions to choose from; its settings are the same for all that were read"
        raise InputError(Mistake("--framework-version", "", message))
    return parsed_version(text)


def title_of(framework: str, version: str | None) -> str:
    """The framework with the version that an export is for."""
    chosen = FRAMEWORKS[framework]
    if chosen.version is None:
        return chosen.title
    numbers = ".".join(map(str, _version(chosen, version)))
    return f"{chosen.title} {numbers}" if version else f"{chosen.title} {numbers} (the newest that is known)"
