"""Sailor's measurements of OPT-350M on GH200, layer by layer, as a profile of this project.

Layer 0 of its files is the embedding, layers 1 to 24 are the model's, layer 25 is the head. Times were taken in fp32
(TF32) with a TP group of four; one profile row stands for all 24 layers, so it has their mean.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from statistics import fmean

from poseidon.profile import LayerKey, MeasuredAllReduce, MeasuredTransfer, Profile, Row, RowKey
from poseidon.validate.data_files import data_rows

ACCELERATOR, TP, NUM_LAYERS, SEQ_LENGTH = "GH-96", 4, 24, 2048
EMBEDDING, HEAD = 0, NUM_LAYERS + 1
MESSAGE_BYTES = tuple(2.0**power for power in range(16, 31))
"""Sizes at which the fitted bandwidths become measured points: 64 KB to 1 GB."""
DP_DEGREES = (2, 4, 8, 16, 32)
Bandwidth = Callable[[float], float]


def sailor_profile(transient_share: float) -> Profile:
    """The profile; while the backward pass of a part runs, `transient_share` x its kept activations exist besides."""
    layers, embedding, head = {}, {}, {}
    for size in sorted({int(row["micro_batch_size"]) for row in data_rows("sailor_layer_times.csv")}):
        at = RowKey(ACCELERATOR, TP, size)
        layers[LayerKey(at, "dense", "none")] = _mean(list(_parts(size, transient_share, range(1, HEAD))))
        (embedding[at],) = _parts(size, transient_share, [EMBEDDING])
        (head[at],) = _parts(size, transient_share, [HEAD])
    return Profile(
        model="OPT-350M",
        seq_length=SEQ_LENGTH,
        precision="fp32",
        source="github.com/eth-easl/sailor at cf2c8e3cc5: profiles_tmp.json, llm_info.json, network fits; GH200, fp32",
        layers=layers,
        embedding=embedding,
        head=head,
        transfers=tuple(_transfers()),
        all_reduce=tuple(_all_reduces()),
    )


def _parts(size: int, transient_share: float, numbers: range | list[int]) -> Iterator[Row]:
    """The rows of some layers of Sailor's numbering at a micro-batch size.

    The files give every layer the same time of the optimizer's step, though embedding and head have four times the
    parameters of a layer: it is that of the model that was profiled (embedding, a layer, head), and is shared out by
    parameters here.
    """
    memory = {int(row["layer"]): row for row in data_rows("sailor_layer_memory.csv")}
    stepped_bytes = sum(float(memory[number]["weight_bytes"]) for number in (EMBEDDING, 1, HEAD))
    for row in data_rows("sailor_layer_times.csv"):
        number = int(row["layer"])
        if int(row["micro_batch_size"]) == size and number in numbers:
            kept = size * float(memory[number]["activation_bytes"])
            weight_bytes = float(memory[number]["weight_bytes"])
            yield Row(
                forward_ms=1e3 * float(row["forward_s"]),
                backward_ms=1e3 * float(row["backward_s"]),
                weight_bytes=weight_bytes,
                activation_bytes=kept,
                recomputed_bytes=transient_share * kept,
                update_ms=1e3 * float(row["update_s"]) * weight_bytes / stepped_bytes,
            )


def _mean(rows: list[Row]) -> Row:
    return Row(
        forward_ms=fmean(row.forward_ms for row in rows),
        backward_ms=fmean(row.backward_ms for row in rows),
        weight_bytes=fmean(row.weight_bytes for row in rows),
        activation_bytes=fmean(row.activation_bytes for row in rows),
        recomputed_bytes=fmean(row.recomputed_bytes for row in rows),
        update_ms=fmean(row.update_ms for row in rows),
    )


def _bandwidth(scope: str, gpus: int) -> Bandwidth:
    """Sailor's fit, bytes/ms by bytes: a polynomial in log2(megabytes), up to the largest that it was fitted to."""
    (row,) = (row for row in data_rows("sailor_network.csv") if (row["scope"], row["gpus"]) == (scope, str(gpus)))
    coefficients: list[float] = json.loads(row["coefficients"])
    most = float(row["max_bytes_per_s"])

    def bytes_per_ms(num_bytes: float) -> float:
        power = math.log2(num_bytes / 1e6)
        fitted = sum(value * power**degree for degree, value in enumerate(reversed(coefficients)))
        return min(max(fitted * 1e9, most / 1e3), most) / 1e3

    return bytes_per_ms


def _transfers() -> Iterator[MeasuredTransfer]:
    """A boundary: what one TP rank sends to the next stage, each with a network card of its own."""
    network = _bandwidth("inter", 1)
    for size in MESSAGE_BYTES:
        yield MeasuredTransfer(ACCELERATOR, ACCELERATOR, "inter_node", size, size / network(size))


def _all_reduces() -> Iterator[MeasuredAllReduce]:
    """Rings over nodes, one for each TP rank, each with a network card of its own."""
    network = _bandwidth("inter", 1)
    for dp in DP_DEGREES:
        for size in MESSAGE_BYTES:
            ms = 2 * (dp - 1) / dp * size / network(size)
            yield MeasuredAllReduce(ACCELERATOR, TP, dp, "inter_node", size, ms)
