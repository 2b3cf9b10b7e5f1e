"""The module of a compute cell with its inputs: one forward pass is one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from poseidon.profile.measure.cells import ComputeCell
from poseidon.profile.measure.job import MeasureJob
from poseidon.profile.measure.layer import Layer
from poseidon.profile.measure.tensor_parallel import TensorParallel
from poseidon.profile.measure.vocabulary import Embedding, Head
from poseidon.profile.measure.weights import accumulate_in_fp32
from poseidon.profile.micro_batch import MicroBatch

SEED = 1
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Work:
    """One layer, the embedding or the head, ready to run."""

    module: Any
    forward: Callable[[], Any]
    stream: Any | None
    """The input that gets a gradient; None for the embedding."""

    def backward(self, output: Any) -> None:
        """The backward pass; the gradient of the input is dropped (a stage would send it on)."""
        output.backward(None if output.dim() == 0 else torch.ones_like(output))
        if self.stream is not None:
            self.stream.grad = None

    @property
    def weight_bytes(self) -> int:
        """Parameters of this rank in the training precision."""
        return sum(parameter.numel() * parameter.element_size() for parameter in self.module.parameters())


def work_of(cell: ComputeCell, job: MeasureJob, tp: TensorParallel, device: Any) -> Work:
    """Builds the cell's module on a device."""
    batch = MicroBatch(cell.micro_batch_size, job.seq_length, tp.size, tp.sequence_parallel)
    before = torch.get_default_dtype()
    torch.manual_seed(SEED)
    torch.set_default_dtype(DTYPES[job.precision])
    try:
        with torch.device(device):
            work = _built(cell, job, batch, tp)
    finally:
        torch.set_default_dtype(before)
    accumulate_in_fp32(work.module)
    return work


def _built(cell: ComputeCell, job: MeasureJob, batch: MicroBatch, tp: TensorParallel) -> Work:
    model = job.model
    tokens = torch.randint(model.vocab_size, (batch.tokens,))
    if cell.part == "embedding":
        embedding = Embedding(model, batch, tp)
        return Work(embedding, lambda: embedding(tokens), None)
    stream = torch.randn(batch.tokens // batch.sequence_shards, model.hidden_size, requires_grad=True)
    if cell.part == "head":
        head = Head(model, tp)
        return Work(head, lambda: head(stream, tokens), stream)
    layer = Layer(model, cell.part, batch, tp, cell.recompute)
    return Work(layer, lambda: layer(stream), stream)
