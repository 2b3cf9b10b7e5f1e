"""Nanoseconds per operation of the simulator's kernels, beside a straightforward C loop compiled in the same run.

Run it from the checkout: ``python tests/benchmarks/simulator.py [--rounds R]``. It needs a C compiler (``$CC``, else
``cc``). The loop walks a prebuilt topological list and branches where an operation has no predecessor. Every contender
runs in turn, many times, and its fastest round counts, so that a busy machine disturbs none more than the others.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from poseidon.schedule import get_schedule
from poseidon.simulate import NUM_LANES, Graph, Weights, build_graph, stage_times

SHAPES = (
    ("1f1b", 2, 64, 1),
    ("1f1b", 4, 32, 1),
    ("1f1b", 8, 64, 1),
    ("1f1b", 16, 64, 1),
    ("1f1b", 36, 512, 1),
    ("eager_1f1b", 8, 64, 1),
    ("gpipe", 2, 64, 1),
    ("gpipe", 8, 64, 1),
    ("interleaved_1f1b", 4, 32, 2),
    ("interleaved_1f1b", 8, 64, 2),
)
OPERATIONS_PER_ROUND = 200_000
CLoop = Callable[..., float]

LOOP = """
#include <stdint.h>

double longest_path(int64_t repeats, int32_t num_operations, int32_t num_stages, const int32_t *previous,
                    const int32_t *sender, const int32_t *slot, const int32_t *link, const int32_t *last,
                    const double *durations, const double *transfers, const double *all_reduce, double *ends)
{
    double longest = 0.0;
    for (int64_t repeat = 0; repeat < repeats; repeat++) {
        longest = 0.0;
        for (int32_t i = 0; i < num_operations; i++) {
            double start = 0.0;
            if (previous[i] >= 0)
                start = ends[previous[i]];
            if (sender[i] >= 0) {
                double arrival = ends[sender[i]] + transfers[link[i]];
                if (arrival > start)
                    start = arrival;
            }
            ends[i] = start + durations[slot[i]];
        }
        for (int32_t s = 0; s < num_stages; s++) {
            double end = ends[last[s]] + all_reduce[s];
            if (end > longest)
                longest = end;
        }
    }
    return longest;
}
"""


def main() -> None:
    """Prints one line per shape."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200, help="rounds of each contender (default 200)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        loop = compile_loop(Path(folder))
        print(f"{platform.machine()}, Python {platform.python_version()}; ns per operation, best of {rounds} rounds")
        header = ("schedule", "N", "M", "V", "C loop", "kernel", f"x{NUM_LANES} lanes", "loop/kernel", "loop/lanes")
        print("{:18}{:>4}{:>5}{:>3}{:>9}{:>9}{:>10}{:>13}{:>12}".format(*header))
        for schedule, num_stages, num_micro_batches, num_chunks in SHAPES:
            graph = build_graph(get_schedule(schedule).order(num_stages, num_micro_batches, num_chunks))
            loop_ns, kernel_ns, lanes_ns = measure(loop, graph, rounds)
            print(
                f"{schedule:18}{num_stages:4}{num_micro_batches:5}{num_chunks:3}{loop_ns:9.3f}{kernel_ns:9.3f}"
                f"{lanes_ns:10.3f}{loop_ns / kernel_ns:13.2f}{loop_ns / lanes_ns:12.2f}"
            )


def compile_loop(folder: Path) -> CLoop:
    """The C loop as a function that releases the GIL."""
    source, library = folder / "loop.c", folder / "loop.so"
    source.write_text(LOOP)
    command = [
        os.environ.get("CC", "cc"),
        "-O3",
        "-ffp-contract=off",
        "-fPIC",
        "-shared",
        str(source),
        "-o",
        str(library),
    ]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(library)).longest_path
    function.restype = ctypes.c_double
    return cast(CLoop, function)


def measure(loop: CLoop, graph: Graph, rounds: int) -> Sequence[float]:
    """Nanoseconds per operation and candidate: the loop, the kernel, the kernel on several candidates at once."""
    weights = random_weights(graph)
    durations, transfers, all_reduce = (np.repeat(array[:, None], NUM_LANES, axis=1) for array in weights)
    times = np.empty(NUM_LANES)
    num_operations = len(graph.listing.entries)
    repeats = max(1, OPERATIONS_PER_ROUND // num_operations)
    repeats_of_lanes = max(1, repeats // NUM_LANES)
    contenders: list[tuple[Callable[[], object], int]] = [
        (prepare_loop(loop, graph, weights, repeats), repeats),
        (lambda: graph.kernel.time(*weights, repeats=repeats), repeats),
        (
            lambda: graph.kernel.times(durations, transfers, all_reduce, times, repeats=repeats_of_lanes),
            repeats_of_lanes * NUM_LANES,
        ),
    ]
    assert contenders[0][0]() == contenders[1][0](), "the C loop and the kernel disagree"
    contenders[2][0]()
    assert set(times) == {graph.kernel.time(*weights)}, "the kernels disagree"
    best = [float("inf")] * len(contenders)
    for _ in range(rounds):
        for index, (contender, num_evaluations) in enumerate(contenders):
            start = time.perf_counter_ns()
            contender()
            elapsed = time.perf_counter_ns() - start
            best[index] = min(best[index], elapsed / num_evaluations / num_operations)
    return best


def random_weights(graph: Graph) -> Weights:
    """Times as in a real pipeline: stages differ, transfers are short."""
    rng = np.random.default_rng(0)
    num_stages, num_chunks = graph.num_stages, graph.operations.num_chunks
    times = stage_times(
        rng.uniform(1, 2, (num_stages, num_chunks)).tolist(),
        rng.uniform(2, 4, (num_stages, num_chunks)).tolist(),
        send_forward_ms=rng.uniform(0, 0.5, num_stages).tolist(),
        send_backward_ms=rng.uniform(0, 0.5, num_stages).tolist(),
        all_reduce_ms=rng.uniform(0, 5, num_stages).tolist(),
    )
    return graph.weights(times)


def prepare_loop(loop: CLoop, graph: Graph, weights: Weights, repeats: int) -> Callable[[], float]:
    """The C loop bound to the graph's operations in the topological order that a queue gives."""
    operations = graph.operations
    entries = topological_list(operations.previous.tolist(), operations.sender.tolist())
    place = np.full(len(entries) + 1, -1, dtype=np.int32)
    place[entries] = np.arange(len(entries), dtype=np.int32)
    slots = np.empty_like(graph.listing.slot)
    slots[graph.listing.entries] = graph.listing.slot
    arrays: list[NDArray[np.generic]] = [
        place[operations.previous[entries]],
        place[operations.sender[entries]],
        slots[entries],
        graph.listing.link[slots[entries]],
        place[operations.starts[1:] - 1],
        *weights,
        np.empty(len(entries)),
    ]
    sizes = (ctypes.c_int64(repeats), ctypes.c_int32(len(entries)), ctypes.c_int32(graph.num_stages))
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
    return lambda: float(loop(*sizes, *pointers))


def topological_list(previous: Sequence[int], sender: Sequence[int]) -> NDArray[np.int32]:
    """Operations in the order in which a first-in, first-out queue of the ready ones gives them."""
    receivers: list[list[int]] = [[] for _ in previous]
    waits = [0] * len(previous)
    for number, others in enumerate(zip(previous, sender, strict=True)):
        for other in others:
            if other >= 0:
                receivers[other].append(number)
                waits[number] += 1
    ready = deque(number for number, count in enumerate(waits) if count == 0)
    entries = []
    while ready:
        entries.append(ready.popleft())
        for receiver in receivers[entries[-1]]:
            waits[receiver] -= 1
            if waits[receiver] == 0:
                ready.append(receiver)
    return np.array(entries, dtype=np.int32)


if __name__ == "__main__":
    main()
