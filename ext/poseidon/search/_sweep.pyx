"""Times the first stages of a pipeline for several candidates at once (docs/algorithm.md, family 3)."""

from libc.stdlib cimport free, malloc


cdef Py_ssize_t sweep_scratch_size(int num_stages, int num_micro_batches) noexcept nogil:
    return <Py_ssize_t>LANES * num_stages * (num_micro_batches + 8)


cdef inline void run(
    double* clock, const double* arrival, const double* transfer, const double* duration, double* end
) noexcept nogil:
    # One operation in every lane: starts when the stage is free and its input has arrived.
    cdef int lane
    cdef double start, ready
    for lane in range(LANES):
        ready = arrival[lane] + transfer[lane]
        start = clock[lane]
        start = ready if ready > start else start
        start = start + duration[lane]
        clock[lane] = start
        end[lane] = start


cdef inline void run_alone(double* clock, const double* duration, double* end) noexcept nogil:
    cdef int lane
    for lane in range(LANES):
        clock[lane] = clock[lane] + duration[lane]
        end[lane] = clock[lane]


cdef inline void spread(double* lanes, double value) noexcept nogil:
    cdef int lane
    for lane in range(LANES):
        lanes[lane] = value


cdef void sweep(const Prefix* prefix, int count, const Tips* tips, double* scratch, double* result) noexcept nogil:
    # Layout of the scratch: six rows of `count` lanes vectors (clock, F, B, forward and backward transfers, unused), then F ends, M a stage.
    cdef int num_micro_batches = prefix.num_micro_batches
    cdef int last = count - 1
    cdef int stage, microbatch, target, lane
    cdef Py_ssize_t row = <Py_ssize_t>num_micro_batches * LANES
    cdef double* clock = scratch
    cdef double* forward = clock + count * LANES
    cdef double* backward = forward + count * LANES
    cdef double* send_forward = backward + count * LANES
    cdef double* send_backward = send_forward + count * LANES
    cdef double* ends = send_backward + count * LANES
    cdef double gradient[LANES]
    cdef double value

    for stage in range(last):
        spread(forward + stage * LANES, prefix.forward[stage])
        spread(backward + stage * LANES, prefix.backward[stage])
        spread(send_forward + stage * LANES, prefix.send_forward[stage])
        spread(send_backward + stage * LANES, prefix.send_backward[stage])
    for lane in range(LANES):
        forward[last * LANES + lane] = tips.forward[lane]
        backward[last * LANES + lane] = tips.backward[lane]
        if last > 0:
            send_forward[(last - 1) * LANES + lane] = tips.send_forward[lane]
            send_backward[(last - 1) * LANES + lane] = tips.send_backward[lane]

    # Warm-up: the forwards before each stage's first backward.
    for stage in range(count):
        spread(clock + stage * LANES, 0.0)
        for microbatch in range(prefix.warmup[stage]):
            if stage == 0:
                run_alone(clock, forward, ends + microbatch * LANES)
            else:
                run(clock + stage * LANES, ends + (stage - 1) * row + microbatch * LANES, send_forward + (stage - 1) * LANES,
                    forward + stage * LANES, ends + stage * row + microbatch * LANES)

    # Steady state and cool-down: wave m runs B[s, m], then F[s, m + warmup[s]].
    for microbatch in range(num_micro_batches):
        run(clock + last * LANES, ends + last * row + microbatch * LANES, tips.delay, backward + last * LANES, gradient)
        for stage in range(last, -1, -1):
            if stage < last:
                run(clock + stage * LANES, gradient, send_backward + stage * LANES, backward + stage * LANES, gradient)
            target = microbatch + prefix.warmup[stage]
            if target >= num_micro_batches:
                continue
            if stage == 0:
                run_alone(clock, forward, ends + target * LANES)
            else:
                run(clock + stage * LANES, ends + (stage - 1) * row + target * LANES, send_forward + (stage - 1) * LANES,
                    forward + stage * LANES, ends + stage * row + target * LANES)

    for lane in range(LANES):
        result[lane] = clock[last * LANES + lane] + tips.all_reduce[lane]
    for stage in range(last):
        for lane in range(LANES):
            value = clock[stage * LANES + lane] + prefix.all_reduce[stage]
            result[lane] = value if value > result[lane] else result[lane]


def time_prefix(
    const int[::1] warmup,
    int num_micro_batches,
    const double[::1] forward,
    const double[::1] backward,
    const double[::1] all_reduce,
    const double[::1] send_forward,
    const double[::1] send_backward,
    double delay,
):
    """Longest path of a pipeline's first stages; the twin of `poseidon.search.reference.time_prefix`.

    `warmup` has one entry for each of the N stages, the times one for each of the first x <= N stages (send_* : x - 1 are read), `delay`
    stands for what follows stage x. Milliseconds. Raises ValueError where the sizes do not agree.
    """
    cdef int count = forward.shape[0]
    cdef int lane, stage
    cdef Prefix prefix
    cdef Tips tips
    cdef double result[LANES]
    if count < 1 or count > warmup.shape[0]:
        raise ValueError(f"{count} stages are timed; accepted: 1 to {warmup.shape[0]}")
    if backward.shape[0] != count or all_reduce.shape[0] != count:
        raise ValueError("forward, backward and all_reduce must have the same length")
    if send_forward.shape[0] < count - 1 or send_backward.shape[0] < count - 1:
        raise ValueError("one transfer time is needed for each boundary")
    for stage in range(warmup.shape[0]):
        if not 1 <= warmup[stage] <= num_micro_batches:
            raise ValueError("warmup must lie between 1 and the number of micro-batches")
    cdef double* scratch = <double*>malloc(sweep_scratch_size(count, num_micro_batches) * sizeof(double))
    if scratch == NULL:
        raise MemoryError
    prefix.num_stages = warmup.shape[0]
    prefix.num_micro_batches = num_micro_batches
    prefix.warmup = &warmup[0]
    prefix.forward = <double*>&forward[0]
    prefix.backward = <double*>&backward[0]
    prefix.all_reduce = <double*>&all_reduce[0]
    prefix.send_forward = <double*>&send_forward[0] if send_forward.shape[0] else NULL
    prefix.send_backward = <double*>&send_backward[0] if send_backward.shape[0] else NULL
    for lane in range(LANES):
        tips.forward[lane] = forward[count - 1]
        tips.backward[lane] = backward[count - 1]
        tips.all_reduce[lane] = all_reduce[count - 1]
        tips.send_forward[lane] = send_forward[count - 2] if count > 1 else 0.0
        tips.send_backward[lane] = send_backward[count - 2] if count > 1 else 0.0
        tips.delay[lane] = delay
    with nogil:
        sweep(&prefix, count, &tips, scratch, result)
    free(scratch)
    return result[0]
