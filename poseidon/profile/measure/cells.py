"""What is measured, cell by cell: a cell is the unit that is timed, written to the journal and resumed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from poseidon.inputs.training import Recompute

Part = Literal["dense", "moe", "embedding", "head"]


@dataclass(frozen=True)
class ComputeCell:
    """Forward and backward of one layer, the embedding or the head at one TP degree and micro-batch size."""

    part: Part
    tp: int
    micro_batch_size: int
    recompute: Recompute = "none"

    @property
    def is_layer(self) -> bool:
        """Whether it is a transformer layer."""
        return self.part in ("dense", "moe")

    def __str__(self) -> str:
        """What the journal and progress lines call it."""
        recompute = f", recompute {self.recompute}" if self.is_layer else ""
        return f"{self.part}, tp {self.tp}, micro-batch {self.micro_batch_size}{recompute}"


@dataclass(frozen=True)
class TransferCell:
    """One message of `num_bytes` from each device of a node's first half to one of its second half."""

    num_bytes: int

    def __str__(self) -> str:
        """What the journal and progress lines call it."""
        return f"transfer of {self.num_bytes} bytes"


@dataclass(frozen=True)
class AllReduceCell:
    """An all-reduce of `num_bytes` a device over `dp` ranks, by `tp` rings at once."""

    tp: int
    dp: int
    num_bytes: int

    def __str__(self) -> str:
        """What the journal and progress lines call it."""
        return f"all-reduce of {self.num_bytes} bytes, tp {self.tp}, dp {self.dp}"


Cell = ComputeCell | TransferCell | AllReduceCell
