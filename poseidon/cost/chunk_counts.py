"""How many activations of each chunk a stage of the interleaved schedule holds, without replaying its order.

Megatron-LM's order runs groups of micro-batches (`microbatch_group_size`): the forwards visit chunks 0 .. V-1, the
backwards V-1 .. 0 (Narayanan et al. 2021, arXiv 2104.04473, section 2.2). After the warm-up each backward is followed
by a forward, and the counts repeat after as many such pairs as a group has operations, where all groups are alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poseidon.schedule.interleaved_one_f_one_b import microbatch_group_size


def chunk_counts(num_warmup: int, num_stages: int, num_micro_batches: int, num_chunks: int) -> NDArray[np.int64]:
    """The counts after each forward that may be a peak; shape [states, num_chunks].

    `num_warmup` is the number of chunk forwards before the first backward.
    """
    total = num_micro_batches * num_chunks
    group = microbatch_group_size(num_stages, num_micro_batches)
    period = total if num_micro_batches % group else group * num_chunks
    pairs = np.arange(min(period, total - num_warmup) + 1)
    sizes = (group, num_micro_batches)
    forwards = _chunk_totals(num_warmup + pairs, *sizes, num_chunks, reverse=False)
    backwards = _chunk_totals(pairs, *sizes, num_chunks, reverse=True)
    return forwards - backwards


def _chunk_totals(
    operations: NDArray[np.int64], group: int, num_micro_batches: int, num_chunks: int, *, reverse: bool
) -> NDArray[np.int64]:
    """Of the first n operations, how many belong to each chunk; shape [len(operations), num_chunks]."""
    rounds, rest = np.divmod(operations[:, None], group * num_chunks)
    size = np.where(rounds < num_micro_batches // group, group, num_micro_batches % group)
    chunk = np.arange(num_chunks)
    place = num_chunks - 1 - chunk if reverse else chunk
    return np.asarray(rounds * group + np.clip(rest - place * size, 0, size), dtype=np.int64)
