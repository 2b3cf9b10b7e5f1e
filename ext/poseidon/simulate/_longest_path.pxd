"""The longest path of a pipeline's graph, for C callers: `longest_path` for one candidate, `longest_paths` for LANES.

The graph of an order never changes; only the weights do. So its operations stand in a list in which everything that an
operation waits for comes before it, and one pass from front to back gives the end of each. Ends are kept in *cells*:
cells CHAINED and NOTHING are always 0, operation i of the list ends in cell FIRST + i.
"""

from libc.stdint cimport int32_t

cdef enum:
    CHAINED = 0  # as a sender: no message; starts when the operation right before it in the list ends
    NOTHING = 1  # as a sender or previous operation: there is none
    FIRST = 2    # cell of the first operation
    LANES = 8    # candidates that `longest_paths` evaluates at once

# Invariants (checked by the constructor of LongestPath): previous[i] and sender[i] are below FIRST + i; where sender[i]
# is CHAINED, previous[i] is FIRST + i - 1; a slot has a link exactly if its operations receive something; costs, links
# and last operations are in range.
cdef struct OperationList:
    int32_t num_operations
    int32_t num_stages
    int32_t num_slots         # kinds x chunks x stages: one duration each, in this C order (F, B, then I, W if split)
    int32_t num_links         # forward link of each stage, then backward link of each stage
    const int32_t* previous   # [num_operations] cell of the operation before it on its stage
    const int32_t* sender     # [num_operations] cell of the operation whose activation or gradient it receives
    const int32_t* cost       # [num_operations] 2 x its slot: where its incoming transfer is kept, then its duration
    const int32_t* link       # [num_slots] link over which the operations of a slot receive; -1: they never do
    const int32_t* last       # [num_stages] cell of each stage's last operation; the stage's all-reduce follows it


# A graph with its invariants checked; C callers take `&graph.operations` and hold on to the object.
cdef class LongestPath:
    cdef OperationList operations
    cdef int32_t* _memory  # the arrays of `operations`, one after the other


# Number of doubles that the workspace of `longest_path` must hold (times LANES for `longest_paths`).
cdef size_t workspace_length(const OperationList* operations) noexcept nogil

# Iteration time of one candidate: durations[num_slots], transfers[num_links], all_reduce[num_stages], finite and at
# least 0. The ends of the operations are left in the workspace's last num_operations doubles, in the order of the list.
cdef double longest_path(
    const OperationList* operations,
    const double* durations,
    const double* transfers,
    const double* all_reduce,
    double* workspace,
) noexcept nogil

# Iteration times of LANES candidates: as above with every number replaced by LANES numbers in a row, one per candidate
# (durations[num_slots][LANES] and so on); to times[LANES]. Each is bit for bit what `longest_path` gives.
cdef void longest_paths(
    const OperationList* operations,
    const double* durations,
    const double* transfers,
    const double* all_reduce,
    double* workspace,
    double* times,
) noexcept nogil
