"""The time to beat where kernels of several processes can read it while they run."""

from libc.math cimport INFINITY

SIZE = sizeof(CellData)
"""Bytes of a cell."""
NOBODY = (1 << 62)
"""Rank of a cutoff that is no outer choice's plan: nothing is as fast by mere chance."""

cdef enum:
    STOP = 1
    HUNGRY = 2


cdef class IncumbentCell:
    """A cell in a writable buffer of at least `SIZE` bytes (aligned to 8): shared memory, or a bytearray.

    One process at a time may write. A fresh (all zero) buffer must be `reset` by the writer.
    """

    def __cinit__(self, unsigned char[::1] buffer):
        if buffer.shape[0] < <Py_ssize_t>sizeof(CellData):
            raise ValueError(f"the buffer has {buffer.shape[0]} bytes; accepted: {sizeof(CellData)} or more")
        self.buffer = buffer
        self.data = <CellData*>&buffer[0]

    def reset(self):
        """No time to beat, no flags."""
        write_cell(self.data, INFINITY, NOBODY)
        set_flag(self.data, STOP, False)
        set_flag(self.data, HUNGRY, False)

    def publish(self, double cutoff_ms, long long rank):
        """Only plans faster than `cutoff_ms` are of interest; it is the plan of the outer choice with that rank.

        A cutoff above the present one changes nothing.
        """
        cdef double known_ms = peek_cutoff(self.data)
        if cutoff_ms < known_ms or (cutoff_ms == known_ms and rank < self.read()[1]):
            write_cell(self.data, cutoff_ms, rank)

    def read(self):
        """The cutoff (ms) and its rank."""
        cdef double cutoff_ms = 0.0
        cdef int64_t rank = 0
        read_cell(self.data, &cutoff_ms, &rank)
        return cutoff_ms, rank

    @property
    def stop(self):
        """Whether searches are to hand back what they have."""
        return bool(read_flags(self.data) & STOP)

    @stop.setter
    def stop(self, bint value):
        set_flag(self.data, STOP, value)

    @property
    def hungry(self):
        """Whether some worker has nothing to do: searches hand back a part of their work soon."""
        return bool(read_flags(self.data) & HUNGRY)

    @hungry.setter
    def hungry(self, bint value):
        set_flag(self.data, HUNGRY, value)
