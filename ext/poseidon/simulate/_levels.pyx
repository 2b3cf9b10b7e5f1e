"""Levels of a pipeline's operations: operations of one level wait only for operations of lower levels."""

from libc.stdint cimport int32_t
from libc.stdlib cimport free, malloc


def find_levels(
    const int32_t[::1] previous not None,
    const int32_t[::1] sender not None,
    const int32_t[::1] chained not None,
    int32_t[::1] levels not None,
) -> int:
    """Writes each operation's level to `levels`; returns how many operations got one: fewer than all means a cycle.

    Operations are numbered stage by stage: previous[i] is i - 1, or -1 for a stage's first; sender[i] is the operation
    whose message i waits for, or -1; no operation sends to two. An operation with chained[i] = 1 receives nothing and
    shares the level of its previous one. ValueError if the arrays are not like that.
    """
    cdef Py_ssize_t num_operations = previous.shape[0]
    if not sender.shape[0] == chained.shape[0] == levels.shape[0] == num_operations:
        raise ValueError("previous, sender, chained and levels must have one entry per operation")
    if num_operations == 0:
        return 0
    cdef int32_t* receiver = <int32_t*> malloc(3 * num_operations * sizeof(int32_t))
    if receiver == NULL:
        raise MemoryError
    cdef int32_t* num_waits = receiver + num_operations
    cdef int32_t* queue = num_waits + num_operations
    cdef Py_ssize_t i, num_reached = -1
    for i in range(num_operations):
        receiver[i] = -1
    if _connect(previous, sender, chained, receiver, num_waits):
        num_reached = _visit(previous, sender, chained, receiver, num_waits, queue, levels)
    free(receiver)
    if num_reached < 0:
        raise ValueError("previous, sender and chained do not describe operations numbered stage by stage")
    return num_reached


cdef bint _connect(
    const int32_t[::1] previous,
    const int32_t[::1] sender,
    const int32_t[::1] chained,
    int32_t* receiver,
    int32_t* num_waits,
) noexcept nogil:
    """Fills in who receives from whom and how many operations each waits for; False if the arrays are wrong."""
    cdef Py_ssize_t i, num_operations = previous.shape[0]
    for i in range(num_operations):
        if previous[i] != -1 and previous[i] != i - 1:
            return False
        if not -1 <= sender[i] < num_operations or (chained[i] and (previous[i] == -1 or sender[i] != -1)):
            return False
        num_waits[i] = (previous[i] != -1) + (sender[i] != -1)
        if sender[i] != -1:
            if receiver[sender[i]] != -1:
                return False
            receiver[sender[i]] = <int32_t> i
    return previous[0] == -1


cdef Py_ssize_t _visit(
    const int32_t[::1] previous,
    const int32_t[::1] sender,
    const int32_t[::1] chained,
    const int32_t* receiver,
    int32_t* num_waits,
    int32_t* queue,
    int32_t[::1] levels,
) noexcept nogil:
    """Visits every operation once all that it waits for is visited; returns how many were."""
    cdef Py_ssize_t num_operations = previous.shape[0], head = 0, tail = 0, i
    cdef int32_t following[2]
    cdef int32_t level, j
    cdef int k
    for i in range(num_operations):
        if num_waits[i] == 0:
            queue[tail] = <int32_t> i
            tail += 1
    while head < tail:
        i = queue[head]
        head += 1
        level = levels[previous[i]] if previous[i] != -1 else -1
        if sender[i] != -1 and levels[sender[i]] > level:
            level = levels[sender[i]]
        levels[i] = level if chained[i] else level + 1
        following[0] = <int32_t> (i + 1) if i + 1 < num_operations and previous[i + 1] == i else -1
        following[1] = receiver[i]
        for k in range(2):
            j = following[k]
            if j != -1:
                num_waits[j] -= 1
                if num_waits[j] == 0:
                    queue[tail] = j
                    tail += 1
    return tail
