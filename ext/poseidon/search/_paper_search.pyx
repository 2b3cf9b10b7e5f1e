# distutils: language = c++
"""The enumeration of the Poseidon paper with its two pruning rules (arXiv 2609.06086, section 4.2)."""

import numpy as np

from libc.math cimport INFINITY
from libcpp.vector cimport vector
from poseidon.search._incumbent_cell cimport IncumbentCell, news
from poseidon.search._sweep cimport LANES, lanes_in, sweep_lanes, sweep_scratch_size
from poseidon.simulate._longest_path cimport LongestPath, longest_paths, workspace_length

cdef enum:
    CHOICE_WORK = 10  # what looking at one choice costs, in operations of a simulation

cdef double EXCESS = 1.0 - 1e-12  # Eq. 2 is added up in another order than a time: what exceeds it by less is a tie


cdef class PaperSearch:
    """Enumerates one problem's configurations for one not slower than `best_ms`; with both rules off it simulates all.

    Of configurations that are equally fast it keeps the first.

    `edges` are the stage graph's rows (group, kind, place, target, within), sorted by group; `most_after` holds the
    most layers that fit after each group. `kernel` times schedules with chunks; None: the warm-up family. With
    `count_cuts` it keeps account of what lay behind each branch that a rule cut (`cuts`).
    """

    def __init__(
        self, arrays, const int[:, ::1] edges, const int[::1] most_after, LongestPath kernel, bint stage_pruning,
        bint layer_pruning, double best_ms, bint count_cuts=False,
    ):
        cdef int stages = arrays.num_stages
        cdef Py_ssize_t row, group
        self.best_ms, self.stage_pruning, self.layer_pruning = best_ms, stage_pruning, layer_pruning
        self.own_ms = INFINITY
        self.reader.cell = NULL
        self.num_stages, self.num_layers, self.num_chunks = stages, arrays.num_layers, arrays.num_chunks
        self.num_micro_batches, self.num_kinds = arrays.num_micro_batches, len(arrays.problem.kinds)
        self.forward, self.backward, self.all_reduce = arrays.forward, arrays.backward, arrays.all_reduce
        self.max_layers, self.row_of_layer, self.warmup = arrays.max_layers, arrays.row_of_layer, arrays.warmup
        self.pool_of_kind, self.most_after = arrays.pool_of_kind, most_after
        self.intra_node, self.inter_node = arrays.intra_node, arrays.inter_node
        self.layer_times = times_of([kind.layers[0] for kind in arrays.problem.kinds])
        self.first_times = times_of([kind.first for kind in arrays.problem.kinds])
        self.last_times = times_of([kind.last for kind in arrays.problem.kinds])
        self.edges.resize(edges.shape[0])
        self.first_edge.resize(most_after.shape[0] + 1, 0)
        for row in range(edges.shape[0]):
            self.edges[row] = Edge(edges[row, 1], edges[row, 2], edges[row, 3], edges[row, 4])
            self.first_edge[edges[row, 0] + 1] += 1
        for group in range(most_after.shape[0]):
            self.first_edge[group + 1] += self.first_edge[group]
        self.states.resize(stages + 1)
        self.states[0] = State(0, 0, 0.0, -INFINITY)
        self.choices.resize(stages)
        self.sealed.resize(stages, 0)
        self.chunks.resize(stages * self.num_chunks, 0)
        self.last_layers.resize(self.num_kinds, 0)
        self.falls.resize(self.num_kinds, 0)
        self.warmups.resize(stages, 0)
        self.waiting_edges.resize(LANES * stages, 0)
        self.waiting_chunks.resize(LANES * stages * self.num_chunks, 0)
        self.all_reduces.resize(LANES * stages, 0.0)
        self.delays.resize(LANES, 0.0)
        self.times.resize(LANES, 0.0)
        self.kernel = kernel
        if kernel is None:
            self.scratch.resize(sweep_scratch_size(stages, self.num_micro_batches), 0.0)
            self.lanes = lanes_in(self.scratch.data(), stages)
        else:
            self.scratch.resize(LANES * workspace_length(&kernel.operations), 0.0)
            self.durations.resize(LANES * kernel.operations.num_slots, 0.0)
            self.transfers.resize(LANES * kernel.operations.num_links, 0.0)
        if count_cuts:
            self.cuts_by_stage.resize(most_after.shape[0] * self.num_kinds * (self.num_layers + 2), 0)
            self.cuts_by_layer.resize(self.cuts_by_stage.size(), 0)
        self.done = most_after[0] < self.num_layers
        self.depth = -1 if self.done else 0
        self.choices[0].edge = self.first_edge[0] - 1
        self.choices[0].most = 0

    def run(self, long long most_work):
        """Goes on until it finds a better configuration, has done `most_work` operations or ends; True at the end."""
        cdef long long work = 0
        self.improved = False
        with nogil:
            while work < most_work and not self.improved and not self.done:
                self.done = self._step(&work)
        return self.done

    def flush(self):
        """Simulates the configurations that wait to be simulated together; `improved` tells what came of it."""
        self.improved = False
        with nogil:
            self._simulate()

    def time(self, const int[::1] path, const int[:, ::1] layers):
        """Iteration time (ms) of one configuration, given by its edges and the layers of its chunks (N x V).

        Only before the first `run`. Raises ValueError where it does not lead to a whole pipeline within memory.
        """
        cdef bint valid
        if path.shape[0] != self.num_stages or layers.shape[0] != self.num_stages or layers.shape[1] != self.num_chunks:
            raise ValueError("one edge and one count for each chunk are needed for every stage")
        if self.num_search_nodes or self.num_waiting:
            raise ValueError("a search that runs cannot time a configuration")
        with nogil:
            valid = self._follow(path, layers)
            if valid:
                self._add_configuration()
                self._time_lanes()
        self.num_waiting = 0
        self.choices[0].edge = self.first_edge[0] - 1
        self.choices[0].most = 0
        self.last_layers.assign(self.num_kinds, 0)
        self.falls.assign(self.num_kinds, 0)
        if not valid:
            raise ValueError("the stages are no path through the graph, or hold more layers than fit")
        return self.times[0]

    def set_incumbent(self, double best_ms):
        """Another search found a plan of this time."""
        self.best_ms = min(self.best_ms, best_ms)

    def watch(self, IncumbentCell cell):
        """From now on also heeds the time to beat in a cell, at every step."""
        self.cell = cell
        self.reader.cell = cell.data
        self.reader.rank = 0
        self.reader.slack = 0.0
        self.reader.seen_ms = INFINITY

    @property
    def position(self):
        """Where it stands: for each stage from the first to the one that is being chosen the edge (-1: none yet), the
        layers of its chunks and whether the choices after that one are still to come (int32, rows of V + 2).

        Configurations that wait to be simulated are not in it: `flush` first.
        """
        cdef int stage
        rows = np.zeros((self.depth + 1, self.num_chunks + 2), dtype=np.int32)
        for stage in range(self.depth + 1):
            rows[stage, 0] = self.choices[stage].edge if self.choices[stage].most > 0 else -1
            for chunk in range(self.num_chunks):
                rows[stage, chunk + 1] = self.chunks[stage * self.num_chunks + chunk]
            rows[stage, self.num_chunks + 1] = not self.sealed[stage]
        return rows

    def load(self, const int[:, ::1] position):
        """Goes on from a `position` of a search of the same problem, or a part of one: only the choices after those of
        the stages that are marked, under the choices of the stages before.

        The last stage must be marked. Call before the first `run`. Raises ValueError for a position that is none.
        """
        cdef int stage
        cdef int last = position.shape[0] - 1
        if not 0 <= last < self.num_stages or position.shape[1] != self.num_chunks + 2:
            raise ValueError("not a position of this problem")
        for stage in range(last + 1):
            self.sealed[stage] = not position[stage, self.num_chunks + 1]
            if stage == last and position[stage, 0] < 0:
                self.choices[stage].edge = self.first_edge[self.states[stage].group] - 1
                self.choices[stage].most = 0
            elif not self._place(stage, position[stage, 0], position[stage:, 1:self.num_chunks + 1]):
                raise ValueError("not a position of this problem")
            elif stage < last:
                self._push(stage)
        self.depth = last

    @property
    def best(self):
        """Edges (N) and layers of each chunk (N x V) of the last improvement, int32."""
        chunks = np.array(self.best_chunks, dtype=np.int32)
        return np.array(self.best_edges, dtype=np.int32), chunks.reshape(self.num_stages, self.num_chunks)

    @property
    def cuts(self):
        """How often the stage rule and the layer rule cut a branch, by group, last kind and layers placed behind it.

        Int64, groups x K x (L + 1) each.
        """
        cdef Py_ssize_t size = self.cuts_by_stage.size()
        shape = (-1, self.num_kinds, self.num_layers + 2)
        if size == 0:
            nothing = np.zeros((0, self.num_kinds, self.num_layers + 1), dtype=np.int64)
            return nothing, nothing
        by_stage = np.array(<long long[:size]>self.cuts_by_stage.data()).reshape(shape)
        by_layer = np.array(<long long[:size]>self.cuts_by_layer.data()).reshape(shape)
        return by_stage.cumsum(axis=2)[:, :, :-1], by_layer.cumsum(axis=2)[:, :, :-1]

    cdef bint _step(self, long long* work) noexcept nogil:
        # Looks at the next choice of the deepest stage; True when there is none left anywhere.
        cdef int stage = self.depth
        cdef bint above
        cdef double shared_ms = news(&self.reader)
        self.best_ms = min(self.best_ms, shared_ms)
        work[0] += CHOICE_WORK
        if self.sealed[stage] or not self._next_choice(stage):
            self.depth -= 1
            if self.depth >= 0:
                self._undo(self.depth)
                return False
            self._simulate()
            return True
        if self._breaks_ridge(stage):
            self.num_pruned_by_layer += self._cut(&self.cuts_by_layer, stage, self.choices[stage].most)
            return False
        self._cost(stage)
        above = self._partial_time(stage) * EXCESS > self.best_ms
        if above and self.stage_pruning and stage < self.num_stages - 1:
            self.num_pruned_by_stage += self._cut(&self.cuts_by_stage, stage, self._most_on_ridge(stage))
            return False
        self.num_search_nodes += 1
        self._push(stage)
        if stage < self.num_stages - 1:
            self.depth = stage + 1
            self.sealed[self.depth] = False
            self.choices[self.depth].edge = self.first_edge[self.states[self.depth].group] - 1
            self.choices[self.depth].most = 0
            return False
        self.num_above += above
        self._add_configuration()
        work[0] += 2 * self.num_stages * self.num_micro_batches * self.num_chunks
        if self.num_waiting == LANES:
            self._simulate()
        self._undo(stage)
        return False

    cdef bint _next_choice(self, int stage) noexcept nogil:
        # The declared order of choices: kind and place, then the layers of each chunk.
        cdef Choice* choice = &self.choices[stage]
        if choice.most > 0 and self._next_split(stage):
            return True
        choice.edge += 1
        while choice.edge < self.first_edge[self.states[stage].group + 1]:
            if self._open_edge(stage):
                return True
            choice.edge += 1
        return False

    cdef bint _next_split(self, int stage) noexcept nogil:
        # Next vector of chunk layers in lexicographic order whose sum lies between least and most.
        cdef Choice* choice = &self.choices[stage]
        cdef int* chunks = self.chunks.data() + stage * self.num_chunks
        cdef int last = self.num_chunks - 1
        cdef int chunk, other, before
        for chunk in range(last, -1, -1):
            chunks[chunk] += 1
            before = 0
            for other in range(last):
                if other > chunk:
                    chunks[other] = 1
                before += chunks[other]
            if chunk < last:
                chunks[last] = max(1, choice.least - before)
            choice.layers = before + chunks[last]
            if choice.layers <= choice.most:
                return True
        return False

    cdef bint _open_edge(self, int stage) noexcept nogil:
        # Begins with the choice's edge: finds the range of layers within memory. False where the edge cannot be taken.
        cdef Choice* choice = &self.choices[stage]
        cdef Edge edge = self.edges[choice.edge]
        cdef int placed = self.states[stage].placed
        cdef int column = placed if self.max_layers.shape[2] > 1 else 0
        cdef int left = self.num_layers - placed
        cdef int previous, chunk
        choice.most = 0
        if self.most_after[edge.target] < 0:
            return False
        if stage > 0:
            previous = self.edges[self.choices[stage - 1].edge].kind
            if edge.within and self.pool_of_kind[previous] == self.pool_of_kind[edge.kind]:
                choice.send_forward = self.intra_node[previous, edge.kind]
                choice.send_backward = self.intra_node[edge.kind, previous]
            else:
                choice.send_forward = self.inter_node[previous, edge.kind]
                choice.send_backward = self.inter_node[edge.kind, previous]
            if choice.send_forward == INFINITY or choice.send_backward == INFINITY:
                return False
        choice.least = max(self.num_chunks, left - self.most_after[edge.target])
        choice.layers = choice.least
        for chunk in range(self.num_chunks):
            self.chunks[stage * self.num_chunks + chunk] = 1
        self.chunks[(stage + 1) * self.num_chunks - 1] = choice.least - self.num_chunks + 1
        left -= self.num_chunks * (self.num_stages - stage - 1)
        choice.most = min(self.max_layers[edge.kind, edge.place, column], left)
        if choice.least > choice.most:
            choice.most = 0
            return False
        return True

    cdef void _cost(self, int stage) noexcept nogil:
        cdef Choice* choice = &self.choices[stage]
        cdef int kind = self.edges[choice.edge].kind
        cdef int place = self.edges[choice.edge].place
        cdef int row = self.row_of_layer[self.states[stage].placed]
        cdef int first = self.chunks[stage * self.num_chunks]
        choice.forward = self.forward[kind, place, row, choice.layers]
        choice.backward = self.backward[kind, place, row, choice.layers]
        choice.all_reduce = self.all_reduce[kind, place, row, choice.layers]
        choice.first_forward, choice.first_backward = choice.forward, choice.backward
        if self.num_chunks > 1:
            choice.first_forward = first * self.layer_times[kind, 0]
            choice.first_backward = first * self.layer_times[kind, 1]
            if stage == 0:
                choice.first_forward += self.first_times[kind, 0]
                choice.first_backward += self.first_times[kind, 1]

    cdef bint _breaks_ridge(self, int stage) noexcept nogil:
        # Theorem 2: among the stages of one kind, in pipeline order, the counts rise and then fall.
        return self.choices[stage].layers > self._most_on_ridge(stage)

    cdef int _most_on_ridge(self, int stage) noexcept nogil:
        # Most layers for the stage that the layer rule allows; all that fit where the rule is off.
        cdef int kind = self.edges[self.choices[stage].edge].kind
        cdef int most = self.choices[stage].most
        if self.layer_pruning and self.falls[kind]:
            return min(most, self.last_layers[kind])
        return most

    cdef double _partial_time(self, int stage) noexcept nogil:
        # g(S_x) of Eq. 2 with x = stage + 1.
        cdef Choice* choice = &self.choices[stage]
        cdef double tail = choice.all_reduce
        if stage > 0:
            tail = max(tail, self.states[stage].tail + self.choices[stage - 1].first_backward)
        return self.states[stage].lead + self.num_micro_batches * (choice.forward + choice.backward) + tail

    cdef long long _cut(self, vector[long long]* cuts, int stage, int most) noexcept nogil:
        # Drops the choice. Without chunks also those with up to `most` layers on the same edge, which the same rule
        # would drop: they rise above the kind's latest stage all the more, and Eq. 2 grows with the layers. Returns how
        # many.
        cdef Choice* choice = &self.choices[stage]
        cdef Edge edge = self.edges[choice.edge]
        cdef int last = most if self.num_chunks == 1 else choice.layers
        cdef long long* row
        cdef int count = last - choice.layers + 1
        if cuts.size() > 0:
            row = cuts.data() + (<Py_ssize_t>edge.target * self.num_kinds + edge.kind) * (self.num_layers + 2)
            row[self.states[stage].placed + choice.layers] += 1
            row[self.states[stage].placed + last + 1] -= 1
        if self.num_chunks == 1:
            self.chunks[stage] = last
        return count

    cdef void _push(self, int stage) noexcept nogil:
        cdef Choice* choice = &self.choices[stage]
        cdef State* after = &self.states[stage + 1]
        cdef int kind = self.edges[choice.edge].kind
        after.group = self.edges[choice.edge].target
        after.placed = self.states[stage].placed + choice.layers
        after.lead = self.states[stage].lead + choice.first_forward
        after.tail = choice.all_reduce
        if stage > 0:
            after.tail = max(after.tail, self.states[stage].tail + self.choices[stage - 1].first_backward)
        choice.old_layers, choice.old_falls = self.last_layers[kind], self.falls[kind]
        if choice.layers < choice.old_layers:
            self.falls[kind] = 1
        self.last_layers[kind] = choice.layers

    cdef void _undo(self, int stage) noexcept nogil:
        cdef Choice* choice = &self.choices[stage]
        cdef int kind = self.edges[choice.edge].kind
        self.last_layers[kind], self.falls[kind] = choice.old_layers, choice.old_falls

    cdef void _add_configuration(self) noexcept nogil:
        # The stack describes a whole pipeline: puts it into the next free lane.
        cdef int stage, chunk, lane, place
        cdef bint same = True
        for stage in range(self.num_stages):
            same = same and self.warmup[self.edges[self.choices[stage].edge].place] == self.warmups[stage]
        if not same:
            self._simulate()
            for stage in range(self.num_stages):
                place = self.edges[self.choices[stage].edge].place
                self.warmups[stage] = self.warmup[place]
        lane = self.num_waiting
        for stage in range(self.num_stages):
            self.waiting_edges[lane * self.num_stages + stage] = self.choices[stage].edge
        for chunk in range(self.num_stages * self.num_chunks):
            self.waiting_chunks[lane * self.num_stages * self.num_chunks + chunk] = self.chunks[chunk]
        if self.num_chunks > 1:
            self._fill_kernel_lane(lane)
        else:
            self._fill_sweep_lane(lane)
        self.num_waiting += 1

    cdef void _fill_sweep_lane(self, int lane) noexcept nogil:
        cdef int stage
        cdef const Choice* choice
        for stage in range(self.num_stages):
            choice = &self.choices[stage]
            self.lanes.forward[stage * LANES + lane] = choice.forward
            self.lanes.backward[stage * LANES + lane] = choice.backward
            self.all_reduces[stage * LANES + lane] = choice.all_reduce
            if stage > 0:
                self.lanes.send_forward[(stage - 1) * LANES + lane] = choice.send_forward
                self.lanes.send_backward[(stage - 1) * LANES + lane] = choice.send_backward

    cdef void _fill_kernel_lane(self, int lane) noexcept nogil:
        # As `OperationList` wants them: F of every chunk and stage, then B; forward links, then backward links.
        cdef int stages = self.num_stages
        cdef int backwards = stages * self.num_chunks
        cdef int last = stages - 1
        cdef int first_kind = self.edges[self.choices[0].edge].kind
        cdef int last_kind = self.edges[self.choices[last].edge].kind
        cdef int stage, chunk, kind, slot, layers
        for stage in range(stages):
            kind = self.edges[self.choices[stage].edge].kind
            for chunk in range(self.num_chunks):
                slot = chunk * stages + stage
                layers = self.chunks[stage * self.num_chunks + chunk]
                self.durations[slot * LANES + lane] = layers * self.layer_times[kind, 0]
                self.durations[(backwards + slot) * LANES + lane] = layers * self.layer_times[kind, 1]
            self.all_reduces[stage * LANES + lane] = self.choices[stage].all_reduce
            if stage > 0:
                self.transfers[(stage - 1) * LANES + lane] = self.choices[stage].send_forward
                self.transfers[(stages + stage) * LANES + lane] = self.choices[stage].send_backward
        self.transfers[last * LANES + lane] = self.inter_node[last_kind, first_kind]
        self.transfers[stages * LANES + lane] = self.inter_node[first_kind, last_kind]
        self.durations[lane] += self.first_times[first_kind, 0]
        self.durations[backwards * LANES + lane] += self.first_times[first_kind, 1]
        self.durations[(backwards - 1) * LANES + lane] += self.last_times[last_kind, 0]
        self.durations[(2 * backwards - 1) * LANES + lane] += self.last_times[last_kind, 1]

    cdef void _time_lanes(self) noexcept nogil:
        if self.num_chunks > 1:
            longest_paths(
                &self.kernel.operations, self.durations.data(), self.transfers.data(), self.all_reduces.data(),
                self.scratch.data(), self.times.data(),
            )
        else:
            sweep_lanes(
                self.num_stages, self.num_micro_batches, self.warmups.data(), self.lanes, self.delays.data(),
                self.all_reduces.data(), self.times.data(),
            )

    cdef void _simulate(self) noexcept nogil:
        # Simulates the configurations that wait and keeps the best.
        cdef int lane
        cdef int* edges
        cdef int* chunks
        cdef int size = self.num_stages * self.num_chunks
        if self.num_waiting == 0:
            return
        self._time_lanes()
        self.num_simulations += self.num_waiting
        for lane in range(self.num_waiting):
            if self.times[lane] <= self.best_ms and self.times[lane] < self.own_ms:
                self.best_ms = self.own_ms = self.times[lane]
                self.improved = True
                edges = self.waiting_edges.data() + lane * self.num_stages
                chunks = self.waiting_chunks.data() + lane * size
                self.best_edges.assign(edges, edges + self.num_stages)
                self.best_chunks.assign(chunks, chunks + size)
        self.num_waiting = 0

    cdef bint _follow(self, const int[::1] path, const int[:, ::1] layers) noexcept nogil:
        # Puts a given configuration on the stack; False where it is none.
        cdef int stage
        for stage in range(self.num_stages):
            if not self._place(stage, path[stage], layers[stage:]):
                return False
            self._push(stage)
        return True

    cdef bint _place(self, int stage, int edge, const int[:, ::1] layers) noexcept nogil:
        # Makes a choice for a stage, its chunks' layers in the first row; False where it is none.
        cdef int group = self.states[stage].group
        cdef int chunk
        if edge < self.first_edge[group] or edge >= self.first_edge[group + 1]:
            return False
        self.choices[stage].edge = edge
        if not self._open_edge(stage):
            return False
        self.choices[stage].layers = 0
        for chunk in range(self.num_chunks):
            if layers[0, chunk] < 1:
                return False
            self.chunks[stage * self.num_chunks + chunk] = layers[0, chunk]
            self.choices[stage].layers += layers[0, chunk]
        if not self.choices[stage].least <= self.choices[stage].layers <= self.choices[stage].most:
            return False
        self._cost(stage)
        return True


def times_of(costs):
    """F and B (ms) of some costs, K x 2."""
    return np.array([[cost.forward_ms, cost.backward_ms] for cost in costs], dtype=np.float64)
