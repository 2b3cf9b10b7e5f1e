# distutils: language = c++
"""Warm-up sampling: random feasible configurations, timed (paper section 3, "warm-up")."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector
from poseidon.search._stage_graph cimport StageGraph
from poseidon.search._sweep cimport LANES, Prefix, Tips, sweep, sweep_scratch_size


cdef inline uint64_t next_random(uint64_t* state) noexcept nogil:
    # SplitMix64 (Steele, Lea, Flood 2014).
    cdef uint64_t mixed
    state[0] += 0x9E3779B97F4A7C15ULL
    mixed = state[0]
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL
    return mixed ^ (mixed >> 31)


cdef inline int draw(uint64_t* state, int low, int high) noexcept nogil:
    # Uniform on low .. high, both included.
    return low + <int>(next_random(state) % <uint64_t>(high - low + 1))


cdef class Sampler:
    """Draws random feasible configurations of one problem: kinds in a random feasible order, layers at random around
    the even split.

    `most_after` comes from `most_layers_after` with the memory limits alone.
    """

    cdef StageGraph graph
    cdef object arrays
    cdef const int[::1] most_after, warmup, row_of_layer
    cdef const int[:, :, ::1] max_layers
    cdef const double[:, ::1] intra_node, inter_node
    cdef const double[:, :, :, ::1] forward, backward, all_reduce
    cdef int num_stages, num_layers, least, num_kinds
    cdef uint64_t state
    cdef int[::1] edges, kinds, layers, warmups

    def __cinit__(self, StageGraph graph, arrays, const int[::1] most_after, uint64_t seed):
        self.graph = graph
        self.arrays = arrays
        self.most_after = most_after
        self.warmup, self.row_of_layer, self.max_layers = arrays.warmup, arrays.row_of_layer, arrays.max_layers
        self.intra_node, self.inter_node = arrays.intra_node, arrays.inter_node
        self.forward, self.backward, self.all_reduce = arrays.forward, arrays.backward, arrays.all_reduce
        self.num_stages, self.num_layers = arrays.num_stages, arrays.num_layers
        self.least, self.num_kinds = arrays.least_layers, graph.num_kinds
        self.state = seed
        self.edges = np.zeros(self.num_stages, dtype=np.int32)
        self.kinds = np.zeros(self.num_stages, dtype=np.int32)
        self.warmups = np.zeros(self.num_stages, dtype=np.int32)
        self.layers = np.zeros(self.num_stages, dtype=np.int32)

    def draw(self):
        """One configuration as (kinds, layers, warm-ups), int32, N, N x 1 and N; None where the walk ran into a dead
        end.
        """
        if not self._walk():
            return None
        return self._configuration()

    def best_of(self, int count):
        """The fastest of `count` configurations as (time in ms, kinds, layers, warm-ups); None where there is none.
        Warm-up family only.
        """
        cdef int _index
        cdef double best_ms = INFINITY
        cdef double time_ms
        best = None
        cdef vector[double] storage, scratch
        storage.resize(5 * self.num_stages, 0.0)
        scratch.resize(sweep_scratch_size(self.num_stages, self.arrays.num_micro_batches))
        for _index in range(count):
            if not self._walk():
                continue
            time_ms = self._time(storage.data(), scratch.data())
            if time_ms < best_ms:
                best_ms = time_ms
                best = (time_ms, *self._configuration())
        return best

    def _configuration(self):
        return np.array(self.kinds), np.array(self.layers).reshape(-1, 1), np.array(self.warmups)

    cdef bint _walk(self):
        cdef int stage, edge, low, high, chosen, placed, group, column, average
        cdef int previous = -1
        cdef vector[int] feasible
        placed, group = 0, 0
        for stage in range(self.num_stages):
            feasible.clear()
            column = placed if self.max_layers.shape[2] > 1 else 0
            for edge in range(self.graph.first_edge[group], self.graph.first_edge[group + 1]):
                if self._range(edge, stage, placed, column, previous, &low, &high):
                    feasible.push_back(edge)
            if feasible.size() == 0:
                return False
            chosen = feasible[draw(&self.state, 0, <int>feasible.size() - 1)]
            self._range(chosen, stage, placed, column, previous, &low, &high)
            average = (self.num_layers - placed) // (self.num_stages - stage)
            self.edges[stage] = chosen
            self.kinds[stage] = self.graph.edge_kind[chosen]
            self.layers[stage] = draw(&self.state, low, max(low, min(high, 2 * average)))
            self.warmups[stage] = self.warmup[self.graph.edge_place[chosen]]
            placed += self.layers[stage]
            group = self.graph.edge_target[chosen]
            previous = self.kinds[stage]
        return placed == self.num_layers

    cdef bint _range(
        self, int edge, int stage, int placed, int column, int previous, int* low, int* high
    ) noexcept nogil:
        # Layers that stage `stage` may hold on an edge's kind so that the rest still fits.
        cdef int after = self.graph.edge_target[edge]
        if self.most_after[after] < 0:
            return False
        if stage > 0 and self.graph.boundary(edge, previous) == INFINITY:
            return False
        low[0] = max(self.least, self.num_layers - placed - self.most_after[after])
        high[0] = min(
            self.max_layers[self.graph.edge_kind[edge], self.graph.edge_place[edge], column],
            self.num_layers - placed - self.least * (self.num_stages - stage - 1),
        )
        return low[0] <= high[0]

    cdef double _time(self, double* storage, double* scratch):
        cdef Prefix prefix
        cdef Tips tips
        cdef double result[LANES]
        cdef int stage, lane, kind, place, row, layers, previous
        cdef int placed = 0
        cdef bint same_node
        prefix.num_stages = self.num_stages
        prefix.num_micro_batches = self.arrays.num_micro_batches
        prefix.warmup = &self.warmups[0]
        prefix.forward = storage
        prefix.backward = storage + self.num_stages
        prefix.all_reduce = storage + 2 * self.num_stages
        prefix.send_forward = storage + 3 * self.num_stages
        prefix.send_backward = storage + 4 * self.num_stages
        for stage in range(self.num_stages):
            kind, layers, row = self.kinds[stage], self.layers[stage], self.row_of_layer[placed]
            place = self.graph.edge_place[self.edges[stage]]
            prefix.forward[stage] = self.forward[kind, place, row, layers]
            prefix.backward[stage] = self.backward[kind, place, row, layers]
            prefix.all_reduce[stage] = self.all_reduce[kind, place, row, layers]
            if stage > 0:
                previous = self.kinds[stage - 1]
                same_node = self.graph.same_node(self.edges[stage], previous)
                prefix.send_forward[stage - 1] = (
                    self.intra_node[previous, kind] if same_node else self.inter_node[previous, kind]
                )
                prefix.send_backward[stage - 1] = (
                    self.intra_node[kind, previous] if same_node else self.inter_node[kind, previous]
                )
            placed += layers
        stage = self.num_stages - 1
        for lane in range(LANES):
            tips.forward[lane] = prefix.forward[stage]
            tips.backward[lane] = prefix.backward[stage]
            tips.all_reduce[lane] = prefix.all_reduce[stage]
            tips.delay[lane] = 0.0
            if stage > 0:
                tips.send_forward[lane] = prefix.send_forward[stage - 1]
                tips.send_backward[lane] = prefix.send_backward[stage - 1]
        with nogil:
            sweep(&prefix, self.num_stages, &tips, scratch, result)
        return result[0]
