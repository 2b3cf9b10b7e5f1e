"""The most that a pass allocates: from the allocator's statistics, on CPU (which has none) by following all tensors."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from poseidon.profile.measure.device import Device


def peak_bytes(run: Callable[[], Any], device: Device) -> int:
    """Most bytes that are allocated at once while `run` runs, beside what was there before."""
    if device.kind == "cpu":
        with _LiveTensors() as live:
            run()
        return int(live.peak_bytes)
    device.synchronize()
    before = device.reset_peak()
    run()
    device.synchronize()
    return device.peak_bytes() - before


class _LiveTensors(TorchDispatchMode):
    """Adds up the memory of all tensors that operations make, until nobody holds it any more.

    What an operation needs for itself and frees before it returns is not seen.
    """

    def __init__(self) -> None:
        super().__init__()
        self.peak_bytes = 0
        self._live_bytes = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for tensor in _tensors((args, kwargs)):
            self._watch(tensor.untyped_storage(), 0)
        result = function(*args, **kwargs)
        for tensor in _tensors(result):
            storage = tensor.untyped_storage()
            self._watch(storage, storage.nbytes())
        self.peak_bytes = max(self.peak_bytes, self._live_bytes)
        return result

    def _watch(self, storage: Any, num_bytes: int) -> None:
        key = storage._cdata
        if key in self._known:
            return
        self._known.add(key)
        self._live_bytes += num_bytes
        weakref.finalize(storage, self._gone, key, num_bytes)

    def _gone(self, key: int, num_bytes: int) -> None:
        self._known.discard(key)
        self._live_bytes -= num_bytes


def _tensors(tree: Any) -> list[Any]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]
