# distutils: language = c++
"""Branch and bound for interleaved schedules (docs/algorithm.md, "Chunks")."""

import numpy as np

from libc.math cimport INFINITY
from libcpp.vector cimport vector
from poseidon.search._branch_and_bound cimport BranchAndBound, Candidate
from poseidon.search._tables cimport CompletionTables
from poseidon.simulate._longest_path cimport LANES, LongestPath, longest_paths, workspace_length


cdef class ChunkedSearch(BranchAndBound):
    """Searches one problem whose stages hold V chunks; `kernel` is the graph of its order."""

    def __init__(self, arrays, CompletionTables tables, double best_ms, double tolerance, LongestPath kernel, long long most_splits):
        cdef int stages = self.num_stages
        self.graph_kernel = kernel
        self.most_splits = most_splits
        self.num_chunks = arrays.num_chunks
        kinds = arrays.problem.kinds
        self.layer_times = times_of([kind.layers[0] for kind in kinds])
        self.first_times = times_of([kind.first for kind in kinds])
        self.last_times = times_of([kind.last for kind in kinds])
        self.durations.resize(2 * self.num_chunks * stages * LANES)
        self.transfers.resize(2 * stages * LANES)
        self.all_reduces.resize(stages * LANES)
        self.times.resize(LANES)
        self.workspace.resize(LANES * workspace_length(&kernel.operations))
        self.split.resize(stages * self.num_chunks)
        self.best_split.resize(stages * self.num_chunks)
        self.trial.resize(LANES * stages * self.num_chunks)

    cdef void _time_survivors(self, int stage) noexcept nogil:
        self._sort_survivors()
        self.candidates[stage] = self.survivors

    cdef void _finish(self, int stage) noexcept nogil:
        cdef size_t index
        self._sort_survivors()
        for index in range(self.survivors.size()):
            if self.survivors[index].bound < self.best_ms * (1.0 - self.tolerance):
                self._leaf(stage, &self.survivors[index])
            else:
                self.num_pruned_by_incumbent += 1
                self.floor_ms = min(self.floor_ms, self.survivors[index].bound)

    cdef void _leaf(self, int stage, const Candidate* candidate) noexcept nogil:
        # Kinds and layers of all stages are fixed: finds the best split over the chunks.
        cdef double enough = candidate.bound / (1.0 - self.tolerance)
        cdef double splits = 1.0
        cdef int i, chunk
        self._push(stage, candidate)
        self._set_leaf()
        self._even_split()
        if not self._improve_split(enough):
            for i in range(self.num_stages):
                for chunk in range(1, self.num_chunks):
                    splits = splits * (self.layers[i] - chunk) / chunk
            if splits <= self.most_splits:
                self._try_all()
            elif candidate.bound < min(self.leaf_ms, self.best_ms):
                self.num_open_leaves += 1
                self.floor_ms = min(self.floor_ms, candidate.bound)
        if self.leaf_ms < self.best_ms:
            self._remember_prefix(stage, candidate, self.leaf_ms)
            self.best_layers = self.best_split

    cdef void _set_leaf(self) noexcept nogil:
        # Weights that do not depend on the split: transfers and all-reduces.
        cdef int stages = self.num_stages
        cdef int stage, lane, kind
        cdef double send_forward, send_backward, reduce
        cdef int first = self.kind[0]
        cdef int last = self.kind[stages - 1]
        for stage in range(stages):
            kind = self.kind[stage]
            send_forward = self.prefix.send_forward[stage] if stage < stages - 1 else self.inter_node[last, first]
            send_backward = self.prefix.send_backward[stage - 1] if stage > 0 else self.inter_node[first, last]
            reduce = self.prefix.all_reduce[stage]
            for lane in range(LANES):
                self.transfers[stage * LANES + lane] = send_forward
                self.transfers[(stages + stage) * LANES + lane] = send_backward
                self.all_reduces[stage * LANES + lane] = reduce
        self.leaf_ms = INFINITY
        self.num_trials = 0

    cdef void _even_split(self) noexcept nogil:
        cdef int stage, chunk
        for stage in range(self.num_stages):
            for chunk in range(self.num_chunks):
                self.split[stage * self.num_chunks + chunk] = (
                    self.layers[stage] // self.num_chunks + (1 if chunk < self.layers[stage] % self.num_chunks else 0)
                )

    cdef bint _improve_split(self, double enough) noexcept nogil:
        # Steepest descent from the split at hand, moving one layer between two chunks of a stage; True when the bound is reached.
        cdef double before = INFINITY
        cdef int stage, source, target, base
        self._add_trial()
        self._flush()
        while self.leaf_ms < before and self.leaf_ms > enough:
            before = self.leaf_ms
            self.split = self.best_split
            for stage in range(self.num_stages):
                base = stage * self.num_chunks
                for source in range(self.num_chunks):
                    if self.split[base + source] < 2:
                        continue
                    for target in range(self.num_chunks):
                        if target == source:
                            continue
                        self.split[base + source] -= 1
                        self.split[base + target] += 1
                        self._add_trial()
                        self.split[base + source] += 1
                        self.split[base + target] -= 1
            self._flush()
        return self.leaf_ms <= enough

    cdef void _try_all(self) noexcept nogil:
        # Counts through every split of every stage.
        cdef int stage, chunk
        for stage in range(self.num_stages):
            for chunk in range(self.num_chunks):
                self.split[stage * self.num_chunks + chunk] = 1
            self.split[(stage + 1) * self.num_chunks - 1] = self.layers[stage] - self.num_chunks + 1
        while True:
            self._add_trial()
            stage = 0
            while stage < self.num_stages and not self._next_split(stage):
                stage += 1
            if stage == self.num_stages:
                break
        self._flush()

    cdef bint _next_split(self, int stage) noexcept nogil:
        # Next composition of the stage's layers in lexicographic order; after the last, back to the first and False.
        cdef int V = self.num_chunks
        cdef int base = stage * V
        cdef int chunk, other, rest
        for chunk in range(V - 2, -1, -1):
            rest = 0
            for other in range(chunk + 1, V):
                rest += self.split[base + other]
            if rest > V - 1 - chunk:
                self.split[base + chunk] += 1
                for other in range(chunk + 1, V - 1):
                    self.split[base + other] = 1
                self.split[base + V - 1] = rest - 1 - (V - 2 - chunk)
                return True
        for chunk in range(V - 1):
            self.split[base + chunk] = 1
        self.split[base + V - 1] = self.layers[stage] - V + 1
        return False

    cdef void _add_trial(self) noexcept nogil:
        # Puts the split at hand into the next free lane.
        cdef int lane = self.num_trials
        cdef int stages = self.num_stages
        cdef int stage, chunk, layers, kind, slot
        for stage in range(stages):
            kind = self.kind[stage]
            for chunk in range(self.num_chunks):
                layers = self.split[stage * self.num_chunks + chunk]
                self.trial[(lane * stages + stage) * self.num_chunks + chunk] = layers
                slot = chunk * stages + stage
                self.durations[slot * LANES + lane] = layers * self.layer_times[kind, 0]
                self.durations[(self.num_chunks * stages + slot) * LANES + lane] = layers * self.layer_times[kind, 1]
        self.durations[lane] += self.first_times[self.kind[0], 0]
        self.durations[self.num_chunks * stages * LANES + lane] += self.first_times[self.kind[0], 1]
        slot = self.num_chunks * stages - 1
        kind = self.kind[stages - 1]
        self.durations[slot * LANES + lane] += self.last_times[kind, 0]
        self.durations[(self.num_chunks * stages + slot) * LANES + lane] += self.last_times[kind, 1]
        self.num_trials += 1
        if self.num_trials == LANES:
            self._flush()

    cdef void _flush(self) noexcept nogil:
        # Times the splits in the lanes and keeps the best.
        cdef int lane, index
        cdef int size = self.num_stages * self.num_chunks
        if self.num_trials == 0:
            return
        longest_paths(
            &self.graph_kernel.operations, self.durations.data(), self.transfers.data(), self.all_reduces.data(), self.workspace.data(),
            self.times.data(),
        )
        self.num_simulations += self.num_trials
        for lane in range(self.num_trials):
            if self.times[lane] < self.leaf_ms:
                self.leaf_ms = self.times[lane]
                for index in range(size):
                    self.best_split[index] = self.trial[lane * size + index]
        self.num_trials = 0


def times_of(costs):
    return np.array([[cost.forward_ms, cost.backward_ms, cost.all_reduce_ms] for cost in costs], dtype=np.float64)
