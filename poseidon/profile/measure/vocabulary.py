"""The embedding and the head, split over TP ranks by vocabulary (Megatron-LM)."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from poseidon.inputs.model import Model
from poseidon.profile.measure.activation import dropout
from poseidon.profile.measure.norm import Norm
from poseidon.profile.measure.product import ColumnParallel, Replicated, product, same
from poseidon.profile.measure.tensor_parallel import Leave, TensorParallel
from poseidon.profile.measure.weights import matrix
from poseidon.profile.micro_batch import MicroBatch
from poseidon.profile.residual_stream import has_dropout


def vocabulary_shard(model: Model, tp: int) -> int:
    """Rows of the vocabulary on each rank; the last one's are padded (Megatron-LM pads the vocabulary)."""
    return -(-model.vocab_size // tp)


class Embedding(nn.Module):
    """Lookup, learned positions, projection and dropout, as far as the model has them."""

    def __init__(self, model: Model, batch: MicroBatch, tp: TensorParallel) -> None:
        """On the default device in the default type."""
        super().__init__()
        self.tp = tp
        self.has_dropout = has_dropout(model)
        self.words = matrix(vocabulary_shard(model, tp.size), model.embedding_size)
        wide = model.embedding_size != model.hidden_size
        self.projection = matrix(model.hidden_size, model.embedding_size) if wide else None
        learned = model.max_position_embeddings
        self.positions = matrix(learned, model.hidden_size) if learned is not None else None
        positions = torch.arange(batch.tokens) % batch.seq_length
        self.register_buffer("own_positions", positions.chunk(tp.sequence_shards)[tp.rank % tp.sequence_shards])

    def forward(self, tokens: Any) -> Any:
        """[tokens] to [own tokens, hidden]."""
        rows = self.words.shape[0]
        local = tokens - self.tp.rank * rows
        if self.tp.size == 1:
            found = functional.embedding(local, self.words)
        else:
            elsewhere = (local < 0) | (local >= rows)
            looked_up = functional.embedding(local.masked_fill(elsewhere, 0), self.words)
            found = Leave.apply(self.tp, looked_up.masked_fill(elsewhere[:, None], 0.0))
        if self.projection is not None:
            found = product(Replicated(), self.projection, same, (found,), discard=False)
        if self.positions is not None:
            found = found + functional.embedding(self.own_positions, self.positions)
        return dropout(found) if self.has_dropout else found


class Head(nn.Module):
    """Final norm, projection, logits and loss."""

    def __init__(self, model: Model, tp: TensorParallel) -> None:
        """On the default device in the default type."""
        super().__init__()
        self.tp = tp
        self.norm = Norm(model, model.hidden_size) if model.final_norm else None
        wide = model.embedding_size != model.hidden_size
        self.projection = matrix(model.embedding_size, model.hidden_size) if wide else None
        self.words = matrix(vocabulary_shard(model, tp.size), model.embedding_size)

    def forward(self, stream: Any, targets: Any) -> Any:
        """[own tokens, hidden] and [tokens] to the mean loss."""
        if self.norm is not None:
            stream = self.norm(stream)
        if self.projection is not None:
            stream = product(Replicated(), self.projection, same, (stream,), discard=False)
        logits = product(ColumnParallel(self.tp), self.words, same, (stream,), discard=False)
        return _CrossEntropy.apply(self.tp, logits, targets)


class _CrossEntropy(torch.autograd.Function):
    """Mean of log(sum(exp(logits))) - logits[target], in fp32, over a vocabulary that is split by TP.

    Keeps one fp32 tensor of the logits' size (the probabilities) and the targets.
    """

    @staticmethod
    def forward(ctx: Any, tp: TensorParallel, logits: Any, targets: Any) -> Any:
        scores = logits.float()
        largest = scores.amax(dim=1)
        tp.start_all_reduce(largest, dist.ReduceOp.MAX)()
        scores -= largest[:, None]
        local = targets - tp.rank * scores.shape[1]
        elsewhere = (local < 0) | (local >= scores.shape[1])
        local = local.masked_fill(elsewhere, 0)
        target_scores = scores.gather(1, local[:, None]).squeeze(1).masked_fill(elsewhere, 0.0)
        scores.exp_()
        sums = torch.stack((scores.sum(dim=1), target_scores))
        tp.start_all_reduce(sums, dist.ReduceOp.SUM)()
        scores /= sums[0][:, None]
        ctx.dtype = logits.dtype
        ctx.save_for_backward(scores, local, elsewhere)
        return (sums[0].log() - sums[1]).mean()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[None, Any, None]:
        probabilities, local, elsewhere = ctx.saved_tensors
        ones = (~elsewhere).to(probabilities.dtype)[:, None]
        logits_gradient = probabilities.scatter_add_(1, local[:, None], -ones)
        scale = gradient / probabilities.shape[0]
        return None, logits_gradient.mul_(scale).to(ctx.dtype), None
