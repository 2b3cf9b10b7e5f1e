# distutils: language = c++
"""Depth-first branch and bound over stages: the exact search of one outer choice (docs/algorithm.md)."""

import numpy as np

from libc.math cimport INFINITY
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector
from poseidon.search._incumbent_cell cimport IncumbentCell, news
from poseidon.search._sweep cimport LANES, Tips, sweep, sweep_scratch_size
from poseidon.search._tables cimport CompletionTables


cdef bint more_promising(const Candidate& one, const Candidate& other) noexcept nogil:
    # The declared order of candidates: bound, then edge (kind, then depth), then layers.
    if one.bound != other.bound:
        return one.bound < other.bound
    if one.edge != other.edge:
        return one.edge < other.edge
    return one.layers < other.layers


cdef bint more_promising_state(const BeamState& one, const BeamState& other) noexcept nogil:
    # As above; among equals the prefix that stands earlier in the level before.
    if more_promising(one.candidate, other.candidate):
        return True
    if more_promising(other.candidate, one.candidate):
        return False
    return one.parent < other.parent


cdef class BranchAndBound:
    """Searches one problem of the warm-up family for a plan faster than `best_ms`.

    `run` may be called again and again; between calls the search can be inspected, given a better incumbent, or
    dropped.
    """

    def __cinit__(self, arrays, CompletionTables tables, double best_ms, double tolerance, *of_subclass):
        cdef int stage, _stage
        self.graph = tables.graph
        self.tables = tables
        self.best_ms = best_ms
        self.tolerance = tolerance
        self.floor_ms = INFINITY
        self.num_stages = arrays.num_stages
        self.num_layers = arrays.num_layers
        self.num_micro_batches = arrays.num_micro_batches
        self.num_kinds = len(arrays.problem.kinds)
        self.least = arrays.least_layers
        self.round_trips = arrays.round_trips
        self.is_gpipe = arrays.is_gpipe
        self.forward = arrays.forward
        self.backward = arrays.backward
        self.all_reduce = arrays.all_reduce
        self.cost = arrays.cost
        self.beta = arrays.beta
        self.gamma = arrays.gamma
        self.max_layers = arrays.max_layers
        self.row_of_layer = arrays.row_of_layer
        self.warmup = arrays.warmup
        self.intra_node = arrays.intra_node
        self.inter_node = arrays.inter_node
        self.deepens = arrays.most_depth > 1
        self.storage.resize(5 * self.num_stages, 0.0)
        for stage in range(self.num_stages):
            self.warmups.push_back(arrays.warmup[arrays.first_place[stage]])
        self.scratch.resize(sweep_scratch_size(self.num_stages, self.num_micro_batches))
        self.prefix.num_stages = self.num_stages
        self.prefix.num_micro_batches = self.num_micro_batches
        self.prefix.warmup = self.warmups.data()
        self.prefix.forward = self.storage.data()
        self.prefix.backward = self.prefix.forward + self.num_stages
        self.prefix.all_reduce = self.prefix.backward + self.num_stages
        self.prefix.send_forward = self.prefix.all_reduce + self.num_stages
        self.prefix.send_backward = self.prefix.send_forward + self.num_stages
        self.candidates.resize(self.num_stages)
        self.cursor.resize(self.num_stages, 0)
        for _stage in range(self.num_stages + 1):
            self.group.push_back(0)
            self.kind.push_back(0)
            self.layers.push_back(0)
            self.placed.push_back(0)
            self.round_trip.push_back(0.0)
            self.bottleneck.push_back(0.0)
            self.pending.push_back(-INFINITY)
            self.slowest_forward.push_back(0.0)
            self.slowest_backward.push_back(0.0)
            self.bound.push_back(0.0)
        self._relax(arrays, *of_subclass)
        self.reader.cell = NULL
        self.depth = -1
        self.is_open = True
        self.is_searching = True

    def _relax(self, arrays, *of_subclass):
        # Tables of a `CountRelaxation` come with what they charge for a stage of each kind.
        cdef int kind
        cdef double total = 0.0
        self.relaxed = len(of_subclass) == 1
        self.charge.resize(self.num_kinds, 0.0)
        self.charged.resize(self.num_stages + 1, 0.0)
        self.left.resize((self.num_stages + 1) * self.num_kinds, 0)
        if not self.relaxed:
            return
        for kind in range(self.num_kinds):
            self.charge[kind] = of_subclass[0][kind]
            self.left[kind] = arrays.problem.kinds[kind].stages
            total += self.charge[kind] * self.left[kind]
        self.charged[0] = total

    @property
    def root_bounds(self):
        """J bounds (ms) on every whole configuration whose bottleneck lies in each threshold's interval."""
        return self.tables.root_bounds - self.charged[0]

    def run(self, long long most_search_nodes):
        """Goes on for at most so many search nodes; True when the search is complete."""
        cdef long long last = self.num_search_nodes + most_search_nodes
        cdef bint done = False
        if self.is_open and self.depth < 0:
            self.restart()
        with nogil:
            while self.num_search_nodes < last and not done:
                done = self._step()
        self.is_open = not done
        return done

    def try_minimisers(self):
        """Times the plan that each table calls best: good first incumbents."""
        cdef int threshold
        self.is_searching = False
        with nogil:
            for threshold in range(self.tables.num_thresholds):
                self._follow(threshold)
        self.is_searching = True
        self.restart()

    def beam(self, int width, int same_state=4):
        """Beam search: stage by stage, only the `width` prefixes with the least bounds live on; True when none had to
        be dropped.

        At most `same_state` of them may agree in devices used, last kind and layers placed: they have the same
        completions.
        """
        cdef bint exhaustive
        with nogil:
            exhaustive = self._beam(width, same_state)
        self.restart()
        return exhaustive

    def restart(self):
        """Back to the root, with the incumbent kept."""
        self.depth = 0
        self._expand(0)

    def set_incumbent(self, double best_ms):
        """Another search found a plan of this time: only faster ones are of interest from now on."""
        if best_ms < self.best_ms:
            self.best_ms = best_ms
            self.improved = False

    def watch(self, IncumbentCell cell, long long rank, double slack):
        """From now on also heeds the time to beat in a cell, at every search node; `rank` is this problem's own place
        in the order that breaks ties, `slack` the fraction up to which times count as ties.
        """
        self.cell = cell
        self.reader.cell = cell.data
        self.reader.rank = rank
        self.reader.slack = slack
        self.reader.seen_ms = INFINITY

    @property
    def path(self):
        """The stages that are fixed, a row each: edge, layers, bound (ms) and round trip (ms)."""
        cdef int stage
        cdef Candidate candidate
        path = np.empty((max(self.depth, 0), 4))
        for stage in range(max(self.depth, 0)):
            candidate = self.candidates[stage][self.cursor[stage] - 1]
            path[stage] = candidate.edge, candidate.layers, candidate.bound, candidate.round_trip
        return path

    @property
    def rows(self):
        """The candidates that are still to be tried, a row each: stage, edge, layers, bound (ms) and round trip (ms);
        those of a stage follow its part of the `path` and are ordered best first.
        """
        cdef int stage
        cdef size_t index
        cdef Candidate candidate
        rows = []
        for stage in range(self.depth + 1):
            for index in range(self.cursor[stage], self.candidates[stage].size()):
                candidate = self.candidates[stage][index]
                rows.append((stage, candidate.edge, candidate.layers, candidate.bound, candidate.round_trip))
        return np.array(rows, dtype=np.float64).reshape(-1, 5)

    def load(self, const double[:, ::1] path, const double[:, ::1] rows):
        """Goes on with a `path` and `rows` (ordered by stage) of a search of the same problem, whatever its tables.

        Call at most once, before the first `run`.
        """
        cdef int stage, row
        cdef Candidate candidate
        candidate.delay = 0.0
        for stage in range(self.num_stages):
            self.candidates[stage].clear()
            self.cursor[stage] = 0
        for stage in range(path.shape[0]):
            candidate.edge, candidate.layers = <int>path[stage, 0], <int>path[stage, 1]
            candidate.bound, candidate.round_trip = path[stage, 2], path[stage, 3]
            self._push(stage, &candidate)
            self.candidates[stage].push_back(candidate)
            self.cursor[stage] = 1
        for row in range(rows.shape[0]):
            candidate.edge, candidate.layers = <int>rows[row, 1], <int>rows[row, 2]
            candidate.bound, candidate.round_trip = rows[row, 3], rows[row, 4]
            self.candidates[<int>rows[row, 0]].push_back(candidate)
        self.depth = path.shape[0]

    @property
    def bound_ms(self):
        """No plan of this problem is faster: the least of the incumbent, what was pruned and what is still open."""
        cdef double least = min(self.best_ms, self.floor_ms)
        cdef int stage
        if self.is_open and self.depth < 0:
            return float(np.min(self.root_bounds, initial=least))
        if self.depth >= 0:
            for stage in range(self.depth + 1):
                if self.cursor[stage] < self.candidates[stage].size():
                    least = min(least, self.candidates[stage][self.cursor[stage]].bound)
        return least

    @property
    def best_plan(self):
        """Kinds (int32, N), layers (int32, N x V) and warm-ups (int32, N) of the incumbent's stages; None when it is
        not this search's own.
        """
        if not self.improved:
            return None
        layers = np.array(self.best_layers, dtype=np.int32)
        kinds, warmups = np.array(self.best_kinds, dtype=np.int32), np.array(self.best_warmups, dtype=np.int32)
        return kinds, layers.reshape(self.num_stages, -1), warmups

    cdef bint _step(self) noexcept nogil:
        # Takes the next candidate of the deepest stage; True when none is left anywhere.
        cdef int stage = self.depth
        cdef Candidate candidate
        cdef double shared_ms
        if stage < 0:
            return True
        shared_ms = news(&self.reader)
        if shared_ms < self.best_ms:
            self.best_ms = shared_ms
            self.improved = False
        if self.cursor[stage] >= self.candidates[stage].size():
            self.depth -= 1
            return self.depth < 0
        candidate = self.candidates[stage][self.cursor[stage]]
        if candidate.bound >= self.best_ms * (1.0 - self.tolerance):
            self.floor_ms = min(self.floor_ms, candidate.bound)
            self.num_pruned_by_incumbent += self.candidates[stage].size() - self.cursor[stage]
            self.cursor[stage] = self.candidates[stage].size()
            return False
        self.cursor[stage] += 1
        self.num_search_nodes += 1
        self._push(stage, &candidate)
        self.depth = stage + 1
        self._expand(stage + 1)
        return False

    cdef void _push(self, int stage, const Candidate* candidate) noexcept nogil:
        # Fixes stage `stage`.
        cdef int kind = self.graph.edge_kind[candidate.edge]
        cdef int place = self.graph.edge_place[candidate.edge]
        cdef int row = self.row_of_layer[self.placed[stage]]
        cdef int previous
        cdef bint same_node
        cdef double slowest
        self.prefix.forward[stage] = self.forward[kind, place, row, candidate.layers]
        self.prefix.backward[stage] = self.backward[kind, place, row, candidate.layers]
        self.prefix.all_reduce[stage] = self.all_reduce[kind, place, row, candidate.layers]
        self.warmups[stage] = self.warmup[place]
        if stage > 0:
            previous = self.kind[stage - 1]
            same_node = self.graph.same_node(candidate.edge, previous)
            self.prefix.send_forward[stage - 1] = (
                self.intra_node[previous, kind] if same_node else self.inter_node[previous, kind]
            )
            self.prefix.send_backward[stage - 1] = (
                self.intra_node[kind, previous] if same_node else self.inter_node[kind, previous]
            )
        slowest = self.beta[kind, place, row, candidate.layers]
        self.bottleneck[stage + 1] = max(self.bottleneck[stage], slowest)
        self.pending[stage + 1] = self._pending(
            stage, candidate.edge, candidate.layers, candidate.round_trip - self.round_trip[stage]
        )
        slowest = self.prefix.forward[stage]
        self.slowest_forward[stage + 1] = max(self.slowest_forward[stage], slowest)
        slowest = self.prefix.backward[stage]
        self.slowest_backward[stage + 1] = max(self.slowest_backward[stage], slowest)
        self.kind[stage] = kind
        self.layers[stage] = candidate.layers
        self.placed[stage + 1] = self.placed[stage] + candidate.layers
        self.group[stage + 1] = self.graph.edge_target[candidate.edge]
        self.round_trip[stage + 1] = candidate.round_trip
        self.bound[stage + 1] = candidate.bound
        if self.relaxed:
            self.charged[stage + 1] = self.charged[stage] - self.charge[kind]
            for previous in range(self.num_kinds):
                self.left[(stage + 1) * self.num_kinds + previous] = (
                    self.left[stage * self.num_kinds + previous] - (previous == kind)
                )

    cdef double _pending(self, int stage, int edge, int layers, double added) noexcept nogil:
        cdef int row = self.row_of_layer[self.placed[stage]]
        cdef double own = self.gamma[self.graph.edge_kind[edge], self.graph.edge_place[edge], row, layers]
        cdef double earlier = self.pending[stage] + added
        return max(own, earlier)

    cdef double _work_left(self, int stage, int edge, int layers, double bottleneck) noexcept nogil:
        # What the first stage + 1 stages have to do after the first round trip: their largest beta, but in GPipe the
        # slowest forward and the slowest backward may lie on different stages.
        cdef int kind, place, row
        cdef double forward, backward
        if not self.is_gpipe:
            return bottleneck
        kind, place = self.graph.edge_kind[edge], self.graph.edge_place[edge]
        row = self.row_of_layer[self.placed[stage]]
        forward = self.forward[kind, place, row, layers]
        backward = self.backward[kind, place, row, layers]
        forward = max(self.slowest_forward[stage], forward)
        backward = max(self.slowest_backward[stage], backward)
        return (self.num_micro_batches - 1) * (forward + backward)

    cdef void _expand(self, int stage) noexcept nogil:
        # Fills candidates[stage], best first.
        if stage >= self.num_stages:
            self.depth = self.num_stages - 1
            return
        self.candidates[stage].clear()
        self.cursor[stage] = 0
        self._collect(stage)
        if stage == self.num_stages - 1:
            self._finish(stage)
        else:
            self._time_survivors(stage)

    cdef void _collect(self, int stage) noexcept nogil:
        # Candidates for stage `stage` that the completion tables cannot exclude.
        cdef int group = self.group[stage]
        cdef int placed = self.placed[stage]
        cdef int row = self.row_of_layer[placed]
        cdef int column = placed if self.max_layers.shape[2] > 1 else 0
        cdef int edge, kind, place, layers, after, threshold, most, loosest
        cdef double cutoff = self.best_ms * (1.0 - self.tolerance)
        cdef double round_trip, bottleneck, work_left, pending, passed, bound, boundary, after_ms, charged
        cdef const double* rest
        cdef Candidate candidate
        self.survivors.clear()
        for edge in range(self.graph.first_edge[group], self.graph.first_edge[group + 1]):
            kind, place, after = self.graph.edge_kind[edge], self.graph.edge_place[edge], self.graph.edge_target[edge]
            boundary = 0.0 if stage == 0 else self.round_trips * self.graph.boundary(edge, self.kind[stage - 1])
            if boundary == INFINITY or (self.relaxed and self.left[stage * self.num_kinds + kind] == 0):
                continue
            charged = self.charged[stage] - self.charge[kind]
            most = min(self.max_layers[kind, place, column], self.num_layers - placed)
            for layers in range(self.least, most + 1):
                rest = self.tables.completion(after, kind, placed + layers)
                if rest == NULL:
                    continue
                round_trip = self.round_trip[stage] + boundary + self.cost[kind, place, row, layers]
                bottleneck = self.beta[kind, place, row, layers]
                bottleneck = max(self.bottleneck[stage], bottleneck)
                work_left = self._work_left(stage, edge, layers, bottleneck)
                pending = self._pending(stage, edge, layers, round_trip - self.round_trip[stage])
                candidate.bound = INFINITY
                loosest = -1
                for threshold in range(self.tables.num_thresholds):
                    if rest[threshold] == INFINITY:
                        continue
                    after_ms = rest[threshold] - charged
                    passed = pending + after_ms
                    passed = max(passed, bottleneck)
                    if passed > self.tables.high[threshold]:
                        continue
                    passed = max(passed, work_left)
                    bound = round_trip + after_ms + max(passed, self.tables.low[threshold])
                    candidate.bound = min(candidate.bound, bound)
                    if bound < cutoff:
                        loosest = threshold
                if loosest < 0:
                    self.num_pruned_by_table += 1
                    self.floor_ms = min(self.floor_ms, candidate.bound)
                    continue
                candidate.round_trip = round_trip
                candidate.delay = max(rest[loosest] - charged, 0.0)
                candidate.edge = edge
                candidate.layers = layers
                self.survivors.push_back(candidate)

    cdef void _fill_tip(self, Tips* tips, int lane, int stage, const Candidate* candidate) noexcept nogil:
        cdef int kind = self.graph.edge_kind[candidate.edge]
        cdef int place = self.graph.edge_place[candidate.edge]
        cdef int row = self.row_of_layer[self.placed[stage]]
        cdef int previous
        cdef bint same_node
        tips.forward[lane] = self.forward[kind, place, row, candidate.layers]
        tips.backward[lane] = self.backward[kind, place, row, candidate.layers]
        tips.all_reduce[lane] = self.all_reduce[kind, place, row, candidate.layers]
        tips.delay[lane] = candidate.delay
        self.warmups[stage] = self.warmup[place]
        if stage > 0:
            previous = self.kind[stage - 1]
            same_node = self.graph.same_node(candidate.edge, previous)
            tips.send_forward[lane] = self.intra_node[previous, kind] if same_node else self.inter_node[previous, kind]
            tips.send_backward[lane] = self.intra_node[kind, previous] if same_node else self.inter_node[kind, previous]

    cdef void _sort_survivors(self) noexcept nogil:
        sort(self.survivors.begin(), self.survivors.end(), &more_promising)

    cdef void _time_survivors(self, int stage) noexcept nogil:
        # Tightens the bounds with the prefix DAG, LANES candidates at a time.
        cdef Tips tips
        cdef double result[LANES]
        cdef size_t first, index
        cdef int lane
        cdef Candidate candidate
        cdef double cutoff = self.best_ms * (1.0 - self.tolerance)
        self._sort_survivors()
        if stage == 0 and self.deepens:
            # The candidates differ in the first stage's warm-up, which the lanes of a sweep share.
            self.candidates[stage] = self.survivors
            return
        first = 0
        while first < self.survivors.size():
            for lane in range(LANES):
                index = min(first + lane, self.survivors.size() - 1)
                self._fill_tip(&tips, lane, stage, &self.survivors[index])
            sweep(&self.prefix, stage + 1, &tips, self.scratch.data(), result)
            for lane in range(LANES):
                index = first + lane
                if index >= self.survivors.size():
                    break
                candidate = self.survivors[index]
                if max(candidate.bound, result[lane]) < self.bound[stage] * (1.0 - 1e-9):
                    self.num_bound_alarms += 1
                # The delay holds for the thresholds that could still win; the others are only known to reach the
                # cutoff.
                candidate.bound = max(candidate.bound, min(result[lane], cutoff))
                if candidate.bound >= cutoff:
                    self.num_pruned_by_prefix += 1
                    self.floor_ms = min(self.floor_ms, candidate.bound)
                    continue
                self.candidates[stage].push_back(candidate)
            first += LANES
        sort(self.candidates[stage].begin(), self.candidates[stage].end(), &more_promising)

    cdef void _finish(self, int stage) noexcept nogil:
        # The survivors complete the pipeline: times them exactly.
        cdef Tips tips
        cdef double result[LANES]
        cdef size_t first, index
        cdef int lane
        self._sort_survivors()
        first = 0
        while first < self.survivors.size():
            for lane in range(LANES):
                index = min(first + lane, self.survivors.size() - 1)
                self._fill_tip(&tips, lane, stage, &self.survivors[index])
                tips.delay[lane] = 0.0
            sweep(&self.prefix, stage + 1, &tips, self.scratch.data(), result)
            for lane in range(LANES):
                index = first + lane
                if index >= self.survivors.size():
                    break
                self.num_simulations += 1
                if result[lane] < self.best_ms:
                    self._keep(stage, &self.survivors[index], result[lane])
            first += LANES

    cdef void _keep(self, int stage, const Candidate* candidate, double time_ms) noexcept nogil:
        cdef int i
        self._remember_prefix(stage, candidate, time_ms)
        self.best_layers.resize(self.num_stages)
        for i in range(stage):
            self.best_layers[i] = self.layers[i]
        self.best_layers[stage] = candidate.layers

    cdef void _remember_prefix(self, int stage, const Candidate* candidate, double time_ms) noexcept nogil:
        cdef int i
        self.best_ms = time_ms
        self.improved = True
        self.best_kinds.resize(self.num_stages)
        for i in range(stage):
            self.best_kinds[i] = self.kind[i]
        self.best_kinds[stage] = self.graph.edge_kind[candidate.edge]
        self.best_warmups = self.warmups
        self.best_warmups[stage] = self.warmup[self.graph.edge_place[candidate.edge]]

    cdef bint _beam(self, int width, int same_state) noexcept nogil:
        cdef bint exhaustive = True
        cdef int stage, index
        cdef BeamState root
        self.levels.resize(self.num_stages + 1)
        root.parent = -1
        root.placed = 0
        self.levels[0].assign(1, root)
        for stage in range(self.num_stages):
            self.levels[stage + 1].clear()
            for index in range(<int>self.levels[stage].size()):
                self._load(stage, index)
                self._expand(stage)
                for candidate in self.candidates[stage]:
                    root.candidate = candidate
                    root.parent = index
                    root.placed = self.placed[stage] + candidate.layers
                    self.levels[stage + 1].push_back(root)
            if not self._widen(stage + 1, width, same_state):
                exhaustive = False
        return exhaustive

    cdef void _load(self, int stage, int index) noexcept nogil:
        # Fixes the first `stage` stages as in a state of that level.
        cdef int i
        cdef vector[int] path
        path.resize(stage + 1)
        for i in range(stage, 0, -1):
            path[i] = index
            index = self.levels[i][index].parent
        for i in range(1, stage + 1):
            self._push(i - 1, &self.levels[i][path[i]].candidate)

    cdef bint _widen(self, int stage, int width, int same_state) noexcept nogil:
        # Keeps the most promising states of a level; False when some that might still lead to a better plan were
        # dropped.
        cdef size_t index, kept, other
        cdef int alike
        cdef BeamState state
        cdef double cutoff = self.best_ms * (1.0 - self.tolerance)
        cdef bint exhaustive = True
        sort(self.levels[stage].begin(), self.levels[stage].end(), &more_promising_state)
        kept = 0
        for index in range(self.levels[stage].size()):
            state = self.levels[stage][index]
            if state.candidate.bound >= cutoff:
                self.floor_ms = min(self.floor_ms, state.candidate.bound)
                break
            alike = 0
            for other in range(kept):
                if (
                    self.graph.edge_target[self.levels[stage][other].candidate.edge]
                    == self.graph.edge_target[state.candidate.edge]
                    and self.graph.edge_kind[self.levels[stage][other].candidate.edge]
                    == self.graph.edge_kind[state.candidate.edge]
                    and self.levels[stage][other].placed == state.placed
                ):
                    alike += 1
            if alike >= same_state or kept >= <size_t>width:
                exhaustive = False
                if kept >= <size_t>width:
                    break
                continue
            self.levels[stage][kept] = state
            kept += 1
        self.levels[stage].resize(kept)
        return exhaustive

    cdef void _follow(self, int threshold) noexcept nogil:
        # Walks from the root along one table's minimisers and times the plan at the end.
        cdef int stage, index, kind, place, row
        cdef double least, value
        cdef size_t chosen
        cdef const double* rest
        cdef double best_ms = self.best_ms
        cdef Candidate candidate
        for stage in range(self.num_stages):
            self.best_ms = INFINITY
            self._collect(stage)
            self.best_ms = best_ms
            if self.survivors.size() == 0:
                return
            if stage == self.num_stages - 1:
                self._finish(stage)
                return
            least = INFINITY
            row = self.row_of_layer[self.placed[stage]]
            chosen = self.survivors.size()
            for index in range(<int>self.survivors.size()):
                candidate = self.survivors[index]
                kind, place = self.graph.edge_kind[candidate.edge], self.graph.edge_place[candidate.edge]
                value = self.beta[kind, place, row, candidate.layers]
                if value > self.tables.high[threshold]:
                    continue
                rest = self.tables.completion(
                    self.graph.edge_target[candidate.edge], kind, self.placed[stage] + candidate.layers
                )
                value = self.gamma[kind, place, row, candidate.layers]
                if value + rest[threshold] > self.tables.high[threshold]:
                    continue
                value = candidate.round_trip + rest[threshold] + self.charge[kind]
                if value < least:
                    least = value
                    chosen = index
            if chosen == self.survivors.size():
                return
            candidate = self.survivors[chosen]
            self._push(stage, &candidate)
