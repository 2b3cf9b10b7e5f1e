# distutils: language = c++
"""Local moves on a complete configuration: they bring the first incumbents close to the optimum (docs/algorithm.md,
"First incumbents").
"""

import numpy as np

from libc.math cimport INFINITY
from libcpp.vector cimport vector
from poseidon.search._stage_graph cimport StageGraph
from poseidon.search._sweep cimport LANES, Lanes, lanes_in, sweep_lanes, sweep_scratch_size


cdef class LocalSearch:
    """Steepest descent over three kinds of moves: a layer from one stage to another, two stages changing places, a
    stage moving elsewhere.

    A move is timed only where its path bound (families 1 and 2) is below the time at hand. For schedules in which a
    stage's warm-up follows from its place.
    """

    cdef StageGraph graph
    cdef int num_stages, num_layers, num_micro_batches, least
    cdef const double[:, :, :, ::1] forward, backward, all_reduce, cost, beta, gamma
    cdef const int[:, :, ::1] max_layers
    cdef const int[::1] row_of_layer, warmup
    cdef const double[:, ::1] intra_node, inter_node
    cdef vector[double] scratch, reduces, send_forward, send_backward
    cdef vector[int] kinds, layers, trial_kinds, trial_layers, best_kinds, best_layers, lane_kinds, lane_layers
    cdef double time_ms, best_ms
    cdef int num_trials
    cdef readonly long long num_simulations

    def __cinit__(self, arrays, StageGraph graph):
        self.graph = graph
        self.num_stages, self.num_layers = arrays.num_stages, arrays.num_layers
        self.num_micro_batches = arrays.num_micro_batches
        self.least = arrays.least_layers
        self.forward, self.backward, self.all_reduce = arrays.forward, arrays.backward, arrays.all_reduce
        self.cost, self.beta, self.gamma = arrays.cost, arrays.beta, arrays.gamma
        self.max_layers, self.row_of_layer, self.warmup = arrays.max_layers, arrays.row_of_layer, arrays.warmup
        self.intra_node, self.inter_node = arrays.intra_node, arrays.inter_node
        self.scratch.resize(sweep_scratch_size(self.num_stages, self.num_micro_batches))
        self.reduces.resize(self.num_stages * LANES)
        self.send_forward.resize(self.num_stages)
        self.send_backward.resize(self.num_stages)
        self.lane_kinds.resize(self.num_stages * LANES)
        self.lane_layers.resize(self.num_stages * LANES)

    def improve(self, const int[::1] kinds, const int[::1] layers, double time_ms, long long most_simulations):
        """Descends from a configuration of known time until nothing helps or so many were timed; returns (time in ms,
        kinds, layers) of where it ends.
        """
        cdef int i
        cdef long long last = self.num_simulations + most_simulations
        self.kinds.clear()
        self.layers.clear()
        for i in range(self.num_stages):
            self.kinds.push_back(kinds[i])
            self.layers.push_back(layers[i])
        self.time_ms = time_ms
        with nogil:
            while self.num_simulations < last and self._round(last):
                pass
        return self.time_ms, np.array(self.kinds, dtype=np.int32), np.array(self.layers, dtype=np.int32)

    cdef bint _round(self, long long last) noexcept nogil:
        # Takes the best move; False where none helps.
        cdef int one, other
        self.best_ms = self.time_ms
        self.num_trials = 0
        for one in range(self.num_stages):
            if self.num_simulations >= last:
                break
            for other in range(self.num_stages):
                if one == other:
                    continue
                if self.layers[one] > self.least:
                    self._reset()
                    self.trial_layers[one] -= 1
                    self.trial_layers[other] += 1
                    self._try()
                if one < other and (self.kinds[one] != self.kinds[other] or self.layers[one] != self.layers[other]):
                    self._reset()
                    self.trial_kinds[one], self.trial_kinds[other] = self.kinds[other], self.kinds[one]
                    self.trial_layers[one], self.trial_layers[other] = self.layers[other], self.layers[one]
                    self._try()
                if one + 1 < other or other + 1 < one:
                    self._reset()
                    self._move(one, other)
                    self._try()
        self._flush()
        if self.best_ms >= self.time_ms:
            return False
        self.time_ms = self.best_ms
        self.kinds = self.best_kinds
        self.layers = self.best_layers
        return True

    cdef void _reset(self) noexcept nogil:
        self.trial_kinds = self.kinds
        self.trial_layers = self.layers

    cdef void _move(self, int source, int target) noexcept nogil:
        # Takes a stage out and puts it in at another place.
        cdef int step = 1 if source < target else -1
        cdef int i = source
        while i != target:
            self.trial_kinds[i] = self.kinds[i + step]
            self.trial_layers[i] = self.layers[i + step]
            i += step
        self.trial_kinds[target] = self.kinds[source]
        self.trial_layers[target] = self.layers[source]

    cdef void _try(self) noexcept nogil:
        # Puts the trial into a lane if it is feasible and its bound is below the best time.
        cdef int lane = self.num_trials
        cdef int stage, kind, edge, row, column, previous
        cdef int group = 0
        cdef int placed = 0
        cdef double round_trip = 0.0
        cdef double bottleneck = 0.0
        cdef double pending = -INFINITY
        cdef double own, added
        cdef Lanes lanes = lanes_in(self.scratch.data(), self.num_stages)
        for stage in range(self.num_stages):
            kind = self.trial_kinds[stage]
            row = self.row_of_layer[placed]
            column = placed if self.max_layers.shape[2] > 1 else 0
            if self.trial_layers[stage] > self.max_layers[kind, stage, column]:
                return
            edge = self.graph.edge_to(group, kind)
            if edge < 0:
                return
            added = self.cost[kind, stage, row, self.trial_layers[stage]]
            if stage > 0:
                previous = self.trial_kinds[stage - 1]
                added += self.graph.boundary(edge, previous)
                if self.graph.same_node(edge, previous):
                    self.send_forward[stage - 1] = self.intra_node[previous, kind]
                    self.send_backward[stage - 1] = self.intra_node[kind, previous]
                else:
                    self.send_forward[stage - 1] = self.inter_node[previous, kind]
                    self.send_backward[stage - 1] = self.inter_node[kind, previous]
            round_trip += added
            own = self.beta[kind, stage, row, self.trial_layers[stage]]
            bottleneck = max(bottleneck, own)
            own = self.gamma[kind, stage, row, self.trial_layers[stage]]
            pending = max(pending + added, own)
            if round_trip + max(bottleneck, pending) >= self.best_ms:
                return
            placed += self.trial_layers[stage]
            group = self.graph.edge_target[edge]
        if not self.graph.final[group]:
            return
        placed = 0
        for stage in range(self.num_stages):
            kind = self.trial_kinds[stage]
            row = self.row_of_layer[placed]
            lanes.forward[stage * LANES + lane] = self.forward[kind, stage, row, self.trial_layers[stage]]
            lanes.backward[stage * LANES + lane] = self.backward[kind, stage, row, self.trial_layers[stage]]
            self.reduces[stage * LANES + lane] = self.all_reduce[kind, stage, row, self.trial_layers[stage]]
            lanes.send_forward[stage * LANES + lane] = self.send_forward[stage]
            lanes.send_backward[stage * LANES + lane] = self.send_backward[stage]
            self.lane_kinds[lane * self.num_stages + stage] = kind
            self.lane_layers[lane * self.num_stages + stage] = self.trial_layers[stage]
            placed += self.trial_layers[stage]
        self.num_trials += 1
        if self.num_trials == LANES:
            self._flush()

    cdef void _flush(self) noexcept nogil:
        # Times the trials in the lanes and keeps the best. Lanes that are not in use repeat old numbers.
        cdef double[LANES] delay
        cdef double[LANES] result
        cdef int lane, stage
        if self.num_trials == 0:
            return
        for lane in range(LANES):
            delay[lane] = 0.0
        sweep_lanes(
            self.num_stages, self.num_micro_batches, &self.warmup[0], lanes_in(self.scratch.data(), self.num_stages),
            delay,
            self.reduces.data(), result,
        )
        self.num_simulations += self.num_trials
        for lane in range(self.num_trials):
            if result[lane] < self.best_ms:
                self.best_ms = result[lane]
                self.best_kinds.resize(self.num_stages)
                self.best_layers.resize(self.num_stages)
                for stage in range(self.num_stages):
                    self.best_kinds[stage] = self.lane_kinds[lane * self.num_stages + stage]
                    self.best_layers[stage] = self.lane_layers[lane * self.num_stages + stage]
        self.num_trials = 0
