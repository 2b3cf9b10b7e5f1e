# The DAG of a pipeline's first stages, timed by sweeping over micro-batches: the search's innermost loop.
#
# Schedules of the warm-up family (1F1B, Eager 1F1B, GPipe, adaptive) differ only in the number of forwards that a stage
# runs before its first backward. So no graph is needed: wave m runs B[s, m] and then F[s, m + warmup[s]] on every stage
# s, from the last to the first.

cdef enum:
    LANES = 8  # candidates that are timed together: they share stages 0 .. count - 2 and differ in stage count - 1

cdef struct Prefix:
    int num_stages            # N of the whole pipeline
    int num_micro_batches     # M
    const int* warmup         # N: forwards before the first backward; warmup[s] > warmup[s + 1], or both are M
    double* forward           # N: F of the stages fixed so far
    double* backward          # N: B
    double* all_reduce        # N: R
    double* send_forward      # N: activation transfer from stage s to s + 1
    double* send_backward     # N: gradient transfer from stage s + 1 to s

cdef struct Tips:
    # The last stage of each candidate, one entry a lane.
    double forward[LANES]
    double backward[LANES]
    double all_reduce[LANES]
    double send_forward[LANES]    # over the boundary before the last stage
    double send_backward[LANES]
    # from the end of F[last, m] until its gradient can be back; 0 on the pipeline's last stage
    double delay[LANES]

cdef Py_ssize_t sweep_scratch_size(int num_stages, int num_micro_batches) noexcept nogil

cdef void sweep(
    const Prefix* prefix,
    int count,               # stages in the DAG, the candidates' own included
    const Tips* tips,
    double* scratch,         # sweep_scratch_size doubles
    double* result,          # LANES: longest path of each candidate
) noexcept nogil

# The same with every number of every stage its own in each lane. The caller fills the five arrays of `lanes` (count *
# LANES numbers each, stage by stage; send_* over the boundary after the stage); `delay` and `all_reduce` as above,
# all_reduce for every stage.
cdef struct Lanes:
    double* clock
    double* forward
    double* backward
    double* send_forward
    double* send_backward
    double* ends

cdef Lanes lanes_in(double* scratch, int count) noexcept nogil

cdef void sweep_lanes(
    int count, int num_micro_batches, const int* warmup, Lanes lanes,
    const double* delay, const double* all_reduce, double* result
) noexcept nogil
