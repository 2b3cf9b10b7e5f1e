"""What a forward pass keeps for its backward pass, counted tensor by tensor: the same on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def saved_bytes(run: Callable[[], Any], module: Any) -> int:
    """Bytes of all memory that autograd keeps of one forward pass.

    Each piece of memory counts once, in full, however many tensors lie in it. Parameters and constant tables of the
    module are left out: they are there once, not once a micro-batch.
    """
    own = {tensor.untyped_storage().data_ptr() for tensor in (*module.parameters(), *module.buffers())}
    kept: dict[int, Any] = {}

    def note(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage  # held, so that its address is not used again
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        output = run()
    total = sum(storage.nbytes() for storage in kept.values())
    del output
    return int(total)
