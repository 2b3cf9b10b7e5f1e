"""The operations on the residual stream, which sequence parallelism splits along the sequence: norms, dropouts,
additions.

Source: Korthikanti et al. 2022 (arXiv 2205.05198), sections 4.1 and 4.2.2.
"""

from __future__ import annotations

from poseidon.inputs.model import Model
from poseidon.profile.micro_batch import ELEMENT_BYTES, MicroBatch
from poseidon.profile.operation import Kept, Operation, elementwise


def stream_bytes(width: float, batch: MicroBatch) -> float:
    """Bytes of a tokens x width activation on one device, outside the tensor-parallel regions."""
    return batch.tokens * width * ELEMENT_BYTES / batch.sequence_shards


def norm(name: str, width: int, batch: MicroBatch) -> Operation:
    """A norm over tokens x width: keeps its input, and is run again by selective recomputation (its reader keeps its
    output)."""
    size = stream_bytes(width, batch)
    return elementwise(name, 2 * size, kept=Kept(size), replayed=batch.flash_attention)


def normed_input(width: int, batch: MicroBatch) -> Kept:
    """What a matrix product keeps of its input when that is a norm's output.

    Selective recomputation drops it where attention is fused; where it isn't, selective recomputation is that of
    Korthikanti et al. section 5, the attention core alone.
    """
    size = stream_bytes(width, batch)
    return Kept(unless_selective=size) if batch.flash_attention else Kept(always=size)


def residual(name: str, model: Model, batch: MicroBatch) -> Operation:
    """Reads two tensors and writes one; with dropout also keeps a mask of one byte an element."""
    size = stream_bytes(model.hidden_size, batch)
    mask = size / ELEMENT_BYTES if has_dropout(model) else 0.0
    return elementwise(name, 3 * size + mask, kept=Kept(mask))


def has_dropout(model: Model) -> bool:
    """Whether the model is trained with dropout: GPT-2, OPT and Megatron's GPT are, models with a gated MLP are not."""
    return not model.gated_mlp
