# distutils: language = c++
"""Every way to hand devices to stages, as a layered graph."""

import numpy as np

from libcpp.vector cimport vector


cdef class StageGraph:
    """Groups of states reachable from the empty pipeline, stage by stage.

    Takes a `SearchArrays` and the most groups to build; `complete` is False where more would be needed.
    """

    def __cinit__(self, arrays, int most_groups=4_000_000, long long most_keys=1 << 25):
        self.num_kinds = len(arrays.problem.kinds)
        self.num_stages = arrays.num_stages
        self.pool_of_kind = np.ascontiguousarray(arrays.pool_of_kind, dtype=np.int32)
        self.intra_round_trip = np.ascontiguousarray(arrays.intra_node + arrays.intra_node.T)
        self.inter_round_trip = np.ascontiguousarray(arrays.inter_node + arrays.inter_node.T)
        cdef long long keys = 1
        for units in arrays.pool_units:
            keys *= int(units) + 1
            if keys > most_keys:
                self.complete = False
                return
        self.complete = self._build(
            np.ascontiguousarray(arrays.units_of_kind, dtype=np.int32),
            np.ascontiguousarray(arrays.pool_units, dtype=np.int32),
            np.ascontiguousarray(arrays.node_units, dtype=np.int32),
            arrays.by_node,
            arrays.allow_idle,
            most_groups,
            keys,
        )

    @property
    def stages(self):
        """Stages placed, int32 a group."""
        return np.asarray(<int[:self.num_groups]>self.stage.data()).copy()

    @property
    def targets(self):
        """Group after a next stage of each kind, int32, groups x K; -1 where it cannot come next."""
        return np.asarray(<int[:self.num_groups, :self.num_kinds]>self.target.data()).copy()

    @property
    def begun(self):
        """Whether a next stage of each kind would start inside a node that its pool has begun, bool, groups x K."""
        return np.asarray(<char[:self.num_groups, :self.num_kinds]>self.within_node.data()).astype(bool)

    @property
    def finals(self):
        """Whether a group is a whole pipeline, bool a group."""
        return np.asarray(<char[:self.num_groups]>self.final.data()).astype(bool)

    cdef double boundary(self, int group, int last, int kind) noexcept nogil:
        # Forward plus gradient transfer from a state of `group` to its next stage.
        if self.same_node(group, last, kind):
            return self.intra_round_trip[last, kind]
        return self.inter_round_trip[last, kind]

    cdef bint same_node(self, int group, int last, int kind) noexcept nogil:
        return self.within_node[group * self.num_kinds + kind] and self.pool_of_kind[last] == self.pool_of_kind[kind]

    cdef bint _build(
        self, int[::1] units, int[::1] pool_units, int[::1] node_units, bint by_node, bint allow_idle, int most_groups, long long num_keys
    ):
        # Breadth-first, a layer for each number of placed stages. A group's key is the mixed-radix number of its used units.
        cdef int num_pools = pool_units.shape[0]
        cdef int num_kinds = self.num_kinds
        cdef int stage, group, kind, pool, other, begun, next_group
        cdef long long key
        cdef vector[long long] stride, keys_of_layer, keys_of_next
        cdef vector[int] used, rounded
        cdef int[::1] group_of_key = np.full(num_keys, -1, dtype=np.int32)
        cdef bint full
        stride.resize(num_pools)
        used.resize(num_pools)
        rounded.resize(num_pools)
        key = 1
        for pool in range(num_pools):
            stride[pool] = key
            key *= pool_units[pool] + 1
        keys_of_layer.push_back(0)
        self._append(0)
        self.first_group.push_back(0)
        for stage in range(self.num_stages + 1):
            self.first_group.push_back(self.first_group[stage] + <int>keys_of_layer.size())
            keys_of_next.clear()
            for group in range(self.first_group[stage], self.first_group[stage + 1]):
                key = keys_of_layer[group - self.first_group[stage]]
                begun = -1
                full = True
                for pool in range(num_pools):
                    used[pool] = (key // stride[pool]) % (pool_units[pool] + 1)
                    full = full and used[pool] == pool_units[pool]
                    if used[pool] % node_units[pool] != 0:
                        begun = pool
                self.final[group] = stage == self.num_stages and (full or allow_idle)
                if stage == self.num_stages:
                    continue
                for kind in range(num_kinds):
                    pool = self.pool_of_kind[kind]
                    for other in range(num_pools):
                        rounded[other] = used[other]
                    if by_node and begun >= 0 and begun != pool:
                        if not allow_idle:
                            continue
                        # The rest of the node that was begun stays idle.
                        rounded[begun] = min(pool_units[begun], (used[begun] // node_units[begun] + 1) * node_units[begun])
                    if not fits(rounded[pool], units[kind], pool_units[pool], node_units[pool]):
                        continue
                    self.within_node[group * num_kinds + kind] = rounded[pool] % node_units[pool] != 0
                    rounded[pool] += units[kind]
                    key = 0
                    for other in range(num_pools):
                        key += rounded[other] * stride[other]
                    next_group = group_of_key[key]
                    if next_group < 0:
                        next_group = self.first_group[stage + 1] + <int>keys_of_next.size()
                        if next_group >= most_groups:
                            return False
                        group_of_key[key] = next_group
                        keys_of_next.push_back(key)
                        self._append(stage + 1)
                    self.target[group * num_kinds + kind] = next_group
                    if self.slot[next_group * num_kinds + kind] < 0:
                        self.slot[next_group * num_kinds + kind] = self.num_slots[next_group]
                        self.num_slots[next_group] += 1
            for key in keys_of_next:
                group_of_key[key] = -1
            keys_of_layer.swap(keys_of_next)
        self.num_groups = <int>self.stage.size()
        self.num_slots[0] = 1
        self.slot[0] = 0
        return True

    cdef void _append(self, int stage):
        cdef int kind
        self.stage.push_back(stage)
        self.final.push_back(0)
        self.num_slots.push_back(0)
        for kind in range(self.num_kinds):
            self.target.push_back(-1)
            self.within_node.push_back(0)
            self.slot.push_back(-1)


cdef inline bint fits(int used, int units, int pool_units, int node_units) noexcept nogil:
    # A stage lies inside one node or covers whole nodes.
    if used + units > pool_units:
        return False
    if units <= node_units:
        return used % node_units + units <= node_units
    return used % node_units == 0 and units % node_units == 0
