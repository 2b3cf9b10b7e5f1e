# distutils: language = c++
"""Completion tables of the exact search, by dynamic programming from the last stage."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc
from poseidon.search._stage_graph cimport StageGraph


def most_layers_after(StageGraph graph, const int[:, ::1] limits, int least):
    """Most layers that the stages after each group can hold, int32 a group; -1 where no whole pipeline can follow.

    `limits` (K x P) are the most layers of each kind at each place, `least` the fewest a stage may hold.
    """
    cdef int[::1] most = np.full(graph.num_groups, -1, dtype=np.int32)
    cdef int group, edge, after, limit
    with nogil:
        for group in range(graph.num_groups - 1, -1, -1):
            if graph.final[group]:
                most[group] = 0
                continue
            for edge in range(graph.first_edge[group], graph.first_edge[group + 1]):
                after = graph.edge_target[edge]
                limit = limits[graph.edge_kind[edge], graph.edge_place[edge]]
                if most[after] >= 0 and limit >= least:
                    most[group] = max(most[group], most[after] + limit)
    return np.asarray(most)


def most_layers_before(StageGraph graph, const int[:, ::1] limits, int least):
    """Most layers that the stages up to each group can hold, int32 a group; -1 where it cannot be reached."""
    cdef int[::1] most = np.full(graph.num_groups, -1, dtype=np.int32)
    cdef int group, edge, after, limit
    most[0] = 0
    with nogil:
        for group in range(graph.num_groups):
            if most[group] < 0:
                continue
            for edge in range(graph.first_edge[group], graph.first_edge[group + 1]):
                after = graph.edge_target[edge]
                limit = limits[graph.edge_kind[edge], graph.edge_place[edge]]
                if limit >= least:
                    most[after] = max(most[after], most[group] + limit)
    return np.asarray(most)


cdef class CompletionTables:
    """Completion tables for one problem and J thresholds.

    `first_threshold` (K x P x R x (n + 1), int16) is the first threshold whose limit a stage respects, J where it
    respects none. Raises MemoryError where more than `most_values` numbers would be needed.
    """

    def __init__(
        self, StageGraph graph, arrays, low, high, const short[:, :, :, ::1] first_threshold, const int[:, ::1] limits,
        Py_ssize_t most_values,
    ):
        cdef int group
        cdef int least = arrays.least_layers
        cdef int[::1] after = most_layers_after(graph, limits, least)
        cdef int[::1] before = most_layers_before(graph, limits, least)
        cdef int num_layers = arrays.num_layers
        cdef double[::1] values
        self._begin(graph, low, high)
        for group in range(graph.num_groups):
            self.lowest[group], self.highest[group] = 0, -1
            if after[group] < 0 or before[group] < 0:
                continue
            self.lowest[group] = max(num_layers - after[group], least * graph.stage[group])
            self.highest[group] = min(before[group], num_layers - least * (graph.num_stages - graph.stage[group]))
        self._lay_out()
        if self.num_values > most_values:
            raise MemoryError(f"the completion tables need {self.num_values} numbers; accepted: {most_values}")
        values = np.empty(max(self.num_values, 1))
        self.held = values
        self.values = &self.held[0]
        self._fill(
            &values[0],
            arrays.cost, arrays.gamma, arrays.max_layers, arrays.row_of_layer, first_threshold, least, num_layers,
            arrays.round_trips
        )

    cdef int _begin(self, StageGraph graph, low, high) except -1:
        self.graph = graph
        self.low = np.array(low)
        self.high = np.array(high)
        self.num_thresholds = self.high.shape[0]
        self.offset = <Py_ssize_t*>malloc(graph.num_groups * sizeof(Py_ssize_t))
        self.lowest = <int*>malloc(graph.num_groups * sizeof(int))
        self.highest = <int*>malloc(graph.num_groups * sizeof(int))
        if self.offset == NULL or self.lowest == NULL or self.highest == NULL:
            raise MemoryError
        return 0

    cdef void _lay_out(self) noexcept:
        # Where each group's values begin, from the layers that it may have placed.
        cdef int group, width
        self.num_values = 0
        for group in range(self.graph.num_groups):
            self.offset[group] = self.num_values
            width = max(self.highest[group] - self.lowest[group] + 1, 0)
            self.num_values += <Py_ssize_t>width * self.graph.num_slots[group] * self.num_thresholds

    @property
    def parts(self):
        """Everything but the graph, as arrays: low and high (float64, J), fewest and most layers placed in each group
        (int32) and the values (float64, read-only).
        """
        cdef int groups = self.graph.num_groups
        lowest = np.array(<int[:groups]>self.lowest, dtype=np.int32)
        highest = np.array(<int[:groups]>self.highest, dtype=np.int32)
        return np.array(self.low), np.array(self.high), lowest, highest, np.asarray(self.held)

    @property
    def root_bounds(self):
        """J bounds (ms) on every whole configuration whose bottleneck lies in each threshold's interval."""
        cdef const double* root = self.completion(0, 0, 0)
        bounds = np.full(self.num_thresholds, np.inf)
        for threshold in range(self.num_thresholds):
            if root != NULL:
                bounds[threshold] = self.low[threshold] + root[threshold]
        return bounds

    def minimiser(self, arrays, const short[:, :, :, ::1] first_threshold, int threshold):
        """Kinds and layers (int32, N each) of a completion of the empty pipeline with the least value of a threshold;
        None where it is infinite.

        `arrays` and `first_threshold` are those that the tables were built from.
        """
        cdef const double[:, :, :, ::1] cost = arrays.cost
        cdef const double[:, :, :, ::1] gamma = arrays.gamma
        cdef const int[:, :, ::1] max_layers = arrays.max_layers
        cdef const int[::1] row_of_layer = arrays.row_of_layer
        cdef int group = 0, last = 0, placed = 0, stage, edge, kind, place, layers, best_edge, best_layers, column
        cdef double value, least
        cdef const double* rest = self.completion(0, 0, 0)
        if rest == NULL or rest[threshold] == INFINITY:
            return None
        chosen = np.zeros((2, self.graph.num_stages), dtype=np.int32)
        for stage in range(self.graph.num_stages):
            least, best_edge, best_layers = INFINITY, -1, 0
            column = placed if max_layers.shape[2] > 1 else 0
            for edge in range(self.graph.first_edge[group], self.graph.first_edge[group + 1]):
                kind, place = self.graph.edge_kind[edge], self.graph.edge_place[edge]
                for layers in range(1, max_layers[kind, place, column] + 1):
                    rest = self.completion(self.graph.edge_target[edge], kind, placed + layers)
                    if rest == NULL or first_threshold[kind, place, row_of_layer[placed], layers] > threshold:
                        continue
                    value = gamma[kind, place, row_of_layer[placed], layers]
                    if not rest[threshold] + value <= self.high[threshold]:
                        continue
                    value = rest[threshold] + cost[kind, place, row_of_layer[placed], layers]
                    value += 0.0 if stage == 0 else self.graph.boundary(edge, last)
                    if value < least:
                        least, best_edge, best_layers = value, edge, layers
            if best_edge < 0:
                return None
            last = self.graph.edge_kind[best_edge]
            chosen[0, stage], chosen[1, stage] = last, best_layers
            placed += best_layers
            group = self.graph.edge_target[best_edge]
        return chosen[0], chosen[1]

    def __dealloc__(self):
        free(self.offset)
        free(self.lowest)
        free(self.highest)

    cdef const double* completion(self, int group, int last, int placed) noexcept nogil:
        # The J values of a state, or NULL where it has no completion.
        cdef int slot
        if placed < self.lowest[group] or placed > self.highest[group]:
            return NULL
        slot = 0 if group == 0 else self.graph.slot[group * self.graph.num_kinds + last]
        return self.values + self.offset[group] + (
            <Py_ssize_t>slot * (self.highest[group] - self.lowest[group] + 1) + placed - self.lowest[group]
        ) * self.num_thresholds

    cdef int _fill(
        self,
        double* values,
        const double[:, :, :, ::1] cost,
        const double[:, :, :, ::1] gamma,
        const int[:, :, ::1] max_layers,
        const int[::1] row_of_layer,
        const short[:, :, :, ::1] first_threshold,
        int least,
        int num_layers,
        int round_trips,
    ) except -1:
        cdef StageGraph graph = self.graph
        cdef int num_kinds = graph.num_kinds
        cdef int J = self.num_thresholds
        cdef int group, edge, kind, last, place, after, placed, layers, most, row, threshold, width, column
        cdef int first, index
        cdef int most_edges = 0
        cdef bint by_first_layer = max_layers.shape[2] > 1
        cdef double stage_cost, stage_gamma, total, boundary
        cdef double* best
        cdef double* into
        cdef const double* rest
        for group in range(graph.num_groups):
            most_edges = max(most_edges, graph.first_edge[group + 1] - graph.first_edge[group])
        # best[(edge * (L + 1) + placed) * J + j]: least cost of the edge's stage and all after it, the boundary before
        # it left out.
        cdef double* by_edge = <double*>malloc(<size_t>max(most_edges, 1) * (num_layers + 1) * J * sizeof(double))
        if by_edge == NULL:
            raise MemoryError
        with nogil:
            for group in range(graph.num_groups - 1, -1, -1):
                width = self.highest[group] - self.lowest[group] + 1
                if width <= 0:
                    continue
                if graph.final[group]:
                    for index in range(width * graph.num_slots[group] * J):
                        values[self.offset[group] + index] = 0.0
                    continue
                first = graph.first_edge[group]
                for edge in range(first, graph.first_edge[group + 1]):
                    kind, place, after = graph.edge_kind[edge], graph.edge_place[edge], graph.edge_target[edge]
                    if self.highest[after] < self.lowest[after]:
                        continue
                    for placed in range(self.lowest[group], self.highest[group] + 1):
                        best = by_edge + (<Py_ssize_t>(edge - first) * (num_layers + 1) + placed) * J
                        for threshold in range(J):
                            best[threshold] = INFINITY
                        row = row_of_layer[placed]
                        column = placed if by_first_layer else 0
                        most = min(max_layers[kind, place, column], self.highest[after] - placed)
                        for layers in range(max(least, self.lowest[after] - placed), most + 1):
                            rest = self.completion(after, kind, placed + layers)
                            stage_cost = cost[kind, place, row, layers]
                            stage_gamma = gamma[kind, place, row, layers]
                            for threshold in range(first_threshold[kind, place, row, layers], J):
                                total = rest[threshold] + stage_cost
                                total = total if rest[threshold] + stage_gamma <= self.high[threshold] else INFINITY
                                best[threshold] = best[threshold] if best[threshold] < total else total
                for last in range(num_kinds):
                    if graph.slot[group * num_kinds + last] < 0:
                        continue
                    into = values + self.offset[group]
                    into += <Py_ssize_t>graph.slot[group * num_kinds + last] * width * J
                    for index in range(width * J):
                        into[index] = INFINITY
                    for edge in range(first, graph.first_edge[group + 1]):
                        after = graph.edge_target[edge]
                        if self.highest[after] < self.lowest[after]:
                            continue
                        boundary = 0.0 if group == 0 else round_trips * graph.boundary(edge, last)
                        best = by_edge + (<Py_ssize_t>(edge - first) * (num_layers + 1) + self.lowest[group]) * J
                        for index in range(width * J):
                            into[index] = min(into[index], best[index] + boundary)
        free(by_edge)
        return 0


def restored_tables(
    StageGraph graph, low, high, const int[::1] lowest, const int[::1] highest, const double[::1] values
):
    """Tables made of the `parts` of others for the same graph; the values are not copied.

    Raises ValueError where the parts do not fit the graph.
    """
    cdef CompletionTables tables = CompletionTables.__new__(CompletionTables)
    cdef int group
    if lowest.shape[0] != graph.num_groups or highest.shape[0] != graph.num_groups:
        raise ValueError(f"parts of {lowest.shape[0]} groups; the graph has {graph.num_groups}")
    tables._begin(graph, low, high)
    for group in range(graph.num_groups):
        tables.lowest[group], tables.highest[group] = lowest[group], highest[group]
    tables._lay_out()
    if values.shape[0] != max(tables.num_values, 1):
        raise ValueError(f"{values.shape[0]} values; the graph needs {tables.num_values}")
    tables.held = values
    tables.values = &tables.held[0]
    return tables
