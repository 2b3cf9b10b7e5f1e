# The time to beat, in 32 bytes that several processes can share: one writer, any number of readers.

from libc.math cimport INFINITY


cdef extern from *:
    """
    #include <stdint.h>

    typedef struct {
        uint64_t sequence;   /* odd while the writer is at work */
        double cutoff_ms;
        int64_t rank;        /* of the outer choice whose plan has that time */
        uint64_t flags;
    } CellData;

    static inline double peek_cutoff(const CellData *cell) {
        double cutoff_ms;
        __atomic_load(&cell->cutoff_ms, &cutoff_ms, __ATOMIC_RELAXED);
        return cutoff_ms;
    }

    static inline void read_cell(const CellData *cell, double *cutoff_ms, int64_t *rank) {
        uint64_t before, after;
        do {
            before = __atomic_load_n(&cell->sequence, __ATOMIC_ACQUIRE);
            __atomic_load(&cell->cutoff_ms, cutoff_ms, __ATOMIC_RELAXED);
            *rank = __atomic_load_n(&cell->rank, __ATOMIC_RELAXED);
            __atomic_thread_fence(__ATOMIC_ACQUIRE);
            after = __atomic_load_n(&cell->sequence, __ATOMIC_RELAXED);
        } while (before != after || (before & 1));
    }

    static inline void write_cell(CellData *cell, double cutoff_ms, int64_t rank) {
        uint64_t sequence = __atomic_load_n(&cell->sequence, __ATOMIC_RELAXED);
        __atomic_store_n(&cell->sequence, sequence + 1, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        __atomic_store(&cell->cutoff_ms, &cutoff_ms, __ATOMIC_RELAXED);
        __atomic_store_n(&cell->rank, rank, __ATOMIC_RELAXED);
        __atomic_store_n(&cell->sequence, sequence + 2, __ATOMIC_RELEASE);
    }

    static inline uint64_t read_flags(const CellData *cell) {
        return __atomic_load_n(&cell->flags, __ATOMIC_RELAXED);
    }

    static inline void set_flag(CellData *cell, uint64_t flag, int on) {
        if (on) __atomic_or_fetch(&cell->flags, flag, __ATOMIC_RELAXED);
        else __atomic_and_fetch(&cell->flags, ~flag, __ATOMIC_RELAXED);
    }
    """
    ctypedef struct CellData:
        pass
    ctypedef long long int64_t
    ctypedef unsigned long long uint64_t
    double peek_cutoff(const CellData* cell) noexcept nogil
    void read_cell(const CellData* cell, double* cutoff_ms, int64_t* rank) noexcept nogil
    void write_cell(CellData* cell, double cutoff_ms, int64_t rank) noexcept nogil
    uint64_t read_flags(const CellData* cell) noexcept nogil
    void set_flag(CellData* cell, uint64_t flag, bint on) noexcept nogil


cdef class IncumbentCell:
    cdef unsigned char[::1] buffer
    cdef CellData* data


cdef struct Reader:
    # What one search knows of a cell. `slack` >= 0: a plan of a later outer choice leaves room for one of this outer
    # choice that is as fast, up to this fraction.
    const CellData* cell      # NULL: nothing is shared
    int64_t rank              # of the search's own outer choice
    double slack
    double seen_ms            # the last cutoff that was looked at


cdef inline double news(Reader* reader) noexcept nogil:
    # The time to beat from now on where the cell has a better one than last time, else infinity.
    cdef double cutoff_ms = 0.0
    cdef int64_t rank = 0
    if reader.cell == NULL or peek_cutoff(reader.cell) >= reader.seen_ms:
        return INFINITY
    read_cell(reader.cell, &cutoff_ms, &rank)
    reader.seen_ms = cutoff_ms
    return cutoff_ms * (1.0 + reader.slack) if reader.rank < rank else cutoff_ms
