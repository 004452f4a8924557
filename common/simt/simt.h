/* The simulated device from the inside: what its own files share.
 *
 *     memory.c   device memory: allocations between guard pages, and the question "whose address is this?"
 *     execute.c  blocks over CPU threads, a fiber for each CUDA thread, barriers and warp collectives, the watchdog
 *     hooks.c    the calls that -fsanitize=thread puts before every access of a kernel: bounds and alignment
 *     shadow.c   what is remembered of each word of memory: races, and reads of what nobody wrote
 *     async.c    copies from global to shared memory that arrive when they are waited for
 *     meter.c    requests, sectors and wavefronts, counted by warp and source line
 *     report.c   errors in words, with source lines
 *     api.c      cudaMalloc() and the rest of the runtime API
 */
#ifndef SIMT_H
#define SIMT_H

#include "include/cuda_runtime.h"
#include "include/simt_abi.h"

#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    WARP_SIZE = 32,
    MAX_BLOCK_THREADS = 1024,
    SHARED_BYTES_DEFAULT = 48 << 10, /* without cudaFuncSetAttribute, as on every card */
    SHARED_BYTES_MAX = 227 << 10,    /* with it, as on Hopper */
    STACK_BYTES = 64 << 10,
    MAX_STATIC_ARRAYS = 32, /* __shared__ declarations that one block reaches */
};

/* ---- fibers: Boost.Context's assembly, whose symbols are plain C ---- */
typedef void *fcontext_t;
struct transfer {
    fcontext_t from;
    void *data;
};
extern struct transfer jump_fcontext(fcontext_t to, void *data);
extern fcontext_t make_fcontext(void *stack_top, size_t bytes, void (*entry)(struct transfer));

/* ---- execution ---- */
struct place {
    const char *what; /* "__syncthreads()" */
    const char *file;
    int line;
};

/* AT_ACCESS: under the meter a thread keeps a log of its accesses, and stops when it is full. */
enum thread_state { FRESH, READY, GAVE_WAY, AT_BARRIER, AT_WARP, AT_ACCESS, DONE };

/* ACCESS_COPY: the reading side of an asynchronous copy to shared memory. */
enum access_kind { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC, ACCESS_COPY, ACCESS_KINDS };
enum memory_space { SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, MEMORY_SPACES };

/* One access of one lane, as the meter keeps it until the rest of the warp has come as far. */
struct access {
    uintptr_t address;
    uint32_t pc;  /* relative to the program's start */
    uint32_t via; /* the furthest basic block since the access before, when that lies behind this one; else 0 */
    uint32_t to;  /* of a copy: where in the block's shared memory it goes */
    uint16_t bytes;
    uint8_t kind, space;
};
enum { LOG_SIZE = 32 };

struct thread {
    fcontext_t context;
    enum thread_state state;
    struct uint3 index;
    unsigned linear;     /* x fastest, then y, z: consecutive numbers make a warp */
    uint32_t clock;      /* collectives of its warp that this thread has taken part in, plus one */
    uint64_t stamp;      /* who and when, as shadow.c writes it beside a word: worker's owner, thread, barrier */
    uintptr_t stack;     /* lowest address */
    const void *last_pc; /* of the latest access: where a thread that has returned was last seen */

    struct place place; /* of the barrier or warp collective that it waits at */
    enum simt_warp_operation operation;
    unsigned mask;
    int source_lane;
    uint64_t value, result;

    struct async_copy *copies; /* cp.async copies in flight, oldest first */
    unsigned copy_count, copy_room, committed_groups;

    uintptr_t furthest;             /* simt_furthest, while others run */
    unsigned log_start, log_length; /* under the meter: accesses not yet counted, a ring */
    struct access log[LOG_SIZE];
};

struct warp {
    unsigned live;    /* lanes that exist and have not returned */
    unsigned waiting; /* lanes in state AT_WARP */

    /* Vector clocks: lane b knows of all that lane a did before a's clock reached known_to_all[a], or known[b][a]. */
    uint32_t known_to_all[WARP_SIZE];
    bool has_partial; /* `known` is in use: a collective of some lanes only has happened */
    uint32_t known[WARP_SIZE][WARP_SIZE];
};

/* What is remembered of one 4-byte word of global or shared memory. */
struct cell {
    uint64_t write, read; /* stamps of the last write and of the last reads; 0: none */
    uint32_t write_clock, read_clock;
    uint32_t write_pc, read_pc; /* relative to the program's start */
};

struct static_array {
    const void *declaration; /* identifies the __shared__ declaration */
    const char *name;
    size_t offset, bytes;          /* in the block's shared memory */
    size_t element_bytes, columns; /* columns of a two-dimensional array, else 0 */
};

struct allocation {
    uintptr_t start;
    size_t bytes;
    void *mapping; /* with its guard pages */
    size_t mapping_bytes;
    int serial; /* counts cudaMalloc calls: what a message calls the allocation by, unless it has a name */
    const char *name;
    bool read_only;   /* an input: no kernel may write it */
    bool all_written; /* the host has filled it as a whole */
    struct cell *cells;
    size_t cell_bytes;
};

struct launch {
    const char *name;   /* as the source spells it */
    const void *kernel; /* its code */
    struct uint3 grid, block;
    unsigned threads; /* in a block */
    size_t dynamic_shared_bytes;
    size_t shared_limit; /* static and dynamic together */
    void (*run)(void *arguments);
    void *arguments;
    size_t arguments_bytes;
    uint64_t blocks;
    _Atomic uint64_t next_block;
    _Atomic bool failed;
    _Atomic bool fenced; /* __threadfence() has been called */
    uint64_t number;     /* of this launch, from 1 */
    bool metered;
    uint64_t meter_every;  /* of the blocks, one in so many is metered */
    uint64_t step, offset; /* block i runs as number (i * step + offset) % blocks */
};

/* The allocation that an access site found last: a site nearly always stays in one array. */
struct site_memory {
    uintptr_t start;
    size_t bytes;
    struct cell *cells;
    bool all_written, read_only;
};
enum { SITES = 256 };

/* One CPU thread that runs blocks, one at a time. */
struct worker {
    struct launch *launch;
    fcontext_t scheduler;
    bool on_fiber; /* a CUDA thread runs, not the scheduler */
    struct uint3 block_index;
    struct thread *threads;
    struct warp warps[MAX_BLOCK_THREADS / WARP_SIZE];
    unsigned alive, at_barrier;
    int barrier_votes;

    unsigned char *shared; /* the dynamic part first, then the static arrays */
    size_t shared_used, shared_dirty;
    struct static_array arrays[MAX_STATIC_ARRAYS];
    int array_count;

    unsigned stack_count;
    void *signal_stack;
    sigjmp_buf escape; /* out of a signal handler, back to run_block() */
    int signal;
    uintptr_t signal_address;
    const void *signal_pc;
    _Atomic int64_t block_started_ns; /* 0: idle */

    struct cell *shared_cells;
    uint64_t owner, shared_owner; /* upper bits of the stamps of the block that runs */
    uint64_t block_serial;
    unsigned spins;    /* accesses that may be waiting for another thread */
    unsigned barriers; /* passed by the block that runs */
    bool metering;     /* the block that runs is metered */
    /* The first read, since the last barrier, of a word that nobody had written by then. */
    struct {
        uintptr_t address;
        const void *pc;
        struct thread *thread; /* NULL: none */
        bool shared;
    } unwritten;
    bool block_synchronises; /* it has made an atomic or volatile access */
    struct meter *meter;

    struct site_memory site_cache[SITES];
};

extern const char __executable_start[]; /* by the linker */
static inline uint32_t relative_pc(const void *pc) { return (uint32_t)((uintptr_t)pc - (uintptr_t)__executable_start); }

extern _Thread_local struct worker *simt_worker; /* NULL on host threads */
extern _Thread_local struct thread *simt_self;   /* NULL outside a kernel */
/* The furthest basic block that the running thread has entered since its last access, or since it met other lanes. */
extern _Thread_local uintptr_t simt_furthest;
extern _Thread_local uintptr_t simt_last_block; /* the basic block that was entered last */

void simt_run(struct launch *launch);

/* ---- memory ---- */
void *memory_allocate(size_t bytes); /* NULL when there is not enough; contents are poison */
bool memory_free(void *pointer);
bool memory_contains(const void *pointer, size_t bytes); /* all inside one allocation */
void memory_written_by_host(const void *pointer, size_t bytes);
void memory_for_each(void (*visit)(const struct allocation *allocation, void *data), void *data);
void memory_free_all(void);
size_t memory_total(void), memory_in_use(void);
const struct allocation *memory_find(uintptr_t address);    /* the allocation that holds the byte, or NULL */
const struct allocation *memory_nearest(uintptr_t address); /* the last one that starts at or before it, or NULL */
bool memory_is_module_data(uintptr_t address, size_t bytes, bool is_read); /* __device__ and __constant__ variables */
enum { POISON = 0xff };                                                    /* as a float: NaN; as an int: -1 */

/* ---- hooks: judge one access of the running thread; pc is the return address of the call that stands for it.
 * `marked` accesses, atomic or volatile, do not race with one another. ---- */
void simt_check_access(const void *pointer, size_t bytes, enum access_kind kind, bool marked, const void *pc);

void __sanitizer_cov_trace_pc(void);

void simt_log_access(uintptr_t address, size_t bytes, enum access_kind kind, enum memory_space space, const void *pc);
void simt_log_destination(size_t shared_offset); /* of the copy that was logged last */

/* "tile[3][5]", "O[17]": a byte of memory, as messages and pictures name it. */
void describe_address(uintptr_t address, char *text, size_t room);

/* ---- shadow ---- */
enum { STAMP_THREAD_SHIFT = 19, STAMP_BARRIER_SHIFT = 3, STAMP_OWNER_SHIFT = 29, STAMP_LAUNCH_SHIFT = 48 };
enum { WRITE_MARKED = 1, WRITE_PENDING = 2 }; /* flags of a write stamp; pending: cp.async under way */
enum { READ_BY_LANES = 1, READ_BY_WARPS = 2, READ_BY_BLOCKS = 4 }; /* flags of a read stamp: others read it too */
static const uint64_t WRITTEN_BY_HOST = 4;
/* A plain read that adds nothing to what the word's cell already says, and cannot race: nobody has written the word in
 * this launch (or, with `global` false, no thread of this block since the last barrier), and as many readers are noted
 * already. Nearly all reads are such, so this is the part that must be fast. */
static inline bool shadow_read_is_settled(const struct cell *cell, uint64_t stamp, uint32_t clock, bool global,
                                          bool all_written) {
    const uint64_t thread_and_flags = 1023ull << STAMP_THREAD_SHIFT | 7;
    uint64_t write = cell->write, read = cell->read, differing = read ^ stamp;
    if (global) {
        if ((write ^ stamp) >> STAMP_LAUNCH_SHIFT == 0 || (write == 0 && !all_written)) return false;
        if ((read & READ_BY_BLOCKS) != 0 && differing >> STAMP_LAUNCH_SHIFT == 0) return true;
    } else {
        const uint64_t barrier = 0xffffull << STAMP_BARRIER_SHIFT;
        if ((write ^ stamp) >> STAMP_OWNER_SHIFT != 0 || ((write ^ stamp) & barrier) == 0 ||
            (write & WRITE_PENDING) != 0)
            return false;
    }
    if ((differing & ~thread_and_flags) == 0 && (read & READ_BY_WARPS) != 0) return true;
    return read == stamp && cell->read_clock == clock;
}
void shadow_access(struct cell *cells, uintptr_t address, size_t bytes, enum access_kind kind, bool marked, bool shared,
                   bool all_written, const void *pc);
void shadow_start_block(struct worker *worker, uint64_t number);
void shadow_barrier(struct worker *worker);
void shadow_report_unwritten(struct worker *worker);
void shadow_collective(struct warp *warp, struct thread *first_lane, unsigned lanes);
void shadow_pending(struct cell *cells, size_t words, bool pending);
const void *absolute_pc(uint32_t relative);

/* ---- meter ---- */
struct meter *meter_create(void);
/* `access` is one of the lanes'; each has an address of its own and, if it is a copy, a destination. */
void meter_request(struct worker *worker, const uintptr_t *addresses, const uint32_t *destinations, unsigned lanes,
                   unsigned live, const struct access *access);
void meter_event(struct worker *worker, const char *what, const char *file, int line);
void meter_launch_done(struct launch *launch, struct worker **workers, int count);
bool meter_is_on(uint64_t *every);

/* Let other threads of the block run for a while: called now and then by a thread that may be waiting for one of them. */
void simt_give_way(void);

/* ---- errors ---- */

/* End the running kernel with `error`: the text is kept and printed, the block is abandoned. Called from a fiber it
 * does not return; called from the scheduler it does. */
void simt_fail(cudaError_t error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "steps/01_naive/naive.cu:42" of a code address; the text is the caller's to free. Lines of the simulator's own headers
 * are passed over in favour of the kernel's line that they were inlined into. */
char *source_line(const void *pc);
void source_lines(const void *const *pcs, int count, char **lines);

/* "fa2_forward<64>" of a kernel's code, into text; its name in the source where that cannot be found. */
void kernel_name(const struct launch *launch, char *text, size_t room);

cudaError_t simt_sticky_error(void);
void simt_set_error(cudaError_t error, const char *text); /* text NULL: not a kernel's failure, nothing is printed */
void simt_clear_error(void);

#endif
