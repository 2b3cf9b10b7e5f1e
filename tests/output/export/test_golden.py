"""What the shipped experiments' plans become, in full, as it was looked at once (golden/README.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from poseidon.errors import InputError
from poseidon.output.export import FRAMEWORKS, export_plan
from poseidon.plan.plan import Plan

GOLDEN = Path(__file__).parent / "golden"
EXPERIMENTS = ("quickstart", "setting1", "setting2", "setting3", "setting4", "setting5")


def summary(plan: Plan) -> dict[str, Any]:
    """Where everything starts, and each framework's settings, or why it can't run the plan."""
    shown: dict[str, Any] = {"places": [str(place) for place in export_plan(plan, "plan.json", "megatron").places]}
    for framework in FRAMEWORKS:
        try:
            export = export_plan(plan, "plan.json", framework)
        except InputError as error:
            shown[framework] = {"refused": str(error).splitlines()}
            continue
        settings = dict(export.settings)
        if framework == "torchtitan":
            parallelism = dict(settings["parallelism"])  # type: ignore[call-overload]
            parts = parallelism.pop("module_fqns_per_model_part")
            settings["parallelism"] = parallelism | {"modules": [f"{part[0]} .. {part[-1]}" for part in parts]}
        shown[framework] = {"files": [file.name for file in export.files], "settings": settings}
    return shown


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_golden(searched: Callable[..., Plan], name: str) -> None:
    expected = yaml.safe_load((GOLDEN / f"{name}.yaml").read_text())
    assert summary(searched(name)) == expected
