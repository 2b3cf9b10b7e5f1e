"""Layers, embedding and head measured one by one, added up, against the whole stack of them run in one piece.

    python tests/benchmarks/measured_stack.py MODEL.yaml SEQ_LENGTH MICRO_BATCH_SIZE NUM_LAYERS [ROUNDS]

Parts and stack take turns, so that a busy machine slows both. Prints predicted and measured milliseconds of one forward
and backward pass, and the activation bytes of both. Needs PyTorch; runs on the best device there is.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import replace
from typing import Any

import torch

from poseidon.inputs.model_file import load_model
from poseidon.profile.measure.cells import ComputeCell
from poseidon.profile.measure.compute import timed_pass
from poseidon.profile.measure.device import find_device
from poseidon.profile.measure.job import MeasureJob
from poseidon.profile.measure.ranks import Ranks
from poseidon.profile.measure.saved_bytes import saved_bytes
from poseidon.profile.measure.tensor_parallel import TensorParallel
from poseidon.profile.measure.work import Work, work_of


def stack_of(embedding: Work, layers: list[Work], head: Work) -> Work:
    """All parts in one piece: the head's and the layers' own inputs are replaced by what comes before."""
    embedding_module, layer_modules, head_module = embedding.module, [work.module for work in layers], head.module
    tokens = torch.randint(embedding_module.words.shape[0], (layers[0].stream.shape[0],)).to(layers[0].stream.device)

    def forward() -> Any:
        stream = embedding_module(tokens)
        for layer in layer_modules:
            stream = layer(stream)
        return head_module(stream, tokens)

    return Work(torch.nn.ModuleList([embedding_module, *layer_modules, head_module]), forward, None)


def main() -> None:
    path, seq_length, size, num_layers, *rest = sys.argv[1:]
    rounds = int(rest[0]) if rest else 20
    job = MeasureJob(load_model(path), "here", int(seq_length), (int(size),), (1,))
    ranks = Ranks(find_device("auto", 0))
    device, alone = ranks.device.torch_device, TensorParallel()
    cell = ComputeCell("dense", 1, int(size))
    layers = [work_of(cell, job, alone, device) for _ in range(int(num_layers))]
    embedding, head = (work_of(replace(cell, part=part), job, alone, device) for part in ("embedding", "head"))
    stack = stack_of(embedding, layers, head)
    parts = {"embedding": embedding, "layer": layers[0], "head": head, "stack": stack}
    samples: dict[str, list[tuple[float, ...]]] = {name: [] for name in parts}
    for turn in range(rounds + 2):
        for name, work in parts.items():
            times = timed_pass(work, ranks)
            if turn >= 2:
                samples[name].append(times)
    for index, what in enumerate(("forward", "backward")):
        times = {name: statistics.median(run[index] for run in runs) for name, runs in samples.items()}
        predicted = times["embedding"] + int(num_layers) * times["layer"] + times["head"]
        error = predicted / times["stack"] - 1
        print(f"{what}: predicted {predicted:.2f} ms, measured {times['stack']:.2f} ms, error {error:+.1%}")
    kept = {name: saved_bytes(work.forward, work.module) for name, work in parts.items()}
    added = kept["embedding"] + int(num_layers) * kept["layer"] + kept["head"]
    print(f"kept: predicted {added:,} bytes, measured {kept['stack']:,} bytes, error {added / kept['stack'] - 1:+.2%}")


if __name__ == "__main__":
    main()
