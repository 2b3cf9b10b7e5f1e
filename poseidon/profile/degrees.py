"""Which TP degrees a model and a node allow."""

from __future__ import annotations

from poseidon.inputs.cluster import Cluster
from poseidon.inputs.model import Model


def tp_refusal(model: Model, tp: int) -> str | None:
    """Why the model can't be split over `tp` ranks; None if it can.

    TP divides the attention heads, and the key/value heads or is a multiple of them (Megatron-LM then replicates them).
    """
    heads, kv_heads = model.num_attention_heads, model.num_kv_heads
    if heads % tp:
        return f"TP {tp} does not divide the model's {heads} attention heads"
    if model.mla is None and kv_heads % tp and tp % kv_heads:
        return f"TP {tp} neither divides nor is a multiple of the model's {kv_heads} key/value heads"
    return None


def tp_degrees(model: Model, cluster: Cluster, accelerator: str) -> tuple[int, ...]:
    """TP degrees that the model and the nodes of an accelerator allow, ascending; a TP group stays in one node.

    Node groups of different sizes: a degree counts when it divides any of them.
    """
    sizes = {group.devices for group in cluster.nodes if group.accelerator == accelerator}
    degrees = {tp for size in sizes for tp in range(1, size + 1) if size % tp == 0}
    return tuple(sorted(tp for tp in degrees if tp_refusal(model, tp) is None))
