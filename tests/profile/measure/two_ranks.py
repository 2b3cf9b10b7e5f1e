"""Run by torchrun with two processes: a layer, embedding and head split over two ranks against the whole ones.

Rank 0 prints one line for each comparison; an assertion fails the process, and with it torchrun.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist

from poseidon.inputs.model import Model
from poseidon.profile.measure import layer as layer_module
from poseidon.profile.measure import vocabulary as vocabulary_module
from poseidon.profile.measure.device import Device
from poseidon.profile.measure.layer import Layer
from poseidon.profile.measure.ranks import Environment, Ranks, joined
from poseidon.profile.measure.tensor_parallel import TensorParallel
from poseidon.profile.measure.vocabulary import Embedding, Head
from poseidon.profile.micro_batch import MicroBatch

ROWS = {"query", "kv_up", "words"}
COLUMNS = {"output", "down"}


def part(name: str, whole: Any, shard: Any, model: Model, tp: TensorParallel) -> Any:
    """What rank `tp.rank` holds of a whole parameter (or of its gradient)."""
    last = name.split(".")[-1].removesuffix("_bias")
    if whole.shape == shard.shape:
        return whole
    if last == "qkv":
        heads = [size * model.head_dim for size in (model.num_attention_heads, *2 * [model.num_kv_heads])]
        return torch.cat([block.chunk(tp.size)[tp.rank] for block in whole.split(heads)])
    if last == "up":
        dim, blocks = (2 if whole.dim() == 3 else 0), (2 if model.gated_mlp else 1)
        return torch.cat([block.chunk(tp.size, dim)[tp.rank] for block in whole.chunk(blocks, dim)], dim)
    if last in COLUMNS:
        return whole.chunk(tp.size, 1)[tp.rank]
    assert last in ROWS, name
    return whole.chunk(tp.size)[tp.rank]


def load(shard: Any, whole: Any, model: Model, tp: TensorParallel) -> None:
    """Gives the shard its parts of the whole module's weights."""
    pieces = dict(whole.named_parameters())
    with torch.no_grad():
        for name, parameter in shard.named_parameters():
            parameter.copy_(part(name, pieces[name], parameter, model, tp))


def same(what: str, ours: Any, theirs: Any, tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance, msg=lambda text: f"{what}: {text}")


def gradients(shard: Any, whole: Any, model: Model, tp: TensorParallel) -> Iterator[tuple[str, Any, Any]]:
    """Gradients of the weights that are split; those of whole ones are summed over ranks later."""
    pieces = dict(whole.named_parameters())
    for name, parameter in shard.named_parameters():
        if parameter.shape != pieces[name].shape:
            yield name, parameter.grad, part(name, pieces[name].grad, parameter, model, tp)


def compare(what: str, pair: tuple[Any, Any], inputs: tuple[Any, Any], model: Model, tp: TensorParallel) -> None:
    """Outputs, and gradients of inputs and weights. `inputs` are calls that return (output, stream, own slice)."""
    whole, shard = pair
    load(shard, whole, model, tp)
    (expected, whole_stream), (output, stream) = inputs[0](), inputs[1]()
    own = slice(None)
    if output.dim() and output.shape != expected.shape:
        own = slice(tp.rank * output.shape[0], (tp.rank + 1) * output.shape[0])
    same(f"{what}: output", output, expected[own] if output.dim() else expected, 1e-6)
    torch.manual_seed(9)
    direction = torch.randn_like(expected)
    (expected * direction).sum().backward()
    (output * (direction[own] if output.dim() else direction)).sum().backward()
    if stream is not None:
        rows = stream.shape[0]
        start = tp.rank * rows if rows != whole_stream.shape[0] else 0
        same(f"{what}: input", stream.grad, whole_stream.grad[start : start + rows], 1e-6)
    for name, ours, theirs in gradients(shard, whole, model, tp):
        same(f"{what}: {name}", ours, theirs, 1e-6)
    if tp.rank == 0:
        print(what, "ok", flush=True)


def cut(stream: Any, tp: TensorParallel) -> Any:
    """This rank's part of the tokens, as a leaf."""
    return stream.detach().chunk(tp.sequence_shards)[tp.rank if tp.sequence_shards > 1 else 0].requires_grad_()


def layers(model: Model, tp: TensorParallel) -> None:
    whole_batch, batch = MicroBatch(3, 10), MicroBatch(3, 10, tp.size, tp.sequence_parallel)
    for layer_type in model.distinct_layer_types:
        for mode in ("none", "selective", "full"):
            torch.manual_seed(7)
            whole = Layer(model, layer_type, whole_batch, TensorParallel(), "none")
            shard = Layer(model, layer_type, batch, tp, mode)
            total = torch.randn(whole_batch.tokens, model.hidden_size, requires_grad=True)
            own = cut(total, tp)
            runs = (lambda w=whole, t=total: (w(t), t)), (lambda s=shard, o=own: (s(o), o))
            compare(f"{model.name} {layer_type} {mode} sp={tp.sequence_parallel}", (whole, shard), runs, model, tp)


def ends(model: Model, tp: TensorParallel) -> None:
    whole_batch, batch = MicroBatch(3, 10), MicroBatch(3, 10, tp.size, tp.sequence_parallel)
    torch.manual_seed(7)
    tokens = torch.randint(model.vocab_size, (batch.tokens,))
    embeddings = Embedding(model, whole_batch, TensorParallel()), Embedding(model, batch, tp)
    runs = (lambda: (embeddings[0](tokens), None)), (lambda: (embeddings[1](tokens), None))
    compare(f"{model.name} embedding sp={tp.sequence_parallel}", embeddings, runs, model, tp)
    heads = Head(model, TensorParallel()), Head(model, tp)
    total = torch.randn(batch.tokens, model.hidden_size, requires_grad=True)
    own = cut(total, tp)
    runs = (lambda: (heads[0](total, tokens), total)), (lambda: (heads[1](own, tokens), own))
    compare(f"{model.name} head sp={tp.sequence_parallel}", heads, runs, model, tp)


def main() -> None:
    models = [Model.model_validate_json(text) for text in sys.argv[1:]]
    torch.set_default_dtype(torch.float64)
    layer_module.dropout = vocabulary_module.dropout = lambda value: value  # ranks draw different masks
    with joined(Environment.read(), Device("cpu", 0)) as ranks:
        assert isinstance(ranks, Ranks)
        assert dist.get_world_size() == ranks.world_size == 2
        assert ranks.slowest((float(ranks.rank), 1.0 - ranks.rank)) == (1.0, 1.0)
        for model in models:
            for sequence_parallel in (True, False):
                tp = TensorParallel(2, ranks.rank, sequence_parallel, ranks.group(2, 1))
                layers(model, tp)
                ends(model, tp)


if __name__ == "__main__":
    main()
