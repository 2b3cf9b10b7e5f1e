"""One micro-batch as one device of a tensor-parallel group sees it."""

from __future__ import annotations

from dataclasses import dataclass

ELEMENT_BYTES = 2
"""Weights and activations are bf16 or fp16."""


@dataclass(frozen=True)
class MicroBatch:
    """The sizes that every cost formula of a layer starts from: `size` in sequences, `seq_length` in tokens a
    sequence."""

    size: int
    seq_length: int
    tp: int = 1
    sequence_parallel: bool = True
    flash_attention: bool = True
    fused_rotary: bool = True
    fused_activation: bool = True
    tp_overlap: bool = False

    @property
    def tokens(self) -> int:
        """Tokens of the micro-batch (s x b of the literature)."""
        return self.size * self.seq_length

    @property
    def sequence_shards(self) -> int:
        """Into how many parts norms, residuals and stage boundaries are cut: TP with sequence parallelism, else 1.

        Source: Korthikanti et al. 2022 (arXiv 2205.05198), section 4.2.2.
        """
        return self.tp if self.sequence_parallel else 1
