"""The attention core: softmax(Q K^T) V, fused (flash attention, the default) or as separate kernels."""

from __future__ import annotations

from poseidon.inputs.model import Model
from poseidon.profile.micro_batch import ELEMENT_BYTES, MicroBatch
from poseidon.profile.operation import Kept, Operation, elementwise, matmul
from poseidon.profile.residual_stream import has_dropout

CAUSAL_SHARE = 0.5
"""Flash attention skips masked blocks, half of the s x s scores (Dao 2023, arXiv 2307.08691, section 3.1)."""
FLASH_BACKWARD_PRODUCTS = 2.5
"""Five products backward against two forward: the scores are computed once more (Dao 2023, section 3.1.1)."""
LOG_SUM_EXP_BYTES = 4
"""Flash attention keeps one fp32 number a query and head instead of the scores."""


def attention_core(
    model: Model, batch: MicroBatch, query: float, key: float, value: float, output: float
) -> tuple[Operation, ...]:
    """The core's operations; `query` ... `output` are widths on one device, over all of its heads."""
    if not batch.flash_attention:
        return _separate_kernels(model, batch, query, key, value, output)
    inputs = batch.tokens * (query + key + value) * ELEMENT_BYTES
    moved = inputs + batch.tokens * output * ELEMENT_BYTES
    flops = 2.0 * batch.tokens * attended_tokens(model, batch.seq_length) * (query + output)
    log_sum_exp = batch.tokens * model.num_attention_heads / batch.tp * LOG_SUM_EXP_BYTES
    return (
        Operation(
            name="attention core",
            forward_flops=flops,
            backward_flops=FLASH_BACKWARD_PRODUCTS * flops,
            forward_bytes=moved,
            backward_bytes=2 * moved,
            kept=Kept(inputs + log_sum_exp),
            fused_attention=True,
        ),
    )


def attended_tokens(model: Model, seq_length: int) -> float:
    """Tokens that a token attends to on average: half of the sequence, or the sliding window less its ramp."""
    window = min(model.sliding_window or seq_length, seq_length)
    return window * (1 - CAUSAL_SHARE * window / seq_length)


def _separate_kernels(
    model: Model, batch: MicroBatch, query: float, key: float, value: float, output: float
) -> tuple[Operation, ...]:
    """Scores, softmax (with dropout) and context over the whole s x s matrix: no masked part is skipped.

    Keeps the softmax output and, with dropout, its mask and output: 5 bytes a score (Korthikanti et al. section 4.1).
    """
    heads = model.num_attention_heads / batch.tp
    scores = batch.tokens * batch.seq_length * heads
    copies = 2 if has_dropout(model) else 1
    mask = scores * (copies - 1)
    inputs = batch.tokens * (query + key + value) * ELEMENT_BYTES
    side, count = batch.seq_length, batch.size * heads
    return (
        matmul("scores", side, query / heads, side, count=count, weights=False, kept=Kept(inputs), replayed=True),
        elementwise(
            "softmax",
            2 * scores * ELEMENT_BYTES * copies + mask,
            kept=Kept(unless_selective=scores * ELEMENT_BYTES * copies + mask),
            replayed=True,
        ),
        matmul("context", side, side, output / heads, count=count, weights=False, replayed=True),
    )
