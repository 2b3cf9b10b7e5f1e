# Depth-first branch and bound over stages, with an explicit stack so that it can stop after any search node and go on
# later.

from libcpp.vector cimport vector
from poseidon.search._incumbent_cell cimport IncumbentCell, Reader
from poseidon.search._stage_graph cimport StageGraph
from poseidon.search._sweep cimport Prefix, Tips
from poseidon.search._tables cimport CompletionTables


cdef struct Candidate:
    # A choice for the next stage.
    double bound          # no completion is faster than this
    double round_trip     # sum of F + B and transfers up to and including this stage
    double delay          # least round trip of what follows it
    int edge              # of the stage graph: its kind, its place and the state after it
    int layers


cdef struct BeamState:
    # A prefix of the beam search: its last stage, and the state of one stage less that it extends.
    Candidate candidate
    int parent            # index in the level before
    int placed


cdef class BranchAndBound:
    cdef readonly StageGraph graph
    cdef readonly CompletionTables tables
    cdef readonly double best_ms          # incumbent: no plan slower than this is of interest
    cdef readonly bint improved           # best_ms is this search's own plan
    cdef readonly double floor_ms         # least bound of all that was pruned
    cdef readonly long long num_search_nodes
    cdef readonly long long num_simulations
    cdef readonly long long num_pruned_by_table
    cdef readonly long long num_pruned_by_prefix
    cdef readonly long long num_pruned_by_incumbent
    cdef readonly long long num_bound_alarms    # a child's bound was worse than its parent's: never in a correct search
    cdef Reader reader                    # of the time to beat that others share
    cdef IncumbentCell cell               # keeps it alive
    cdef double tolerance                 # prune at bound >= best_ms * (1 - tolerance)
    cdef int num_stages, num_layers, num_micro_batches, num_kinds, least, round_trips
    cdef bint is_gpipe
    cdef const double[:, :, :, ::1] forward, backward, all_reduce, cost, beta, gamma
    cdef const int[:, :, ::1] max_layers
    cdef const int[::1] row_of_layer, warmup   # warmup: a place's forwards before the first backward
    cdef bint deepens                     # the warm-up depth of every link is a choice
    cdef const double[:, ::1] intra_node, inter_node
    cdef Prefix prefix
    cdef vector[double] storage           # backs the prefix
    cdef vector[int] warmups              # N: of the fixed stages and the next
    cdef vector[double] scratch           # of the sweep
    # Where the tables know no counts of kinds (relaxed): what a stage of each kind was charged in them, the stages of
    # each kind that are left (a row for each depth) and the charges of all those.
    cdef bint relaxed
    cdef vector[double] charge, charged
    cdef vector[int] left
    # The stack: entry i describes the first i stages, candidates[i] the choices for stage i that are still to be tried.
    cdef int depth                        # -1: not started, or complete
    cdef bint is_open
    cdef bint is_searching                # False while only first incumbents are wanted: a leaf then costs little
    cdef vector[vector[Candidate]] candidates
    cdef vector[size_t] cursor
    cdef vector[int] group, kind, layers, placed
    # pending: largest gamma of a fixed stage with the round trip of the fixed stages after it; what follows them is
    # still to be added.
    cdef vector[double] pending
    cdef vector[double] round_trip, bottleneck, slowest_forward, slowest_backward, bound
    cdef vector[int] best_kinds           # N
    cdef vector[int] best_warmups         # N
    cdef vector[int] best_layers          # N x V
    cdef vector[Candidate] survivors
    cdef void _expand(self, int stage) noexcept nogil
    cdef void _collect(self, int stage) noexcept nogil
    cdef void _sort_survivors(self) noexcept nogil
    cdef void _time_survivors(self, int stage) noexcept nogil
    cdef void _finish(self, int stage) noexcept nogil
    cdef double _work_left(self, int stage, int edge, int layers, double bottleneck) noexcept nogil
    cdef double _pending(self, int stage, int edge, int layers, double added) noexcept nogil
    cdef void _fill_tip(self, Tips* tips, int lane, int stage, const Candidate* candidate) noexcept nogil
    cdef void _push(self, int stage, const Candidate* candidate) noexcept nogil
    cdef void _remember_prefix(self, int stage, const Candidate* candidate, double time_ms) noexcept nogil
    cdef void _keep(self, int stage, const Candidate* candidate, double time_ms) noexcept nogil
    cdef vector[vector[BeamState]] levels
    cdef void _load(self, int stage, int index) noexcept nogil
    cdef bint _beam(self, int width, int same_state) noexcept nogil
    cdef bint _widen(self, int stage, int width, int same_state) noexcept nogil
    cdef bint _step(self) noexcept nogil
    cdef void _follow(self, int threshold) noexcept nogil
