"""How many activations of each chunk a stage of the interleaved schedule holds, without replaying its order.

Megatron-LM's order runs groups of N micro-batches: the forwards visit chunks 0 .. V-1, the backwards V-1 .. 0
(Narayanan et al. 2021, arXiv 2104.04473, section 2.2). After the warm-up each backward is followed by a forward, and
the counts repeat after N V of such pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def chunk_counts(num_warmup: int, num_stages: int, num_micro_batches: int, num_chunks: int) -> NDArray[np.int64]:
    """The counts after each forward that may be a peak; shape [states, num_chunks].

    `num_warmup` is the number of chunk forwards before the first backward.
    """
    total = num_micro_batches * num_chunks
    pairs = np.arange(min(num_stages * num_chunks, total - num_warmup) + 1)
    forwards = _chunk_totals(num_warmup + pairs, num_stages, num_chunks, reverse=False)
    backwards = _chunk_totals(pairs, num_stages, num_chunks, reverse=True)
    return forwards - backwards


def _chunk_totals(
    operations: NDArray[np.int64], num_stages: int, num_chunks: int, *, reverse: bool
) -> NDArray[np.int64]:
    """Of the first n operations, how many belong to each chunk; shape [len(operations), num_chunks]."""
    rounds, rest = np.divmod(operations[:, None], num_stages * num_chunks)
    chunk = np.arange(num_chunks)
    place = num_chunks - 1 - chunk if reverse else chunk
    return np.asarray(rounds * num_stages + np.clip(rest - place * num_stages, 0, num_stages), dtype=np.int64)
