"""The vocabulary layers: the embedding before the first layer and the head (final norm, logits, loss) after the last.

Both are split by vocabulary over TP (Megatron-LM). The head keeps fp32 logits until the backward pass: Korthikanti et
al. 2022 (arXiv 2205.05198), section 4.3.
"""

from __future__ import annotations

from poseidon.inputs.model import Model
from poseidon.profile.micro_batch import ELEMENT_BYTES, MicroBatch
from poseidon.profile.operation import Kept, Operation, elementwise, matmul
from poseidon.profile.residual_stream import has_dropout, norm, stream_bytes

TOKEN_ID_BYTES = 8
LOGIT_BYTES = 4
"""The loss is computed in fp32."""
LOSS_PASSES = 5
"""Passes over the fp32 logits: write, maximum, subtract and exponentiate (2), sum."""


def embedding_operations(model: Model, batch: MicroBatch) -> tuple[Operation, ...]:
    """Lookup (and learned positions, and dropout); keeps the token numbers and a dropout mask."""
    looked_up = batch.tokens * model.hidden_size * ELEMENT_BYTES
    stream = stream_bytes(model.hidden_size, batch)
    mask = stream / ELEMENT_BYTES if has_dropout(model) else 0.0
    added = 3 * stream + mask if model.max_position_embeddings is not None else 0.0
    kept = batch.tokens * TOKEN_ID_BYTES + mask
    return (elementwise("embedding", 2.0 * looked_up + added, kept=Kept(kept)),)


def head_operations(model: Model, batch: MicroBatch) -> tuple[Operation, ...]:
    """Final norm, output projection, loss; keeps the norm's input and output and the fp32 logits."""
    columns = model.vocab_size / batch.tp
    logits = batch.tokens * columns * LOGIT_BYTES
    stream = stream_bytes(model.hidden_size, batch)
    operations = [norm("final norm", model.hidden_size, batch)] if model.final_norm else []
    return (
        *operations,
        matmul("logits", batch.tokens, model.hidden_size, columns, kept=Kept(stream)),
        elementwise("loss", LOSS_PASSES * logits, kept=Kept(logits)),
    )
