"""The device of this process: CPU, CUDA (also ROCm) or Ascend NPU behind the same few calls."""

from __future__ import annotations

import importlib.util
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from poseidon.errors import InputError, Mistake

DeviceKind = Literal["cpu", "cuda", "npu"]
BACKENDS: dict[DeviceKind, str] = {"cpu": "gloo", "cuda": "nccl", "npu": "hccl"}
"""The torch.distributed backend of each kind."""


@dataclass(frozen=True)
class Device:
    """One device; `index` is its number on this node."""

    kind: DeviceKind
    index: int

    @property
    def torch_device(self) -> Any:
        """What tensors are made on."""
        return torch.device("cpu") if self.kind == "cpu" else torch.device(self.kind, self.index)

    @property
    def backend(self) -> str:
        """The torch.distributed backend."""
        return BACKENDS[self.kind]

    @property
    def _runtime(self) -> Any:
        """torch.cpu, torch.cuda or torch.npu (torch_npu adds the last one, with the names of torch.cuda)."""
        return getattr(torch, self.kind)

    @property
    def name(self) -> str:
        """What the device calls itself."""
        return _cpu_name() if self.kind == "cpu" else str(self._runtime.get_device_name(self.index))

    def select(self) -> None:
        """Makes it the current device of this process."""
        if self.kind != "cpu":
            self._runtime.set_device(self.index)

    def synchronize(self) -> None:
        """Returns when everything that was started on the device is done."""
        self._runtime.synchronize()

    def reset_peak(self) -> int:
        """Starts a new peak; bytes that are allocated now. Not on CPU, which has no allocator statistics."""
        self._runtime.reset_peak_memory_stats(self.index)
        return int(self._runtime.memory_allocated(self.index))

    def peak_bytes(self) -> int:
        """Most bytes that were allocated since `reset_peak`."""
        return int(self._runtime.max_memory_allocated(self.index))

    def release(self) -> None:
        """Gives cached memory back, so that a cell doesn't feel the fragments of the one before."""
        if self.kind != "cpu":
            self._runtime.empty_cache()


def find_device(kind: str, index: int) -> Device:
    """The device of this process; `auto` takes an NPU, else a GPU, else the CPU.

    Raises InputError where there is no such device, or none for this process.
    """
    if kind in ("auto", "npu") and importlib.util.find_spec("torch_npu") is not None:
        importlib.import_module("torch_npu")  # registers torch.npu and hccl
    present: dict[DeviceKind, int] = {name: _count(name) for name in ("npu", "cuda")}
    chosen = next((name for name in present if kind in ("auto", name) and present[name]), None)
    if chosen is None:
        if kind in present:
            hint = " (is torch_npu installed?)" if kind == "npu" else ""
            raise InputError(Mistake("--device", "", f"torch finds no {kind} device{hint}"))
        return Device("cpu", index)
    if index >= present[chosen]:
        raise InputError(
            Mistake("--device", "", f"{present[chosen]} {chosen} devices, but torchrun started process {index}")
        )
    return Device(chosen, index)


def _count(kind: DeviceKind) -> int:
    runtime = getattr(torch, kind, None)
    return int(runtime.device_count()) if runtime is not None and runtime.is_available() else 0


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
