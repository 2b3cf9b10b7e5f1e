# distutils: language = c++
"""Branch and bound for interleaved schedules (docs/algorithm.md, "Chunks")."""

import numpy as np

from libc.math cimport INFINITY, fabs
from poseidon.search._branch_and_bound cimport BranchAndBound, Candidate
from poseidon.search._tables cimport CompletionTables
from poseidon.simulate._longest_path cimport (
    CHAINED, FIRST, LANES, NOTHING, LongestPath, OperationList, longest_path, longest_paths, workspace_length
)

cdef enum:
    MOST_CUTS = 160   # paths that a leaf's first bound is made of
    MOST_BOXES = 500   # boxes that are bounded for one leaf


cdef int most_fractional(const Box* box) noexcept nogil:
    # The entry of the box's point that is farthest from whole numbers; -1 where the box holds one split only.
    cdef int chosen = -1
    cdef size_t index
    cdef double distance
    cdef double farthest = -1.0
    for index in range(box.point.size()):
        if box.most[index] > box.least[index]:
            distance = 0.5 - fabs(box.point[index] - <int>box.point[index] - 0.5)
            if box.point[index] >= box.most[index]:
                continue  # cutting there would leave the box whole
            if distance > farthest:
                chosen, farthest = <int>index, distance
    return chosen


cdef class ChunkedSearch(BranchAndBound):
    """Searches one problem whose stages hold V chunks; `kernel` is the graph of its order."""

    def __init__(
        self, arrays, CompletionTables tables, double best_ms, double tolerance, LongestPath kernel,
        long long most_splits,
    ):
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
        self.single_transfers.resize(2 * stages)
        self.single_reduces.resize(stages)
        self.workspace.resize(LANES * workspace_length(&kernel.operations))
        self.split.resize(stages * self.num_chunks)
        self.best_split.resize(stages * self.num_chunks)
        self.trial.resize(LANES * stages * self.num_chunks)
        self.point.resize(stages * self.num_chunks)
        self.slope.resize(stages * self.num_chunks)
        self.mean_slope.resize(stages * self.num_chunks)
        self.direction.resize(stages * self.num_chunks)

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
        cdef double bound
        cdef int i, chunk
        self._push(stage, candidate)
        if (
            self.inter_node[self.kind[self.num_stages - 1], self.kind[0]] == INFINITY
            or self.inter_node[self.kind[0], self.kind[self.num_stages - 1]] == INFINITY
        ):
            return  # the last stage cannot talk to the first
        self._set_leaf()
        self._even_split()
        if self._improve_split(enough):
            # good enough: splits not tried are only known to keep to the bound
            self.floor_ms = min(self.floor_ms, candidate.bound)
        elif self.is_searching:
            for i in range(self.num_stages):
                for chunk in range(1, self.num_chunks):
                    splits = splits * (self.layers[i] - chunk) / chunk
            if splits <= self.most_splits:
                self._try_all()
            else:
                bound = max(candidate.bound, self._bound_leaf())
                self.floor_ms = min(self.floor_ms, bound)
                if bound < min(self.leaf_ms, self.best_ms) * (1.0 - self.tolerance):
                    self.num_open_leaves += 1
        if self.leaf_ms < self.best_ms:
            self._remember_prefix(stage, candidate, self.leaf_ms)
            self.best_layers = self.best_split

    cdef double _bound_leaf(self) noexcept nogil:
        # Branch and bound over the splits of the leaf's layers: a box gives the least and the most layers of each
        # chunk. Returns a bound on every split that is not better than the best known one.
        cdef double floor = INFINITY
        cdef double enough, bound
        cdef int boxes = 0
        cdef int index, below
        cdef Box box
        self.boxes.clear()
        box.bound = 0.0
        for index in range(self.num_stages * self.num_chunks):
            box.least.push_back(1.0)
            box.most.push_back(self.layers[index // self.num_chunks] - self.num_chunks + 1)
            box.point.push_back(<double>self.layers[index // self.num_chunks] / self.num_chunks)
        self.boxes.push_back(box)
        while not self.boxes.empty():
            enough = min(self.leaf_ms, self.best_ms) * (1.0 - self.tolerance)
            box = self.boxes.back()
            self.boxes.pop_back()
            if box.bound < enough and boxes < MOST_BOXES:
                bound = self._bound_box(&box, enough, MOST_CUTS if boxes == 0 else MOST_CUTS // 4)
                box.bound = max(box.bound, bound)
                boxes += 1
                self.num_search_nodes += 1
            if box.bound >= enough or boxes >= MOST_BOXES:
                floor = min(floor, box.bound)
                continue
            self._round_point(&box)
            index = most_fractional(&box)
            if index < 0:
                continue  # a single split, timed by the rounding
            # The half that holds the point's nearest whole number is looked at first.
            below = <int>box.point[index]
            if box.point[index] - below < 0.5:
                self._push_half(&box, index, below + 1, <int>box.most[index])
                self._push_half(&box, index, <int>box.least[index], below)
            else:
                self._push_half(&box, index, <int>box.least[index], below)
                self._push_half(&box, index, below + 1, <int>box.most[index])
        return floor

    cdef void _push_half(self, const Box* box, int index, int least, int most) noexcept nogil:
        # A part of a box, unless it holds no split of the stage's layers.
        cdef int V = self.num_chunks
        cdef int first = index - index % V
        cdef int other
        cdef double fewest = least
        cdef double highest = most
        for other in range(first, first + V):
            if other != index:
                fewest += box.least[other]
                highest += box.most[other]
        if least <= most and fewest <= self.layers[index // V] <= highest:
            self.boxes.push_back(box[0])
            self.boxes.back().least[index] = least
            self.boxes.back().most[index] = most

    cdef double _bound_box(self, Box* box, double enough, int most_cuts) noexcept nogil:
        # No split in the box is faster. The time is a maximum of linear functions of the layers of each chunk, one for
        # each path; any weighted mean of them is a bound, and its least value over a box is easy to find. The weights
        # come from a subgradient descent on real-valued layers (docs/algorithm.md, "Chunks").
        cdef int V = self.num_chunks
        cdef int size = self.num_stages * V
        cdef int index, stage, chunk, iteration
        cdef double best = box.bound
        cdef double fastest = INFINITY
        cdef double time_ms, constant, weight, norm, mean
        cdef double mean_constant = 0.0
        cdef double total = 0.0
        self.point = box.point
        self._fit_point(box)
        for iteration in range(most_cuts):
            if iteration == most_cuts // 8 or iteration == most_cuts // 4 or iteration == most_cuts // 2:
                total = 0.0  # early cuts belong to points far from the minimum: the mean begins again
            time_ms = self._cut()
            if time_ms < fastest:
                fastest = time_ms
                box.point = self.point
            constant = time_ms
            norm = 0.0
            for stage in range(self.num_stages):
                mean = 0.0
                for chunk in range(V):
                    mean += self.slope[stage * V + chunk] / V
                for chunk in range(V):
                    index = stage * V + chunk
                    constant -= self.slope[index] * self.point[index]
                    self.direction[index] = self.slope[index] - mean
                    norm += self.direction[index] * self.direction[index]
            if norm == 0.0:
                return max(best, time_ms)  # the path is indifferent to the split
            weight = max(time_ms - 0.5 * (best + fastest), 0.001 * fastest) / norm
            total += weight
            for index in range(size):
                self.mean_slope[index] = (
                    self.slope[index] if total == weight
                    else self.mean_slope[index] + (self.slope[index] - self.mean_slope[index]) * (weight / total)
                )
            mean_constant = (
                constant if total == weight else mean_constant + (constant - mean_constant) * (weight / total)
            )
            if iteration % 4 == 3:
                best = max(best, self._least_of_mean(box, mean_constant))
                if best >= enough:
                    break
            for index in range(size):
                self.point[index] -= weight * self.direction[index]
            self._fit_point(box)
        return best

    cdef void _fit_point(self, const Box* box) noexcept nogil:
        # Moves the point into the box, each stage's layers at their sum.
        cdef int V = self.num_chunks
        cdef int stage, chunk, index, room
        cdef double excess
        for stage in range(self.num_stages):
            while True:
                excess = -<double>self.layers[stage]
                for chunk in range(V):
                    index = stage * V + chunk
                    self.point[index] = min(max(self.point[index], box.least[index]), box.most[index])
                    excess += self.point[index]
                room = 0
                for chunk in range(V):
                    index = stage * V + chunk
                    if (
                        (excess > 0 and self.point[index] > box.least[index])
                        or (excess < 0 and self.point[index] < box.most[index])
                    ):
                        room += 1
                if fabs(excess) < 1e-9 or room == 0:
                    break
                for chunk in range(V):
                    index = stage * V + chunk
                    if (
                        (excess > 0 and self.point[index] > box.least[index])
                        or (excess < 0 and self.point[index] < box.most[index])
                    ):
                        self.point[index] -= excess / room

    cdef double _least_of_mean(self, const Box* box, double constant) noexcept nogil:
        # Least value of the mean cut over a box: the least layers a chunk, the others where the slope is least first.
        cdef int V = self.num_chunks
        cdef int stage, chunk, index, cheapest, _times
        cdef double left, given
        cdef unsigned long long done
        for stage in range(self.num_stages):
            left = self.layers[stage]
            for chunk in range(V):
                index = stage * V + chunk
                constant += self.mean_slope[index] * box.least[index]
                left -= box.least[index]
            if left < 0:
                return INFINITY
            done = 0
            for _times in range(V):
                cheapest = -1
                for chunk in range(V):
                    if not (done >> chunk) & 1 and (
                        cheapest < 0 or self.mean_slope[stage * V + chunk] < self.mean_slope[stage * V + cheapest]
                    ):
                        cheapest = chunk
                done |= 1ULL << cheapest
                index = stage * V + cheapest
                given = min(left, box.most[index] - box.least[index])
                constant += self.mean_slope[index] * given
                left -= given
            if left > 0:
                return INFINITY
        return constant

    cdef void _round_point(self, const Box* box) noexcept nogil:
        # Times the split next to the box's point.
        cdef int V = self.num_chunks
        cdef int stage, chunk, index, left, best
        cdef double lack, most_lack
        for stage in range(self.num_stages):
            left = self.layers[stage]
            for chunk in range(V):
                index = stage * V + chunk
                self.split[index] = <int>(box.point[index] + 1e-6)
                left -= self.split[index]
            while left > 0:
                best = -1
                most_lack = -INFINITY
                for chunk in range(V):
                    index = stage * V + chunk
                    lack = box.point[index] - self.split[index]
                    if lack > most_lack and self.split[index] < box.most[index]:
                        best, most_lack = index, lack
                self.split[best] += 1
                left -= 1
        self._add_trial()
        self._flush()

    cdef double _cut(self) noexcept nogil:
        # Time at the point, and its slope: the longest path's forwards and backwards of each chunk.
        cdef const OperationList* operations = &self.graph_kernel.operations
        cdef int stages = self.num_stages
        cdef int V = self.num_chunks
        cdef int stage, chunk, kind, slot, index, cell, sender, previous
        cdef double extra, time_ms
        cdef double longest = -1.0
        cdef const double* cells
        for stage in range(stages):
            kind = self.kind[stage]
            for chunk in range(V):
                slot = chunk * stages + stage
                index = stage * V + chunk
                self.durations[slot] = self.point[index] * self.layer_times[kind, 0]
                self.durations[V * stages + slot] = self.point[index] * self.layer_times[kind, 1]
                self.slope[index] = 0.0
            self.single_transfers[stage] = self.transfers[stage * LANES]
            self.single_transfers[stages + stage] = self.transfers[(stages + stage) * LANES]
            self.single_reduces[stage] = self.all_reduces[stage * LANES]
        self.durations[0] += self.first_times[self.kind[0], 0]
        self.durations[V * stages] += self.first_times[self.kind[0], 1]
        self.durations[V * stages - 1] += self.last_times[self.kind[stages - 1], 0]
        self.durations[2 * V * stages - 1] += self.last_times[self.kind[stages - 1], 1]
        time_ms = longest_path(
            operations, self.durations.data(), self.single_transfers.data(), self.single_reduces.data(),
            self.workspace.data()
        )
        self.num_simulations += 1
        cells = self.workspace.data() + 2 * operations.num_slots
        cell = NOTHING
        for stage in range(stages):
            if cells[operations.last[stage]] + self.single_reduces[stage] > longest:
                longest = cells[operations.last[stage]] + self.single_reduces[stage]
                cell = operations.last[stage]
        while cell >= FIRST:
            index = cell - FIRST
            slot = operations.cost[index] // 2
            kind = self.kind[slot % stages]
            chunk = (slot // stages) % V
            self.slope[(slot % stages) * V + chunk] += self.layer_times[kind, 0 if slot < V * stages else 1]
            sender = operations.sender[index]
            previous = operations.previous[index]
            extra = self.single_transfers[operations.link[slot]] if operations.link[slot] >= 0 else 0.0
            if sender == CHAINED or sender == NOTHING or cells[previous] >= cells[sender] + extra:
                cell = previous
            else:
                cell = sender
        return time_ms

    cdef void _set_leaf(self) noexcept nogil:
        # Weights that do not depend on the split: transfers and all-reduces.
        cdef int stages = self.num_stages
        cdef int stage, lane
        cdef double send_forward, send_backward, reduce
        cdef int first = self.kind[0]
        cdef int last = self.kind[stages - 1]
        for stage in range(stages):
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
        # Steepest descent from the split at hand, moving one layer between two chunks of a stage; True when the bound
        # is reached.
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
            &self.graph_kernel.operations, self.durations.data(), self.transfers.data(), self.all_reduces.data(),
            self.workspace.data(),
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
