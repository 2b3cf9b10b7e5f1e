"""Shell scripts that start a plan's processes, each place with its number, on a node."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from poseidon.output.export.places import Place

NAME = "launch.sh"
DEFAULT_PORT = 29500
"""torchrun's own (torch.distributed.run)."""


@dataclass(frozen=True)
class Launcher:
    """A command that starts a place's processes.

    It may use ``$place``, ``$num_processes``, ``$MASTER_ADDR``, ``$MASTER_PORT``, the user's own arguments ``"$@"`` and
    the plan's ``"${flags[@]}"``; ``{num_places}`` is replaced. `usage` stands for the user's arguments in examples.
    """

    command: str
    usage: str


TORCHRUN = Launcher(
    """exec torchrun --nnodes {num_places} --node-rank "$place" --nproc-per-node "$num_processes" \\
  --master-addr "$MASTER_ADDR" --master-port "$MASTER_PORT" "$@" "${flags[@]}\"""",
    "pretrain_gpt.py YOUR_FLAGS",
)


def launch_script(
    about: Sequence[str],
    places: Sequence[Place],
    launcher: Launcher,
    flags: Sequence[Sequence[str]],
    *,
    before: Sequence[str] = (),
) -> str:
    """The script; `about` are lines of its head comment, `flags` the plan's, each with its values."""
    head = ["#!/usr/bin/env bash", *(f"# {line}".rstrip() for line in about), "#"]
    head += [f"# Run it on every node, with the number of the place: bash {NAME} NUMBER {launcher.usage}"]
    head += [f"#   {place.number}: {place}" for place in places]
    body = [
        "set -euo pipefail",
        f"place=${{1:?usage: bash {NAME} NUMBER {launcher.usage}}}",
        "shift",
        *_master(places[0]),
        'case "$place" in',
        *(f"  {_case(place)}" for place in places),
        f'  *) echo "{NAME}: there is no place $place; 0 to {len(places) - 1} are" >&2; exit 2 ;;',
        "esac",
        *before,
        "flags=(",
        *(f"  {shlex.join(flag)}" for flag in flags),
        ")",
        launcher.command.replace("{num_places}", str(len(places))),
    ]
    return "\n".join([*head, *body]) + "\n"


def _master(first: Place) -> list[str]:
    """Where the processes meet: on the first place's host, whose address is asked for where it is not known."""
    address = (
        f': "${{MASTER_ADDR:={first.host}}}"'
        if first.is_host_known
        else f': "${{MASTER_ADDR:?set MASTER_ADDR to the address of {first.host}, where rank 0 runs}}"'
    )
    return [address, f': "${{MASTER_PORT:={DEFAULT_PORT}}}"', "export MASTER_ADDR MASTER_PORT"]


def _case(place: Place) -> str:
    visible = "" if place.is_whole_node else f"; export {place.visible_devices}={place.device_list}"
    return f"{place.number}) num_processes={place.num_ranks}{visible} ;;"


def start_command(place: Place, launcher: Launcher) -> str:
    """What a person types on the place's node."""
    return f"bash {NAME} {place.number} {launcher.usage}"
