"""The layers' own backward passes against those that autograd finds by itself."""

from __future__ import annotations

from typing import Any

import pytest

from poseidon.inputs.model import Model
from poseidon.profile.micro_batch import MicroBatch

torch = pytest.importorskip("torch")

from poseidon.profile.measure import layer as layer_module  # noqa: E402
from poseidon.profile.measure.activation import gated_silu  # noqa: E402
from poseidon.profile.measure.layer import Layer  # noqa: E402
from poseidon.profile.measure.norm import EPSILON, RmsNorm  # noqa: E402
from poseidon.profile.measure.product import Grouped, Replicated, product, same  # noqa: E402
from poseidon.profile.measure.tensor_parallel import TensorParallel  # noqa: E402
from poseidon.profile.measure.vocabulary import Head  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def _double() -> Any:
    torch.manual_seed(3)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def randn(*shape: int) -> Any:
    return torch.randn(shape, requires_grad=True)


def compare(own: Any, plain: Any, inputs: list[Any], tolerance: float = 1e-9) -> None:
    """Values and all gradients of two functions."""
    outputs = [function(*inputs) for function in (own, plain)]
    torch.testing.assert_close(*outputs, rtol=tolerance, atol=tolerance)
    weight = torch.randn_like(outputs[0])
    gradients = [torch.autograd.grad((output * weight).sum(), inputs) for output in outputs]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("discard", [False, True])
def test_a_product_of_a_norm(discard: bool) -> None:
    norm = RmsNorm(8)

    def plain(value: Any, scale: Any, weight: Any) -> Any:
        return torch.nn.functional.rms_norm(value, (8,), scale, EPSILON) @ weight.t()

    def own(value: Any, scale: Any, weight: Any) -> Any:
        return product(Replicated(), weight, norm.make, (value, scale), discard=discard)

    compare(own, plain, [randn(5, 8), randn(8), randn(3, 8)])


@pytest.mark.parametrize("discard", [False, True])
def test_a_grouped_product_of_a_scaled_activation(discard: bool) -> None:
    def plain(branches: Any, scale: Any, weight: Any) -> Any:
        gate, up = branches.chunk(2, dim=-1)
        return torch.bmm(torch.nn.functional.silu(gate) * up * scale, weight)

    def own(branches: Any, scale: Any, weight: Any) -> Any:
        return product(Grouped(), weight, gated_silu, (branches, scale), discard=discard)

    compare(own, plain, [randn(2, 3, 8), randn(2, 3, 1), randn(2, 4, 5)])


def test_the_gated_activation_alone() -> None:
    def plain(branches: Any) -> Any:
        gate, up = branches.chunk(2, dim=-1)
        return torch.nn.functional.silu(gate) * up

    compare(gated_silu, plain, [randn(6, 8)])


def test_a_bias_is_added() -> None:
    def own(value: Any, weight: Any, bias: Any) -> Any:
        return product(Replicated(), weight, same, (value,), discard=False, bias=bias)

    compare(own, torch.nn.functional.linear, [randn(4, 8), randn(3, 8), randn(3)])


def test_the_head_s_loss_is_cross_entropy(dense: Model) -> None:
    head = Head(dense, TensorParallel())
    targets = torch.randint(dense.vocab_size, (6,))

    def plain(stream: Any) -> Any:
        normed = torch.nn.functional.rms_norm(stream, (dense.hidden_size,), head.norm.weight, EPSILON)
        return torch.nn.functional.cross_entropy(normed @ head.words.t(), targets)

    compare(lambda stream: head(stream, targets).double(), plain, [randn(6, dense.hidden_size)], tolerance=1e-6)


@pytest.mark.parametrize("recompute", ["selective", "full"])
def test_recomputation_changes_no_number(model: Model, recompute: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_module, "dropout", lambda value: value)  # another run draws another mask
    batch, results = MicroBatch(2, 16), []
    for mode in ("none", recompute):
        torch.manual_seed(5)
        layer = Layer(model, model.distinct_layer_types[-1], batch, TensorParallel(), mode)
        stream = randn(batch.tokens, model.hidden_size)
        output = layer(stream)
        output.square().sum().backward()
        weights = [parameter.grad for parameter in layer.parameters() if parameter.requires_grad]
        results.append([output, stream.grad, *weights])
    for plain, recomputed in zip(*results, strict=True):
        torch.testing.assert_close(plain, recomputed)
