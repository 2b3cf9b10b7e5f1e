# Depth-first enumeration of one outer choice with the two pruning rules of the Poseidon paper, on an explicit stack so
# that it can stop after any step and go on later.
#
# Sizes: N stages, V chunks, L layers, K kinds. All times in milliseconds.

from libcpp.vector cimport vector
from poseidon.search._incumbent_cell cimport IncumbentCell, Reader
from poseidon.search._sweep cimport Lanes
from poseidon.simulate._longest_path cimport LongestPath


cdef struct Edge:
    # A way to go on from a group of the stage graph.
    int kind
    int place
    int target              # group after it
    bint within             # starts inside a node that its pool has begun


cdef struct State:
    # What the stages before stage i have fixed.
    int group
    int placed              # layers
    double lead             # sum of their F
    double tail             # the last term of Eq. 2 up to stage i - 2: max over them of R and of the B from there on


cdef struct Choice:
    # The choice for stage i that is being looked at.
    int edge                # index into `edges`
    int least               # range of the stage's layers on that edge
    int most
    int layers              # of all chunks
    double forward          # F, B and R of the whole stage
    double backward
    double all_reduce
    double first_forward    # F and B of its first chunk, the one that Eq. 2's lead and tail pass through
    double first_backward
    double send_forward     # over the boundary before it
    double send_backward
    int old_layers          # undo for the ridge rule
    bint old_falls


cdef class PaperSearch:
    cdef readonly double best_ms              # T_min
    cdef readonly bint improved               # the last `run` ended with a better configuration of its own
    cdef double own_ms                        # the best configuration of its own
    cdef Reader reader                        # of the time to beat that others share
    cdef IncumbentCell cell                   # keeps it alive
    cdef readonly bint done
    cdef readonly long long num_search_nodes  # partial configurations that survived both rules
    cdef readonly long long num_simulations
    cdef readonly long long num_above         # of these, configurations whose own Eq. 2 was above T_min already
    cdef readonly long long num_pruned_by_stage   # branches
    cdef readonly long long num_pruned_by_layer
    cdef bint stage_pruning, layer_pruning
    cdef int num_stages, num_layers, num_micro_batches, num_chunks, num_kinds
    cdef const double[:, :, :, ::1] forward, backward, all_reduce
    cdef const int[:, :, ::1] max_layers
    cdef const int[::1] row_of_layer, warmup, most_after, pool_of_kind
    cdef const double[:, ::1] intra_node, inter_node
    cdef const double[:, ::1] layer_times, first_times, last_times   # K x 2: F, B of a layer and of the two extras
    cdef vector[Edge] edges
    cdef vector[int] first_edge               # group g has the edges first_edge[g] .. first_edge[g + 1] - 1
    cdef int depth                            # stage that is being chosen; -1 after the end
    cdef vector[State] states                 # N + 1
    cdef vector[Choice] choices               # N
    cdef vector[char] sealed                  # N: other choices of that stage belong to another search
    cdef vector[int] chunks                   # N x V: layers of each chunk of the choices
    cdef vector[int] last_layers              # K: layers of the kind's latest stage, 0 before the first
    cdef vector[char] falls                   # K: the kind's counts have begun to fall
    # Complete configurations wait here until LANES of them can be simulated at once.
    cdef int num_waiting
    cdef vector[int] warmups                  # N: the same for all that wait
    cdef vector[int] waiting_edges            # LANES x N
    cdef vector[int] waiting_chunks           # LANES x N x V
    cdef vector[int] best_edges, best_chunks
    cdef vector[double] scratch, all_reduces, delays, times
    cdef Lanes lanes
    cdef LongestPath kernel                   # of schedules with chunks; else None
    cdef vector[double] durations, transfers  # for the kernel, LANES numbers each
    # How often a rule cut a branch, by what lay behind it: (target * K + kind) * (L + 2) + layers placed, as
    # differences between neighbours. Empty: not wanted.
    cdef vector[long long] cuts_by_stage, cuts_by_layer
    cdef bint _step(self, long long* work) noexcept nogil
    cdef bint _place(self, int stage, int edge, const int[:, ::1] layers) noexcept nogil
    cdef bint _next_choice(self, int stage) noexcept nogil
    cdef bint _next_split(self, int stage) noexcept nogil
    cdef bint _open_edge(self, int stage) noexcept nogil
    cdef void _cost(self, int stage) noexcept nogil
    cdef bint _breaks_ridge(self, int stage) noexcept nogil
    cdef int _most_on_ridge(self, int stage) noexcept nogil
    cdef double _partial_time(self, int stage) noexcept nogil
    cdef long long _cut(self, vector[long long]* cuts, int stage, int most) noexcept nogil
    cdef void _push(self, int stage) noexcept nogil
    cdef void _undo(self, int stage) noexcept nogil
    cdef void _add_configuration(self) noexcept nogil
    cdef void _fill_sweep_lane(self, int lane) noexcept nogil
    cdef void _fill_kernel_lane(self, int lane) noexcept nogil
    cdef void _time_lanes(self) noexcept nogil
    cdef void _simulate(self) noexcept nogil
    cdef bint _follow(self, const int[::1] path, const int[:, ::1] layers) noexcept nogil
