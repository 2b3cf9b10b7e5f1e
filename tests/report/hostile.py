"""A plan whose names try to run a script or to write elsewhere."""

from __future__ import annotations

from typing import Any

from poseidon.inputs.experiment import experiment_from_resolved
from poseidon.output.plan_file import plan_from_json
from poseidon.output.plan_json import plan_to_json
from poseidon.plan.plan import Plan

SCRIPT = "</script><script>window.ran='script'</script>"
IMAGE = "<img src=x onerror=\"window.ran='image'\">"
QUOTE = "'\"><svg onload=window.ran='svg'>"
COMMENT = "<!--<script>window.ran=1//"
HOSTILE = (SCRIPT, IMAGE, QUOTE, COMMENT)


HARMLESS = ("one", "two", "three", "four")


def hostile_plan(plan: Plan, words: tuple[str, str, str, str] = HOSTILE) -> Plan:
    """The plan with these words wherever a file may have names of its own, and read again from its JSON."""
    script, image, quote, comment = words
    names = {"fast": script, "slow": image}

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {names.get(key, key): renamed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [renamed(item) for item in value]
        if isinstance(value, str):
            accelerator, slash, rest = value.partition("/")
            return names.get(accelerator, accelerator) + slash + rest
        return value

    data = renamed(plan_to_json(plan))
    data["inputs"]["model"]["name"] = quote
    data["inputs"]["cluster"]["name"] = comment
    data["inputs"]["name"] = "../../../escaped"
    data["inputs"]["files"] = {f"../../{image}": script}
    data["search"] |= {"warnings": [image], "backend": quote, "pruned": {script: 3}}
    data["outer_choice"] = script
    data["recompute"] = image
    assert experiment_from_resolved(data["inputs"]).model.name == quote
    return plan_from_json(data, "hostile.json")
