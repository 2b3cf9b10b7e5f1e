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


cdef Lanes lanes_in(double* scratch, int count) noexcept nogil:
    cdef Lanes lanes
    lanes.clock = scratch
    lanes.forward = lanes.clock + count * LANES
    lanes.backward = lanes.forward + count * LANES
    lanes.send_forward = lanes.backward + count * LANES
    lanes.send_backward = lanes.send_forward + count * LANES
    lanes.ends = lanes.send_backward + count * LANES
    return lanes


cdef void sweep(const Prefix* prefix, int count, const Tips* tips, double* scratch, double* result) noexcept nogil:
    cdef int last = count - 1
    cdef int stage, lane
    cdef double value
    cdef Lanes lanes = lanes_in(scratch, count)
    for stage in range(last):
        spread(lanes.forward + stage * LANES, prefix.forward[stage])
        spread(lanes.backward + stage * LANES, prefix.backward[stage])
        spread(lanes.send_forward + stage * LANES, prefix.send_forward[stage])
        spread(lanes.send_backward + stage * LANES, prefix.send_backward[stage])
    for lane in range(LANES):
        lanes.forward[last * LANES + lane] = tips.forward[lane]
        lanes.backward[last * LANES + lane] = tips.backward[lane]
        if last > 0:
            lanes.send_forward[(last - 1) * LANES + lane] = tips.send_forward[lane]
            lanes.send_backward[(last - 1) * LANES + lane] = tips.send_backward[lane]
    run_all(count, prefix.num_micro_batches, prefix.warmup, lanes, tips.delay)
    for lane in range(LANES):
        result[lane] = lanes.clock[last * LANES + lane] + tips.all_reduce[lane]
    for stage in range(last):
        for lane in range(LANES):
            value = lanes.clock[stage * LANES + lane] + prefix.all_reduce[stage]
            result[lane] = value if value > result[lane] else result[lane]


cdef void sweep_lanes(
    int count, int num_micro_batches, const int* warmup, Lanes lanes,
    const double* delay, const double* all_reduce, double* result
) noexcept nogil:
    cdef int stage, lane
    cdef double value
    run_all(count, num_micro_batches, warmup, lanes, delay)
    spread(result, 0.0)
    for stage in range(count):
        for lane in range(LANES):
            value = lanes.clock[stage * LANES + lane] + all_reduce[stage * LANES + lane]
            result[lane] = value if value > result[lane] else result[lane]


cdef void run_all(int count, int num_micro_batches, const int* warmup, Lanes lanes, const double* delay) noexcept nogil:
    # Afterwards lanes.clock holds the end of every stage's last operation; lanes.ends (M vectors a stage) the ends of
    # the forwards.
    cdef int last = count - 1
    cdef int stage, microbatch, target
    cdef Py_ssize_t row = <Py_ssize_t>num_micro_batches * LANES
    cdef double* ends = lanes.ends
    cdef double gradient[LANES]

    # Warm-up: the forwards before each stage's first backward.
    for stage in range(count):
        spread(lanes.clock + stage * LANES, 0.0)
        for microbatch in range(warmup[stage]):
            if stage == 0:
                run_alone(lanes.clock, lanes.forward, ends + microbatch * LANES)
            else:
                run(
                    lanes.clock + stage * LANES, ends + (stage - 1) * row + microbatch * LANES,
                    lanes.send_forward + (stage - 1) * LANES, lanes.forward + stage * LANES,
                    ends + stage * row + microbatch * LANES,
                )

    # Steady state and cool-down: wave m runs B[s, m], then F[s, m + warmup[s]].
    for microbatch in range(num_micro_batches):
        run(
            lanes.clock + last * LANES, ends + last * row + microbatch * LANES, delay, lanes.backward + last * LANES,
            gradient,
        )
        for stage in range(last, -1, -1):
            if stage < last:
                run(
                    lanes.clock + stage * LANES, gradient, lanes.send_backward + stage * LANES,
                    lanes.backward + stage * LANES, gradient,
                )
            target = microbatch + warmup[stage]
            if target >= num_micro_batches:
                continue
            if stage == 0:
                run_alone(lanes.clock, lanes.forward, ends + target * LANES)
            else:
                run(
                    lanes.clock + stage * LANES, ends + (stage - 1) * row + target * LANES,
                    lanes.send_forward + (stage - 1) * LANES, lanes.forward + stage * LANES,
                    ends + stage * row + target * LANES,
                )


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

    `warmup` has one entry for each of the N stages, the times one for each of the first x <= N stages (send_* : x - 1
    are read), `delay` stands for what follows stage x. Milliseconds. Raises ValueError where the sizes do not agree.
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
