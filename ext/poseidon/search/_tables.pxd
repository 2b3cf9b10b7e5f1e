# Completion tables: the least that the rest of a pipeline adds to the round trip, for every state and several limits on
# its bottleneck.
#
# values[offset[group] + (slot * width(group) + (placed - lowest[group])) * J + j] is the least sum of F + B and
# transfers of the stages that follow a state, when no stage's bottleneck (beta, or gamma and what follows the stage)
# exceeds high[j]; infinite where there is no such completion (docs/algorithm.md, "Completion tables").

from poseidon.search._stage_graph cimport StageGraph


cdef class CompletionTables:
    cdef readonly StageGraph graph
    cdef readonly int num_thresholds       # J
    cdef readonly double[::1] low          # J: a bottleneck above high[j - 1] is at least low[j]
    cdef readonly double[::1] high         # J
    cdef readonly Py_ssize_t num_values
    cdef Py_ssize_t* offset                # group -> first value
    cdef int* lowest                       # group -> fewest layers placed
    cdef int* highest                      # group -> most layers placed; below `lowest` where the group is dead
    cdef const double* values              # of `held`
    cdef const double[::1] held
    cdef int _begin(self, StageGraph graph, low, high) except -1
    cdef void _lay_out(self) noexcept
    cdef const double* completion(self, int group, int last, int placed) noexcept nogil
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
    ) except -1
