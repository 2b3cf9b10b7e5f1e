"""Matrix products of a layer as one autograd function, which keeps its input, or what its input is made from.

The forms differ in what they exchange between TP ranks. As in Megatron-LM the communication of a column-parallel
product's backward pass runs beside its own computation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.nn import functional

from poseidon.profile.measure.tensor_parallel import TensorParallel

Produce = Callable[..., Any]


class Form(Protocol):
    """How a product is computed and how its gradients are."""

    def forward(self, value: Any, weight: Any) -> Any:
        """The product."""

    def backward(self, value: Any, weight: Any, gradient: Any) -> tuple[Any, Any]:
        """Gradients of the value and of the weight."""


@dataclass(frozen=True)
class Replicated:
    """The same product on every rank, each on its own tokens: value [tokens, in], weight [out, in]."""

    def forward(self, value: Any, weight: Any) -> Any:
        """Shape [tokens, out]."""
        return functional.linear(value, weight)

    def backward(self, value: Any, weight: Any, gradient: Any) -> tuple[Any, Any]:
        """Two products."""
        return gradient @ weight, gradient.t() @ value


@dataclass(frozen=True)
class ColumnParallel:
    """Each rank computes its columns of the output for all tokens; keeps only its own tokens of the input."""

    tp: TensorParallel

    def forward(self, value: Any, weight: Any) -> Any:
        """Shape [all tokens, out / tp]."""
        return functional.linear(self.tp.gather(value), weight)

    def backward(self, value: Any, weight: Any, gradient: Any) -> tuple[Any, Any]:
        """Gathers the input beside one product, reduces its gradient beside the other."""
        total, gathered = self.tp.start_gather(value)
        total_gradient = gradient @ weight
        gathered()
        value_gradient, reduced = self.tp.start_reduce(total_gradient)
        weight_gradient = gradient.t() @ total
        reduced()
        return value_gradient, weight_gradient


@dataclass(frozen=True)
class RowParallel:
    """Each rank multiplies its columns of the input; the products are summed over the ranks."""

    tp: TensorParallel

    def forward(self, value: Any, weight: Any) -> Any:
        """Shape [own tokens, out]."""
        return self.tp.reduce(functional.linear(value, weight))

    def backward(self, value: Any, weight: Any, gradient: Any) -> tuple[Any, Any]:
        """Gathers the gradient, then two products."""
        total = self.tp.gather(gradient)
        return total @ weight, total.t() @ value


@dataclass(frozen=True)
class Grouped:
    """One product an expert, all of one size: value [experts, rows, in], weight [experts, in, out]."""

    def forward(self, value: Any, weight: Any) -> Any:
        """Shape [experts, rows, out]."""
        return torch.bmm(value, weight)

    def backward(self, value: Any, weight: Any, gradient: Any) -> tuple[Any, Any]:
        """Two batched products."""
        return torch.bmm(gradient, weight.transpose(1, 2)), torch.bmm(value.transpose(1, 2), gradient)


class _Product(torch.autograd.Function):
    """The product of produce(*sources) (of the one source without `produce`) with a weight; keeps the sources."""

    @staticmethod
    def forward(ctx: Any, form: Form, produce: Produce | None, weight: Any, *sources: Any) -> Any:
        ctx.form, ctx.produce = form, produce
        ctx.save_for_backward(weight, *sources)
        return form.forward(sources[0] if produce is None else produce(*sources), weight)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[Any, ...]:
        weight, *sources = ctx.saved_tensors
        gradient = gradient.contiguous()
        if ctx.produce is None:
            value_gradient, weight_gradient = ctx.form.backward(sources[0], weight, gradient)
            return None, None, weight_gradient, value_gradient
        with torch.enable_grad():
            again = [source.detach().requires_grad_() for source in sources]
            value = ctx.produce(*again)
        value_gradient, weight_gradient = ctx.form.backward(value.detach(), weight, gradient)
        return None, None, weight_gradient, *torch.autograd.grad(value, again, value_gradient)


def product(
    form: Form, weight: Any, produce: Produce, sources: tuple[Any, ...], *, discard: bool, bias: Any | None = None
) -> Any:
    """The product of produce(*sources) with `weight`, plus `bias`.

    With `discard` (selective recomputation) the sources are kept and the product's input is made again in the backward
    pass; else that input is kept.
    """
    if discard:
        output = _Product.apply(form, produce, weight, *sources)
    else:
        output = _Product.apply(form, None, weight, produce(*sources))
    return output if bias is None else output + bias


def same(value: Any) -> Any:
    """The input of a product that is not made from anything."""
    return value
