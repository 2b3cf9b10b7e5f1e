"""A transformer layer as its list of operations, and what the list adds up to."""

from __future__ import annotations

from poseidon.inputs.model import LayerType, Model
from poseidon.inputs.training import Recompute
from poseidon.profile.attention import attention_operations
from poseidon.profile.feed_forward import feed_forward_operations
from poseidon.profile.micro_batch import MicroBatch
from poseidon.profile.operation import Operation
from poseidon.profile.residual_stream import stream_bytes


def layer_operations(model: Model, layer_type: LayerType, batch: MicroBatch) -> tuple[Operation, ...]:
    """All operations of one layer in forward order, for one device and one micro-batch."""
    return (*attention_operations(model, batch), *feed_forward_operations(model, layer_type, batch))


def layer_forward_flops(model: Model, layer_type: LayerType, batch: MicroBatch) -> float:
    """Matrix-product FLOPs of one forward pass through one layer, on one device."""
    return sum(operation.forward_flops for operation in layer_operations(model, layer_type, batch))


def kept_activation_bytes(
    operations: tuple[Operation, ...], model: Model, batch: MicroBatch, recompute: Recompute
) -> float:
    """Bytes that one layer keeps for one in-flight micro-batch on one device.

    none, selective: Korthikanti et al. 2022 (arXiv 2205.05198), eq. 1-6 generalised; full: the layer's input alone
    (Table 2).
    """
    if recompute == "full":
        return stream_bytes(model.hidden_size, batch)
    if recompute == "selective":
        return sum(operation.kept.always for operation in operations)
    return sum(operation.kept.total for operation in operations)


def recomputed_bytes(operations: tuple[Operation, ...], model: Model, batch: MicroBatch, recompute: Recompute) -> float:
    """Bytes that come back for a moment while one layer is being recomputed (0 without recomputation)."""
    kept = kept_activation_bytes(operations, model, batch, recompute)
    return kept_activation_bytes(operations, model, batch, "none") - kept
