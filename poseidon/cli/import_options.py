"""The options of ``poseidon import``: what files may not say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from poseidon.profile.importers import ImportOptions

Command = TypeVar("Command", bound=Callable[..., Any])

_COUNT = click.IntRange(1, 10_000_000)
_FILE = click.Path(path_type=Path)

_OPTIONS = (
    click.option("--out", type=_FILE, metavar="PATH", help="The profile to write (with --to: a folder)."),
    click.option("--to", type=click.Choice(("metis",)), help="The other way: write Metis' files from a profile."),
    click.option("--model", type=_FILE, metavar="FILE", help="Supplies weights and activations that the files lack."),
    click.option("--cluster", type=_FILE, metavar="FILE", help="For --fill; also checks times against the peak."),
    click.option(
        "--fill", type=click.Choice(("analytic",)), help="Make up missing rows by formula, marked in the file."
    ),
    click.option("--accelerator", metavar="NAME", help="What the files were measured on, where they don't say."),
    click.option(
        "--rename", multiple=True, metavar="OLD=NEW", help="Calls an accelerator as the cluster does; repeatable."
    ),
    click.option("--tp", type=_COUNT, metavar="N", help="TP degree, where the files don't say."),
    click.option(
        "--micro-batch-size",
        "micro_batch_sizes",
        type=_COUNT,
        multiple=True,
        metavar="N",
        help="Sequences of a micro-batch, where the files don't say; repeatable.",
    ),
    click.option("--num-micro-batches", type=_COUNT, metavar="M", help="Of an iteration, for logs that don't say."),
    click.option("--pipeline-stages", type=_COUNT, metavar="N", help="For logs that don't say (default 1)."),
    click.option("--seq-length", type=_COUNT, metavar="S", help="Tokens of a sequence, where the files don't say."),
    click.option("--precision", type=click.Choice(("bf16", "fp16")), help="Of the profile (default bf16)."),
    click.option(
        "--recompute", type=click.Choice(("none", "selective", "full")), help="What was recomputed (default none)."
    ),
    click.option(
        "--backward-ratio",
        type=click.FloatRange(0.1, 10),
        metavar="R",
        help="Backward over forward, where the files have one number for both (default 2).",
    ),
    click.option(
        "--embedding-share",
        type=click.FloatRange(0, 1),
        metavar="F",
        help="The embedding's part of embedding and head, where the files have one number for both (default 0).",
    ),
    click.option("--element-bytes", type=click.Choice(("2", "4")), help="Bytes of a weight in the files' numbers."),
    click.option(
        "--state-bytes",
        type=click.FloatRange(0, 100),
        metavar="B",
        help="Bytes of training state a parameter in Metis' memory numbers (default 18, or 20 for 4-byte weights).",
    ),
)

_FIELDS = (
    *("accelerator", "tp", "micro_batch_sizes", "num_micro_batches", "pipeline_stages", "seq_length"),
    *("precision", "recompute", "backward_ratio", "embedding_share", "state_bytes", "cluster"),
)
"""Options whose names are those of `ImportOptions`."""


def import_options(command: Command) -> Command:
    """Adds them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def options_from(given: Mapping[str, Any]) -> ImportOptions:
    """The options as the importers take them; InputError where the model can't be read."""
    from poseidon.inputs import load_model
    from poseidon.profile.importers import ImportOptions

    chosen = {name: given[name] for name in _FIELDS if given[name] is not None}
    element_bytes = given["element_bytes"]
    return ImportOptions(
        model=load_model(given["model"]) if given["model"] is not None else None,
        model_file=given["model"],
        rename=_renamed(given["rename"]),
        element_bytes=int(element_bytes) if element_bytes is not None else None,
        fill=given["fill"] is not None,
        **chosen,
    )


def _renamed(pairs: tuple[str, ...]) -> dict[str, str]:
    names: dict[str, str] = {}
    for pair in pairs:
        old, equals, new = pair.partition("=")
        if not (old and equals and new):
            raise click.UsageError(f"--rename {pair}: OLD=NEW is expected")
        names[old] = new
    return names
