"""The Python module that carries a plan into torchtitan's configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

MODULE_NAME = "poseidon_plan"

_RECOMPUTE = {
    "none": "None",
    "selective": "activation_checkpoint.SelectiveAC.Config()",
    "full": "activation_checkpoint.FullAC.Config()",
}

_FUNCTIONS = '''

def with_plan(config: Any) -> Any:
    """A torchtitan configuration with this plan's degrees, stages, schedule, batch and recomputation."""
    from torchtitan.distributed import activation_checkpoint

    found = len(config.model_spec.model.layers)
    if found != NUM_LAYERS:
        raise ValueError(f"the plan is for a model of {NUM_LAYERS} layers; this configuration's has {found}")
    return dataclasses.replace(
        config,
        parallelism=dataclasses.replace(config.parallelism, **PARALLELISM),
        training=dataclasses.replace(config.training, **TRAINING),
        activation_checkpoint={recompute},
    )


def planned() -> Any:
    """The configuration that BASE_CONFIG names (module:function), with the plan."""
    module, _, function = os.environ["BASE_CONFIG"].partition(":")
    return with_plan(getattr(importlib.import_module(module), function)())
'''


def module_text(
    head: Sequence[str],
    fqns: Sequence[Sequence[str]],
    parallelism: Mapping[str, object],
    training: Mapping[str, object],
    num_layers: int,
    recompute: str,
    csv_name: str,
) -> str:
    """The module; every value in it is a literal. Without a pipeline there are no stages and no schedule."""
    has_pipeline = parallelism["pipeline_parallel_degree"] != 1
    lines = [*(f"# {line}" for line in head), "", "from __future__ import annotations", ""]
    lines += ["import dataclasses", "import importlib", "import os"]
    lines += ["from pathlib import Path", "from typing import Any", ""]
    lines += [f"NUM_LAYERS = {num_layers}"]
    lines += ["MODULE_FQNS = [", *(f"    {json.dumps(list(part))}," for part in fqns), "]"]
    lines += [f'SCHEDULE_CSV = str(Path(__file__).with_name("{csv_name}"))']
    lines += ["PARALLELISM: dict[str, Any] = {", *(f'    "{key}": {value!r},' for key, value in parallelism.items())]
    if has_pipeline:
        lines += [
            '    "module_fqns_per_model_part": MODULE_FQNS,',
            '    "pipeline_parallel_schedule_csv": SCHEDULE_CSV,',
        ]
    lines += ["}", f"TRAINING: dict[str, Any] = {dict(training)!r}"]
    return "\n".join(lines) + "\n" + _FUNCTIONS.replace("{recompute}", _RECOMPUTE[recompute])
