/* Device memory and shared memory: what is at this address, and what is it called? */
#pragma once

#include "machine.h"

/* The byte that memory starts out with. 0xff: NaN as a float, -1 as an int. A program that simt-nvcc makes has 0x7b: large,
 * finite and positive in all floating types, so that `fabs(got - wanted) > bound` holds for it, for its root and for its logarithm. */
extern unsigned char memory_poison;

/* What one stream's launches did to memory before another stream's took their place in its cells, though nothing orders the two:
 * for each cell, the last of them (streams.c). */
struct displaced {
    struct displaced *next;
    size_t bytes, count;
    unsigned slot;
    struct displaced_cell {
        uint32_t read_order, read_pc, write_order, write_pc; /* an order of 0: none */
    } cells[];
};

/* What memory an address lies in. LITERAL: what the program never changes, which host and kernels may read. */
enum memory_kind { HOST, LITERAL, VARIABLE, CONSTANT, MANAGED, PAGE_LOCKED, DEVICE, SHARED, LOCAL };
static inline bool host_may_access(enum memory_kind kind) { return kind <= LITERAL || kind == MANAGED || kind == PAGE_LOCKED; }
static inline bool device_may_access(enum memory_kind kind) { return kind > LITERAL; }

struct allocation {
    enum memory_kind kind; /* MANAGED, PAGE_LOCKED or DEVICE */
    int device;            /* the current one when it was made */
    uintptr_t start;
    size_t bytes;
    void *mapping; /* with its guard pages */
    size_t mapping_bytes;
    int serial; /* counts cudaMalloc calls: what a message calls the allocation by where nothing else is known */
    const char *variable, *name; /* which the call stores the pointer to, or NULL; what the harness calls it, or NULL */
    void *callers[12];           /* of the allocation, the simulated device's functions first; NULL ends them */
    _Atomic(char *) origin;      /* " (cudaMalloc, hist.cu:18)", once a message has needed it */
    size_t element_bytes;        /* where it has a name */
    bool read_only;              /* an input: no kernel may write it */
    bool reserved;               /* holds zeros where nobody has touched it */
    bool all_written;            /* the host has filled it as a whole, or may do so at any time */
    struct cell *cells;
    size_t cell_bytes;
    struct displaced *_Atomic displaced;
    size_t pitch, row_bytes; /* of cudaMallocPitch(), else 0: the end of each row is padding */
};

/* The one answer to what an address is; all else that asks goes by it. */
struct memory_place {
    enum memory_kind kind;
    const struct allocation *allocation; /* NULL: it is in none */
    bool whole;                          /* all the bytes that were asked for lie in the same allocation, array or section */
};
struct memory_place memory_place(uintptr_t address, size_t bytes);
/* Shared memory, or the running thread's own stack: what instructions on global memory do not reach. */
bool memory_is_private(uintptr_t address);

void memory_expect_notes(void *start, size_t bytes);                    /* most of this mapping will be written */
void *memory_allocate(size_t bytes, enum memory_kind kind, int device); /* poison; NULL when there is not enough */
void memory_set_rows(const void *pointer, size_t pitch, size_t row_bytes);
void *memory_reserve(size_t bytes, int device); /* NULL when the address space is too small; zeros that take up no room */
bool memory_free(void *pointer);
void memory_written_by_host(const void *pointer, size_t bytes);
void memory_copied(const void *to, const void *from, size_t bytes); /* written where the source is */
bool memory_forget(const void *pointer, int value, size_t bytes);   /* set a reserved allocation to 0 as a whole; else false */
void memory_for_each(void (*visit)(const struct allocation *allocation, void *data), void *data);
void memory_free_all(void);
/* The host has no rights to device memory, so that it cannot take a device pointer for its own: opened for a launch, and
 * around what the API itself does. */
void memory_open(const void *pointer), memory_close(const void *pointer); /* the allocation that holds the byte, if any */
void memory_open_all(void), memory_close_all(void);
size_t memory_total(void), memory_in_use(void);
const struct allocation *memory_find(uintptr_t address);    /* the allocation that holds the byte, or NULL */
const struct allocation *memory_nearest(uintptr_t address); /* the last one that starts at or before it, or NULL */

/* ---- shared memory of the block that runs ---- */
static inline size_t shared_offset_of(const struct worker *worker, uintptr_t address) {
    return address - (uintptr_t)worker->shared.start; /* beyond SHARED_BYTES_MAX: not shared memory */
}
/* Inside the dynamic array or one of the static ones. */
static inline bool shared_contains(const struct worker *worker, size_t offset, size_t bytes) {
    if (offset >= worker->shared.base && offset - worker->shared.base + bytes <= worker->launch->dynamic_shared_bytes)
        return true;
    for (int i = 0; i < worker->shared.array_count; i++) {
        const struct static_array *array = &worker->shared.arrays[i];
        if (offset >= array->offset && offset + bytes <= array->offset + array->bytes) return true;
    }
    return false;
}
/* The most that a block can have: SIMT_SHARED_KIB kibibytes, one of 64, 99, 163 and 227 as on cards of several kinds; 227
 * where it is not set. Another value ends the program with exit status 2. */
size_t shared_most(void);
bool shared_create(struct worker *worker);
void shared_start_block(struct worker *worker); /* poison it, forget the arrays */

/* ---- shared memory of the other block of a cluster: distributed.c ---- */
/* By the running thread; `remembered`: the block must wait for it before it ends. For copies it must wait anyway. */
void distributed_use(const struct worker *of, bool remembered, const void *pc);
void distributed_end(struct worker *worker); /* all threads of the block have returned */

/* "tile[3][5]", "O[17]": a byte of memory, as messages and pictures name it. */
struct words {
    char text[400];
};
struct words describe_address(uintptr_t address);
/* Of an offset in shared memory whose alignment was not enough: what the declaration of dynamic shared memory promises. */
struct words describe_promise(size_t offset);
/* Where the same access was before, or 0. */
void describe_stray(uintptr_t address, uintptr_t before, char *text, size_t room);
