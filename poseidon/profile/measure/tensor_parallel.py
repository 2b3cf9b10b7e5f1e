"""What tensor-parallel ranks exchange (Shoeybi et al. 2019; with sequence parallelism Korthikanti et al. 2022).

Activations are [tokens, width]. With sequence parallelism a rank holds a part of the tokens outside the products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

Wait = Callable[[], None]


def _nothing() -> None:
    """There is nothing to wait for."""


# Newer versions of torch call these two otherwise and warn about the old names.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


@dataclass(frozen=True)
class TensorParallel:
    """A group of `size` ranks, of which this process is number `rank`.

    Without a `group` this process stands for one rank of it: shapes are those of the group, nothing is sent.
    """

    size: int = 1
    rank: int = 0
    sequence_parallel: bool = True
    group: Any | None = None

    @property
    def sequence_shards(self) -> int:
        """Into how many parts tokens are split outside the products."""
        return self.size if self.sequence_parallel else 1

    def start_gather(self, shard: Any) -> tuple[Any, Wait]:
        """All tokens from every rank's part; `shard` itself where tokens are not split."""
        if self.sequence_shards == 1:
            return shard, _nothing
        if self.group is None:
            return shard.repeat(self.size, 1), _nothing
        total = shard.new_empty((shard.shape[0] * self.size, shard.shape[1]))
        return total, _all_gather(total, shard.contiguous(), group=self.group, async_op=True).wait

    def start_reduce(self, partial: Any) -> tuple[Any, Wait]:
        """The sum over all ranks: this rank's part of the tokens, or all of them without sequence parallelism."""
        if self.size == 1:
            return partial, _nothing
        if self.sequence_parallel:
            if self.group is None:
                return partial[: partial.shape[0] // self.size].clone(), _nothing
            shard = partial.new_empty((partial.shape[0] // self.size, partial.shape[1]))
            return shard, _reduce_scatter(shard, partial.contiguous(), group=self.group, async_op=True).wait
        return partial, self.start_all_reduce(partial, dist.ReduceOp.SUM)

    def start_all_reduce(self, values: Any, operation: Any) -> Wait:
        """Combines `values` over all ranks, in place."""
        if self.group is None:
            return _nothing
        wait: Wait = dist.all_reduce(values, op=operation, group=self.group, async_op=True).wait
        return wait

    def gather(self, shard: Any) -> Any:
        """`start_gather`, waited for."""
        total, wait = self.start_gather(shard)
        wait()
        return total

    def reduce(self, partial: Any) -> Any:
        """`start_reduce`, waited for."""
        total, wait = self.start_reduce(partial)
        wait()
        return total


class Enter(torch.autograd.Function):
    """Into a tensor-parallel region: gathers tokens (or copies them); the gradient is summed over the ranks."""

    @staticmethod
    def forward(ctx: Any, tp: TensorParallel, shard: Any) -> Any:
        """All tokens on each rank."""
        ctx.tp = tp
        total = tp.gather(shard)
        return total.view_as(total) if total is shard else total

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[None, Any]:
        """The sum of all ranks' gradients."""
        # Without sequence parallelism the sum is made in place, which autograd's own tensor must not see.
        return None, ctx.tp.reduce(gradient.clone() if ctx.tp.sequence_shards == 1 else gradient.contiguous())


class Leave(torch.autograd.Function):
    """Out of a tensor-parallel region: sums over the ranks; the gradient is gathered (or copied)."""

    @staticmethod
    def forward(ctx: Any, tp: TensorParallel, partial: Any) -> Any:
        """This rank's part of the sum."""
        ctx.tp = tp
        total = tp.reduce(partial)
        return total.view_as(total) if total is partial else total

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[None, Any]:
        """The gradient of all tokens."""
        return None, ctx.tp.gather(gradient)
