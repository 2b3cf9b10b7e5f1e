"""The longest path of a pipeline's graph: checked doors for Python, fast ones for C (see the .pxd)."""

from libc.math cimport isfinite
from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

NUM_LANES = LANES


cdef size_t workspace_length(const OperationList* operations) noexcept nogil:
    return <size_t> 2 * operations.num_slots + FIRST + operations.num_operations


cdef inline void _pair_costs(
    const OperationList* operations, const double* durations, const double* transfers, Py_ssize_t lanes, double* costs
) noexcept nogil:
    """Writes each slot's incoming transfer and its duration side by side, so that an operation reads one place."""
    cdef Py_ssize_t slot, lane
    cdef int32_t link
    for slot in range(operations.num_slots):
        link = operations.link[slot]
        for lane in range(lanes):
            costs[2 * lanes * slot + lane] = transfers[lanes * link + lane] if link >= 0 else 0.0
            costs[2 * lanes * slot + lanes + lane] = durations[lanes * slot + lane]


cdef double longest_path(
    const OperationList* operations,
    const double* durations,
    const double* transfers,
    const double* all_reduce,
    double* workspace,
) noexcept nogil:
    cdef const int32_t* previous = operations.previous
    cdef const int32_t* sender = operations.sender
    cdef const int32_t* cost_place = operations.cost
    cdef double* costs = workspace
    cdef double* cells = workspace + 2 * <Py_ssize_t> operations.num_slots
    cdef double* ends = cells + FIRST
    cdef const double* cost
    cdef double free_at, arrival, end = 0.0, longest = 0.0
    cdef Py_ssize_t i
    cdef int32_t message
    _pair_costs(operations, durations, transfers, 1, costs)
    cells[CHAINED] = 0.0
    cells[NOTHING] = 0.0
    for i in range(operations.num_operations):
        cost = costs + cost_place[i]
        message = sender[i]
        if message != CHAINED:
            free_at = cells[previous[i]]
            arrival = cells[message] + cost[0]
            end = free_at if free_at > arrival else arrival
        end += cost[1]
        ends[i] = end
    for i in range(operations.num_stages):
        end = cells[operations.last[i]] + all_reduce[i]
        longest = end if end > longest else longest
    return longest


cdef void longest_paths(
    const OperationList* operations,
    const double* durations,
    const double* transfers,
    const double* all_reduce,
    double* workspace,
    double* times,
) noexcept nogil:
    cdef double* cells = workspace + 2 * LANES * <Py_ssize_t> operations.num_slots
    _pair_costs(operations, durations, transfers, LANES, workspace)
    _end_lanes(operations, workspace, cells)
    _finish_lanes(operations, all_reduce, cells, times)


cdef inline void _end_lanes(const OperationList* operations, const double* costs, double* cells) noexcept nogil:
    """The loop of `longest_path` on LANES candidates; CHAINED needs no branch, as its cell is 0 in every lane.

    The lanes of an operation go through a local array, which nothing can alias: so the compiler uses vector registers.
    """
    cdef const int32_t* previous = operations.previous
    cdef const int32_t* sender = operations.sender
    cdef const int32_t* cost_place = operations.cost
    cdef const double* cost
    cdef const double* before
    cdef const double* message
    cdef double* ends = cells + FIRST * LANES
    cdef double end[LANES]
    cdef double free_at, arrival
    cdef Py_ssize_t i, lane
    for lane in range(FIRST * LANES):
        cells[lane] = 0.0
    for i in range(operations.num_operations):
        cost = costs + LANES * <Py_ssize_t> cost_place[i]
        before = cells + LANES * <Py_ssize_t> previous[i]
        message = cells + LANES * <Py_ssize_t> sender[i]
        for lane in range(LANES):
            free_at = before[lane]
            arrival = message[lane] + cost[lane]
            end[lane] = (free_at if free_at > arrival else arrival) + cost[LANES + lane]
        for lane in range(LANES):
            ends[lane] = end[lane]
        ends += LANES


cdef inline void _finish_lanes(
    const OperationList* operations, const double* all_reduce, const double* cells, double* times
) noexcept nogil:
    """Adds each stage's all-reduce to the end of its last operation and keeps the latest, lane by lane."""
    cdef double end
    cdef Py_ssize_t stage, lane
    for lane in range(LANES):
        times[lane] = 0.0
        for stage in range(operations.num_stages):
            end = cells[LANES * <Py_ssize_t> operations.last[stage] + lane] + all_reduce[LANES * stage + lane]
            times[lane] = end if end > times[lane] else times[lane]


cdef int _check_operations(const OperationList* operations) except -1:
    """Raises ValueError where an invariant of OperationList does not hold."""
    cdef Py_ssize_t i
    cdef int32_t cell
    for i in range(operations.num_slots):
        if not -1 <= operations.link[i] < operations.num_links:
            raise ValueError(f"slot {i} has link {operations.link[i]} of {operations.num_links}")
    for i in range(operations.num_operations):
        cell = <int32_t> (FIRST + i)
        if not NOTHING <= operations.previous[i] < cell or not CHAINED <= operations.sender[i] < cell:
            raise ValueError(f"operation {i} must come after what it waits for in the list")
        if operations.sender[i] == CHAINED and operations.previous[i] != cell - 1:
            raise ValueError(f"operation {i} is chained to an operation that is not right before it")
        if not 0 <= operations.cost[i] < 2 * operations.num_slots:
            raise ValueError(f"operation {i} has no slot: there are {operations.num_slots}")
        if (operations.sender[i] > NOTHING) != (operations.link[operations.cost[i] // 2] >= 0):
            raise ValueError(f"operation {i} must receive exactly if its slot has a link")
    for i in range(operations.num_stages):
        if not FIRST <= operations.last[i] < FIRST + operations.num_operations:
            raise ValueError(f"stage {i} has no last operation")
    return 0


cdef int _check_weights(str name, const double* weights, Py_ssize_t num_weights) except -1:
    cdef Py_ssize_t i
    for i in range(num_weights):
        if not (isfinite(weights[i]) and weights[i] >= 0):
            raise ValueError(f"{name} must be finite and at least 0, not {weights[i]}")
    return 0


cdef int _check_sizes(
    const OperationList* operations, Py_ssize_t num_durations, Py_ssize_t num_transfers, Py_ssize_t num_all_reduce
) except -1:
    if num_durations != operations.num_slots:
        raise ValueError(f"durations needs {operations.num_slots} entries, not {num_durations}")
    if num_transfers != operations.num_links:
        raise ValueError(f"transfers needs {operations.num_links} entries, not {num_transfers}")
    if num_all_reduce != operations.num_stages:
        raise ValueError(f"all_reduce needs {operations.num_stages} entries, not {num_all_reduce}")
    return 0


cdef double* _new_workspace(
    const OperationList* operations,
    const double* durations,
    const double* transfers,
    const double* all_reduce,
    Py_ssize_t lanes,
) except NULL:
    """Checks the weights and allocates a workspace, which the caller frees."""
    _check_weights("durations", durations, lanes * operations.num_slots)
    _check_weights("transfers", transfers, lanes * operations.num_links)
    _check_weights("all_reduce", all_reduce, lanes * operations.num_stages)
    cdef double* workspace = <double*> malloc(lanes * workspace_length(operations) * sizeof(double))
    if workspace == NULL:
        raise MemoryError
    return workspace


cdef class LongestPath:
    """A graph whose invariants are checked, ready to be evaluated with any weights; see `poseidon.simulate.Graph`.

    The int32 arrays are those of the .pxd's OperationList and are copied. ValueError if they are no such graph.
    """

    def __cinit__(
        self,
        const int32_t[::1] previous not None,
        const int32_t[::1] sender not None,
        const int32_t[::1] slot not None,
        const int32_t[::1] link not None,
        const int32_t[::1] last not None,
        int num_links,
    ):
        cdef Py_ssize_t num_operations = previous.shape[0], num_slots = link.shape[0], num_stages = last.shape[0]
        if sender.shape[0] != num_operations or slot.shape[0] != num_operations:
            raise ValueError("previous, sender and slot must have one entry per operation")
        if num_stages < 1 or num_links < 1 or num_slots < 1 or num_operations < num_stages:
            raise ValueError("a graph needs a stage, a link, a slot, and at least one operation per stage")
        if max(num_operations, num_slots, num_links) > 0x7FFFFFFF // (4 * LANES):
            raise ValueError("the graph is too large")
        self._memory = <int32_t*> malloc((3 * num_operations + num_slots + num_stages) * sizeof(int32_t))
        if self._memory == NULL:
            raise MemoryError
        cdef int32_t* sender_copy = self._memory + num_operations
        cdef int32_t* cost = sender_copy + num_operations
        cdef int32_t* link_copy = cost + num_operations
        cdef int32_t* last_copy = link_copy + num_slots
        cdef Py_ssize_t i
        for i in range(num_operations):
            self._memory[i] = previous[i]
            sender_copy[i] = sender[i]
            cost[i] = 2 * slot[i] if 0 <= slot[i] < num_slots else -1
        for i in range(num_slots):
            link_copy[i] = link[i]
        for i in range(num_stages):
            last_copy[i] = last[i]
        self.operations = OperationList(
            <int32_t> num_operations, <int32_t> num_stages, <int32_t> num_slots, num_links,
            self._memory, sender_copy, cost, link_copy, last_copy,
        )
        _check_operations(&self.operations)

    def __dealloc__(self):
        free(self._memory)

    def __reduce__(self):
        raise TypeError("a LongestPath holds memory of this process: send the Order and build its graph again")

    def time(
        self,
        const double[::1] durations not None,
        const double[::1] transfers not None,
        const double[::1] all_reduce not None,
        Py_ssize_t repeats=1,
    ) -> float:
        """Iteration time; `repeats` evaluates as often (for measurements). Releases the GIL."""
        _check_sizes(&self.operations, durations.shape[0], transfers.shape[0], all_reduce.shape[0])
        cdef double* workspace = _new_workspace(
            &self.operations, &durations[0], &transfers[0], &all_reduce[0], 1
        )
        cdef double result = 0.0
        cdef Py_ssize_t _repeat
        with nogil:
            for _repeat in range(repeats):
                result = longest_path(&self.operations, &durations[0], &transfers[0], &all_reduce[0], workspace)
            free(workspace)
        return result

    def ends(
        self,
        const double[::1] durations not None,
        const double[::1] transfers not None,
        const double[::1] all_reduce not None,
        double[::1] ends not None,
    ) -> float:
        """Iteration time; writes each operation's end to `ends`, in the order of the list. Releases the GIL."""
        _check_sizes(&self.operations, durations.shape[0], transfers.shape[0], all_reduce.shape[0])
        cdef Py_ssize_t num_operations = self.operations.num_operations
        if ends.shape[0] != num_operations:
            raise ValueError(f"ends needs {num_operations} entries, not {ends.shape[0]}")
        cdef double* workspace = _new_workspace(
            &self.operations, &durations[0], &transfers[0], &all_reduce[0], 1
        )
        cdef size_t skipped = workspace_length(&self.operations) - num_operations
        cdef double result
        with nogil:
            result = longest_path(&self.operations, &durations[0], &transfers[0], &all_reduce[0], workspace)
            memcpy(&ends[0], workspace + skipped, num_operations * sizeof(double))
            free(workspace)
        return result

    def times(
        self,
        const double[:, ::1] durations not None,
        const double[:, ::1] transfers not None,
        const double[:, ::1] all_reduce not None,
        double[::1] times not None,
        Py_ssize_t repeats=1,
    ) -> None:
        """Writes the iteration times of NUM_LANES candidates, one per column of the weights. Releases the GIL."""
        _check_sizes(&self.operations, durations.shape[0], transfers.shape[0], all_reduce.shape[0])
        if not durations.shape[1] == transfers.shape[1] == all_reduce.shape[1] == times.shape[0] == LANES:
            raise ValueError(f"durations, transfers and all_reduce need {LANES} columns, times {LANES} entries")
        cdef double* workspace = _new_workspace(
            &self.operations, &durations[0, 0], &transfers[0, 0], &all_reduce[0, 0], LANES
        )
        cdef Py_ssize_t _repeat
        with nogil:
            for _repeat in range(repeats):
                longest_paths(
                    &self.operations, &durations[0, 0], &transfers[0, 0], &all_reduce[0, 0], workspace, &times[0]
                )
            free(workspace)
