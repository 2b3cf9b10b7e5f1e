# Every way to hand devices to stages, as a layered graph: one group of states for each (stages placed, devices used of
# each pool, warm-up of the next stage).
#
# A state is a group with the kind of its last stage. What may come next depends on the group alone and is listed in its
# edges; what the boundary costs depends on the last kind too. All rules of the assignment (whole nodes, shared pools,
# idle devices) and of the warm-up depths live here and nowhere else.

from libcpp.vector cimport vector


cdef class StageGraph:
    cdef readonly int num_kinds
    cdef readonly int num_stages
    cdef readonly int num_groups
    cdef readonly bint complete        # False: the graph was too large to build
    cdef vector[int] stage             # group -> stages placed
    cdef vector[int] first_edge        # group -> its edges are first_edge[group] .. first_edge[group + 1] - 1
    cdef vector[int] edge_kind         # edge -> kind of the next stage
    cdef vector[int] edge_place        # edge -> its place: the stage with its warm-up (SearchArrays)
    cdef vector[int] edge_target       # edge -> group after it
    cdef vector[char] edge_within      # edge -> the next stage starts inside a node that its pool has begun
    cdef vector[char] final            # group: a whole pipeline
    cdef vector[int] slot              # group * K + last kind -> index among the group's states, or -1
    cdef vector[int] num_slots         # group -> number of states
    cdef int[::1] pool_of_kind
    cdef double[:, ::1] intra_round_trip   # K x K: forward plus gradient transfer, a -> b
    cdef double[:, ::1] inter_round_trip
    cdef int edge_to(self, int group, int kind) noexcept nogil    # the first edge of a kind, or -1
    cdef double boundary(self, int edge, int last) noexcept nogil
    cdef bint same_node(self, int edge, int last) noexcept nogil
    cdef bint _build(
        self, int[::1] units, int[::1] pool_units, int[::1] node_units, int[::1] first_place,
        bint by_node, bint allow_idle, int most_depth,
        int most_groups, long long num_keys
    )
    cdef void _append(self, int stage)
