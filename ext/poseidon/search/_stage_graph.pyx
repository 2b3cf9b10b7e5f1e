# distutils: language = c++
"""Every way to hand devices to stages, as a layered graph."""

import numpy as np

from libcpp.vector cimport vector


cdef class StageGraph:
    """Groups of states reachable from the empty pipeline, stage by stage.

    Takes a `SearchArrays` and the most groups to build; `complete` is False where more would be needed.
    """

    def __cinit__(self, arrays, int most_groups=4_000_000, long long most_keys=1 << 25):
        cdef long long keys = 1
        self.num_kinds = len(arrays.problem.kinds)
        self.num_stages = arrays.num_stages
        self.pool_of_kind = np.ascontiguousarray(arrays.pool_of_kind, dtype=np.int32)
        self.intra_round_trip = np.ascontiguousarray(arrays.intra_node + arrays.intra_node.T)
        self.inter_round_trip = np.ascontiguousarray(arrays.inter_node + arrays.inter_node.T)
        for units in arrays.pool_units:
            keys *= int(units) + 1
            if keys > most_keys:
                self.complete = False
                return
        if arrays.most_depth > 1:
            keys *= arrays.most_depth * self.num_stages + 1
        if keys > most_keys:
            self.complete = False
            return
        self.complete = self._build(
            np.ascontiguousarray(arrays.units_of_kind, dtype=np.int32),
            np.ascontiguousarray(arrays.pool_units, dtype=np.int32),
            np.ascontiguousarray(arrays.node_units, dtype=np.int32),
            np.ascontiguousarray(arrays.first_place, dtype=np.int32),
            arrays.by_node,
            arrays.allow_idle,
            arrays.most_depth,
            most_groups,
            keys,
        )

    @property
    def stages(self):
        """Stages placed, int32 a group."""
        return np.asarray(<int[:self.num_groups]>self.stage.data()).copy()

    @property
    def edges(self):
        """Edges as int32 rows (group, kind, place, target, starts inside a node that its pool has begun)."""
        cdef Py_ssize_t count = self.edge_kind.size()
        rows = np.zeros((count, 5), dtype=np.int32)
        cdef int[:, ::1] view = rows
        cdef int group, edge
        for group in range(self.num_groups):
            for edge in range(self.first_edge[group], self.first_edge[group + 1]):
                view[edge, 0], view[edge, 1], view[edge, 2] = group, self.edge_kind[edge], self.edge_place[edge]
                view[edge, 3], view[edge, 4] = self.edge_target[edge], self.edge_within[edge]
        return rows

    @property
    def finals(self):
        """Whether a group is a whole pipeline, bool a group."""
        return np.asarray(<char[:self.num_groups]>self.final.data()).astype(bool)

    cdef int edge_to(self, int group, int kind) noexcept nogil:
        cdef int edge
        for edge in range(self.first_edge[group], self.first_edge[group + 1]):
            if self.edge_kind[edge] == kind:
                return edge
        return -1

    cdef double boundary(self, int edge, int last) noexcept nogil:
        # Forward plus gradient transfer from a stage of kind `last` to the edge's stage.
        if self.same_node(edge, last):
            return self.intra_round_trip[last, self.edge_kind[edge]]
        return self.inter_round_trip[last, self.edge_kind[edge]]

    cdef bint same_node(self, int edge, int last) noexcept nogil:
        return self.edge_within[edge] and self.pool_of_kind[last] == self.pool_of_kind[self.edge_kind[edge]]

    cdef bint _build(
        self, int[::1] units, int[::1] pool_units, int[::1] node_units, int[::1] first_place,
        bint by_node, bint allow_idle, int most_depth,
        int most_groups, long long num_keys
    ):
        # Breadth-first, a layer for each number of placed stages. A group's key is the mixed-radix number of its used
        # units, and of the warm-up of its next stage where that is a choice.
        cdef int num_pools = pool_units.shape[0]
        cdef int num_stages = self.num_stages
        cdef int stage, group, kind, pool, other, next_group, first, warmup, depth, least, most
        cdef long long key, warmup_stride
        cdef vector[long long] stride, keys_of_layer, keys_of_next
        cdef vector[int] used, rounded
        cdef int[::1] group_of_key = np.full(num_keys, -1, dtype=np.int32)
        cdef bint full, begins_within, may_leave
        stride.resize(num_pools)
        used.resize(num_pools)
        rounded.resize(num_pools)
        key = 1
        for pool in range(num_pools):
            stride[pool] = key
            key *= pool_units[pool] + 1
        warmup_stride = key
        keys_of_layer.push_back(0)
        self._append(0)
        first = 0
        for stage in range(num_stages + 1):
            keys_of_next.clear()
            for group in range(first, first + <int>keys_of_layer.size()):
                self.first_edge.push_back(<int>self.edge_kind.size())
                key = keys_of_layer[group - first]
                full = True
                for pool in range(num_pools):
                    used[pool] = (key // stride[pool]) % (pool_units[pool] + 1)
                    full = full and used[pool] == pool_units[pool]
                self.final[group] = stage == num_stages and (full or allow_idle)
                if stage == num_stages:
                    continue
                # The warm-up of a stage is one more than the depths of the links after it add up to.
                least = most = num_stages - stage
                if most_depth > 1:
                    least = most = <int>(key // warmup_stride)
                    if stage == 0:
                        least, most = num_stages, 1 + most_depth * (num_stages - 1)
                for kind in range(self.num_kinds):
                    pool = self.pool_of_kind[kind]
                    may_leave = True
                    for other in range(num_pools):
                        rounded[other] = used[other]
                        if by_node and other != pool and used[other] % node_units[other] != 0:
                            # The rest of a node that was begun stays idle, where devices may.
                            may_leave = may_leave and allow_idle
                            rounded[other] = min(
                                pool_units[other], (used[other] // node_units[other] + 1) * node_units[other]
                            )
                    if not may_leave:
                        continue
                    if not fits(rounded[pool], units[kind], pool_units[pool], node_units[pool]):
                        continue
                    begins_within = rounded[pool] % node_units[pool] != 0
                    rounded[pool] += units[kind]
                    for warmup in range(least, most + 1):
                        for depth in range(1, most_depth + 1):
                            if stage == num_stages - 1 and depth > 1:
                                break
                            if stage < num_stages - 1 and not (
                                num_stages - stage - 1 <= warmup - depth <= 1 + most_depth * (num_stages - stage - 2)
                            ):
                                continue
                            key = 0
                            for other in range(num_pools):
                                key += rounded[other] * stride[other]
                            if most_depth > 1 and stage < num_stages - 1:
                                key += (warmup - depth) * warmup_stride
                            next_group = group_of_key[key]
                            if next_group < 0:
                                next_group = first + <int>(keys_of_layer.size() + keys_of_next.size())
                                if next_group >= most_groups:
                                    return False
                                group_of_key[key] = next_group
                                keys_of_next.push_back(key)
                                self._append(stage + 1)
                            self.edge_kind.push_back(kind)
                            self.edge_place.push_back(first_place[stage] + warmup - (num_stages - stage))
                            self.edge_target.push_back(next_group)
                            self.edge_within.push_back(begins_within)
                            if self.slot[next_group * self.num_kinds + kind] < 0:
                                self.slot[next_group * self.num_kinds + kind] = self.num_slots[next_group]
                                self.num_slots[next_group] += 1
            for key in keys_of_next:
                group_of_key[key] = -1
            first += <int>keys_of_layer.size()
            keys_of_layer.swap(keys_of_next)
        self.first_edge.push_back(<int>self.edge_kind.size())
        self.num_groups = <int>self.stage.size()
        self.num_slots[0] = 1
        self.slot[0] = 0
        return True

    cdef void _append(self, int stage):
        cdef int _kind
        self.stage.push_back(stage)
        self.final.push_back(0)
        self.num_slots.push_back(0)
        for _kind in range(self.num_kinds):
            self.slot.push_back(-1)


cdef inline bint fits(int used, int units, int pool_units, int node_units) noexcept nogil:
    # A stage lies inside one node or covers whole nodes.
    if used + units > pool_units:
        return False
    if units <= node_units:
        return used % node_units + units <= node_units
    return used % node_units == 0 and units % node_units == 0
