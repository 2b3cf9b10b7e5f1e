"""What is known of an accelerator by the name that its driver gives it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from poseidon.errors import InputError, Mistake
from poseidon.inputs.accelerator import Accelerator
from poseidon.inputs.file_model import nearest, shown
from poseidon.inputs.reading import read_document
from poseidon.inputs.validation import validate
from poseidon.launch.flag_table import DATA


@dataclass(frozen=True)
class KnownAccelerator:
    """One type of device. `name` is that of its file in configs/accelerators."""

    name: str
    accelerator: Accelerator


def accelerator_called(device: str, host: str) -> KnownAccelerator:
    """The type of a device; InputError, with what to do, for a name that is not known."""
    found = _by_device().get(_bare(device))
    if found is not None:
        return found
    similar = nearest(_bare(device), _by_device())
    hint = f" (known is {shown(_by_device()[similar].name)}, which has another name)" if similar else ""
    message = (
        f"has a device {shown(device)} whose speed is not known{hint}; describe it in a cluster file (peak_tflops and "
        "memory_gb of the accelerator, its nodes and links) and give --cluster FILE"
    )
    raise InputError(Mistake(host, "", message))


@functools.cache
def _by_device() -> Mapping[str, KnownAccelerator]:
    file = DATA / "accelerators.yaml"
    known: dict[str, KnownAccelerator] = {}
    for name, entry in read_document(file).data["accelerators"].items():
        fields = {key: value for key, value in entry.items() if key != "devices"}
        accelerator = validate(Accelerator, fields, str(file), ("accelerators", name))
        known |= {_bare(device): KnownAccelerator(name, accelerator) for device in entry["devices"]}
    return known


def _bare(device: str) -> str:
    """A name as it is compared: without the maker that newer drivers put before it."""
    return " ".join(device.lower().removeprefix("nvidia ").split())
