"""A script that starts one process for each rank of a node, for frameworks that torchrun can't start in their order."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from poseidon.output.export.launch_script import DEFAULT_PORT, NAME
from poseidon.output.export.request import Request
from poseidon.output.numbers import ranges

LAUNCH_USAGE = "YOUR_FLAGS"


@dataclass(frozen=True)
class Process:
    """One rank and its device."""

    rank: int
    node: int
    device: int
    stage: int
    replica: int


def processes_of(request: Request) -> tuple[Process, ...]:
    """All processes by rank: TP first, then stages, then replicas."""
    processes: list[Process] = []
    devices = [
        [(part.node, device) for part in stage.devices for device in part.devices] for stage in request.pipeline.stages
    ]
    for replica in range(request.pipeline.dp):
        for index, stage in enumerate(request.pipeline.stages):
            for node, device in devices[index][replica * stage.tp : (replica + 1) * stage.tp]:
                processes.append(Process(len(processes), node, device, index, replica))
    return tuple(processes)


def process_script(
    about: Sequence[str], request: Request, processes: Sequence[Process], flags: Sequence[Sequence[str]]
) -> str:
    """The script; it is given the node's number and further flags, and ends when all its processes have."""
    nodes = list(dict.fromkeys(process.node for process in processes))
    head = ["#!/usr/bin/env bash", *(f"# {line}" for line in about), "#"]
    head += [f"# Run it in HexiScale's checkout on every node, with the node's number: bash {NAME} NODE {LAUNCH_USAGE}"]
    head += [f"#   {node}: {request.host(node)}: ranks {_ranks(processes, node)}" for node in nodes]
    host = request.host(nodes[0])
    master = (
        f': "${{MASTER_ADDR:={host}}}"'
        if request.hosts
        else f': "${{MASTER_ADDR:?set MASTER_ADDR to the address of {host}, where rank 0 runs}}"'
    )
    body = [
        "set -euo pipefail",
        'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"',
        f"node=${{1:?usage: bash {NAME} NODE {LAUNCH_USAGE}}}",
        "shift",
        master,
        f': "${{MASTER_PORT:={DEFAULT_PORT}}}"',
        f"export MASTER_ADDR MASTER_PORT WORLD_SIZE={len(processes)}",
        'case "$node" in',
        *(f"  {node}) processes=({_pairs(processes, node)}) ;;" for node in nodes),
        f'  *) echo "{NAME}: the plan has no node $node; {ranges(nodes)} are" >&2; exit 2 ;;',
        "esac",
        "flags=(",
        '  --all_hetero_configs_path "$here/hetero_configs.json"',
        *(f"  {shlex.join(flag)}" for flag in flags),
        ")",
        "started=()",
        "trap 'kill \"${started[@]}\" 2>/dev/null || true' INT TERM",
        "# RANK:DEVICE; each process sees one device.",
        'for process in "${processes[@]}"; do',
        '  RANK="${process%:*}" CUDA_VISIBLE_DEVICES="${process#*:}" python3 llama_train.py "${flags[@]}" "$@" &',
        "  started+=($!)",
        "done",
        "status=0",
        "# The first that fails ends the others, which would wait for it.",
        'for _ in "${started[@]}"; do',
        "  code=0; wait -n || code=$?",
        '  if [ "$code" -ne 0 ] && [ "$status" -eq 0 ]; then',
        '    status=$code; kill "${started[@]}" 2>/dev/null || true',
        "  fi",
        "done",
        'exit "$status"',
    ]
    return "\n".join([*head, *body]) + "\n"


def _ranks(processes: Sequence[Process], node: int) -> str:
    return ranges([process.rank for process in processes if process.node == node])


def _pairs(processes: Sequence[Process], node: int) -> str:
    return " ".join(f"{process.rank}:{process.device}" for process in processes if process.node == node)
