"""How the accelerators of a machine are asked for, and what the answers mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from poseidon.errors import InputError, Mistake

MOST_DEVICES = 1_024


@dataclass(frozen=True)
class DeviceQuery:
    """A program that lists devices, and the reader of its answer (one name for each device, in order)."""

    words: tuple[str, ...]
    names: Callable[[str], tuple[str, ...]]


def nvidia_names(answer: str) -> tuple[str, ...]:
    """``NVIDIA A100-SXM4-80GB``, one a line (``--format=csv,noheader``)."""
    return tuple(line.strip() for line in answer.splitlines() if line.strip() and "No devices" not in line)


def ascend_names(answer: str) -> tuple[str, ...]:
    """The chips of ``npu-smi info -m``: columns NPU ID, Chip ID, Chip Logic ID, Chip Name.

    A management chip (Mcu) has no logic ID.
    """
    names = []
    for line in answer.splitlines():
        cells = line.split(maxsplit=3)
        if len(cells) == 4 and all(cell.isdigit() for cell in cells[:3]):
            names.append(" ".join(cells[3].split()))
    return tuple(names)


def torch_names(answer: str) -> tuple[str, ...]:
    """One a line, as our own program below prints them."""
    return tuple(line.strip() for line in answer.splitlines() if line.strip())


_TORCH_PROGRAM = (
    "import importlib.util as u, torch; u.find_spec('torch_npu') and __import__('torch_npu'); "
    "kinds = [kind for kind in (torch.cuda, getattr(torch, 'npu', None)) if kind]; "
    "[print(kind.get_device_name(i)) for kind in kinds for i in range(kind.device_count())]"
)

QUERIES = (
    DeviceQuery(("nvidia-smi", "--query-gpu=name", "--format=csv,noheader"), nvidia_names),
    DeviceQuery(("npu-smi", "info", "-m"), ascend_names),
    DeviceQuery(("python3", "-c", _TORCH_PROGRAM), torch_names),
)
"""In the order in which they are tried: NVIDIA's tool, Ascend's, and PyTorch (AMD, or where there is no tool)."""


@dataclass(frozen=True)
class Answer:
    """What a program said; `status` 127 is what a shell says where there is no such program."""

    status: int
    text: str
    error: str


def device_names(host: str, ask: Callable[[tuple[str, ...]], Answer]) -> tuple[str, ...]:
    """The devices of a machine, whose programs `ask` runs; InputError where none of them finds any."""
    said = []
    for query in QUERIES:
        answer = ask(query.words)
        names = query.names(answer.text) if answer.status == 0 else ()
        if names:
            return names[:MOST_DEVICES]
        said.append(f"{query.words[0]} {_outcome(answer)}")
    message = f"no accelerators were found ({', '.join(said)}); describe the cluster in a file and give --cluster FILE"
    raise InputError(Mistake(host, "", message))


def _outcome(answer: Answer) -> str:
    if answer.status == 127:
        return "is not there"
    return "lists none" if answer.status == 0 else f"failed with {answer.status}"
