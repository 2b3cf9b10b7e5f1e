"""The options that say how to search and when to stop; they are named as the fields of `SearchSettings`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from poseidon.search.options import COST_MODELS, POLICIES, RIVALS

Command = TypeVar("Command", bound=Callable[..., Any])

EFFORT_FIELDS = (
    "policy",
    "cost_model",
    "gap",
    "time_limit_s",
    "node_limit",
    "seed",
    "warmup_samples",
    "stage_pruning",
    "layer_pruning",
)

_OPTIONS = (
    click.option(
        "--policy",
        type=click.Choice((*POLICIES, *RIVALS)),
        help="exact (default) proves its plan; paper is the published algorithm; brute-force times everything; "
        "metis and hexiscale are other planners (docs/rivals.md).",
    ),
    click.option(
        "--cost-model",
        type=click.Choice(COST_MODELS),
        help="Policy exact: compare plans by the DAG (default) or by the static formula eq1, to see what that costs.",
    ),
    click.option(
        "--gap",
        type=click.FloatRange(0, 1, max_open=True),
        metavar="G",
        help="Stop when the plan is proven within this fraction of the optimum (default 0).",
    ),
    click.option(
        "--time-limit",
        "time_limit_s",
        type=click.FloatRange(0, min_open=True),
        metavar="S",
        help="Stop after this many seconds with the best plan so far.",
    ),
    click.option("--node-limit", type=click.IntRange(1), metavar="N", help="Most search nodes for one outer choice."),
    click.option("--seed", type=click.IntRange(0, 2**32 - 1), metavar="N", help="Of the warm-up samples (default 0)."),
    click.option(
        "--warmup-samples",
        type=click.IntRange(0, 1_000_000),
        metavar="N",
        help="Random configurations that are timed first (default 500).",
    ),
    click.option(
        "--no-stage-pruning", "stage_pruning", flag_value=False, default=None, help="Policy paper: without Theorem 1."
    ),
    click.option(
        "--no-layer-pruning", "layer_pruning", flag_value=False, default=None, help="Policy paper: without Theorem 2."
    ),
)


def effort_options(command: Command) -> Command:
    """Adds the options, in the order of `EFFORT_FIELDS`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given(options: Mapping[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """The values of these fields that were given on the command line."""
    return {field: options[field] for field in fields if options.get(field) not in (None, ())}
