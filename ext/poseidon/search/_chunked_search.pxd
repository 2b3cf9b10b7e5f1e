# Branch and bound for stages of several chunks: the tree decides kinds and layers a stage; a leaf then splits the
# layers over the chunks.

from libcpp.vector cimport vector
from poseidon.search._branch_and_bound cimport BranchAndBound, Candidate
from poseidon.simulate._longest_path cimport LongestPath


cdef struct Box:
    # Splits of a leaf's layers, each entry one chunk of one stage (N x V).
    double bound
    vector[double] least
    vector[double] most
    vector[double] point      # the real-valued split with the least time that was seen


cdef class ChunkedSearch(BranchAndBound):
    cdef readonly long long num_open_leaves   # leaves whose splits were too many to try all
    cdef LongestPath graph_kernel
    cdef int num_chunks
    cdef long long most_splits                # splits of one leaf that are tried in full
    cdef const double[:, ::1] layer_times     # K x 3: forward, backward, all-reduce of one layer
    cdef const double[:, ::1] first_times     # K x 3: what the first stage has on top
    cdef const double[:, ::1] last_times
    # LANES candidates, as `longest_paths` wants them
    cdef vector[double] durations, transfers, all_reduces, workspace, times
    cdef vector[int] split                    # N x V: the split at hand
    cdef vector[int] trial                    # LANES x N x V: splits to be timed
    cdef vector[int] best_split
    cdef int num_trials
    cdef double leaf_ms
    # Of the bound on a leaf: real-valued layers of each chunk, the slope of the longest path there and the mean of such
    # cuts (all N x V).
    cdef vector[double] single_transfers, single_reduces
    cdef vector[double] point, slope, mean_slope
    cdef vector[double] direction
    cdef vector[Box] boxes
    cdef double _bound_leaf(self) noexcept nogil
    cdef void _push_half(self, const Box* box, int index, int least, int most) noexcept nogil
    cdef double _bound_box(self, Box* box, double enough, int most_cuts) noexcept nogil
    cdef void _fit_point(self, const Box* box) noexcept nogil
    cdef double _cut(self) noexcept nogil
    cdef double _least_of_mean(self, const Box* box, double constant) noexcept nogil
    cdef void _round_point(self, const Box* box) noexcept nogil
    cdef void _leaf(self, int stage, const Candidate* candidate) noexcept nogil
    cdef void _set_leaf(self) noexcept nogil
    cdef void _even_split(self) noexcept nogil
    cdef bint _improve_split(self, double enough) noexcept nogil
    cdef void _try_all(self) noexcept nogil
    cdef bint _next_split(self, int stage) noexcept nogil
    cdef void _add_trial(self) noexcept nogil
    cdef void _flush(self) noexcept nogil
