/* The machine: what a launch, a block, a warp and a thread are while a kernel runs, and how one thread makes way for
 * another. It is the ground that all other layers stand on and calls none of them.
 *
 * Each block runs on one CPU thread, its worker, and each CUDA thread is a fiber there: a stack, and a place in the
 * code. A fiber runs until it ends, waits for others or fails, and then the worker's scheduler goes on.
 */
#pragma once

#include "simt_abi.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum {
    WARP_SIZE = 32,
    MAX_BLOCK_THREADS = 1024,
    STACK_BYTES = 64 << 10,
    MAX_STATIC_ARRAYS = 32,          /* __shared__ declarations that one block reaches */
    SHARED_BYTES_DEFAULT = 48 << 10, /* without cudaFuncSetAttribute, as on every card */
    MAX_CLUSTER = 8,
    SHARED_BYTES_MOST = 227 << 10,                       /* with it, as on Hopper; shared_most() may be less */
    SHARED_SHIFT = 1 << 10,                              /* so far the dynamic part may begin from where shared memory does */
    SHARED_BYTES_MAX = SHARED_BYTES_MOST + SHARED_SHIFT, /* addresses of it are below */
};

static inline float float_of(uint32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int64_t read_clock(clockid_t clock) { /* in nanoseconds */
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* For functions that wait until then: `ns`, less than a second, from now on. */
static inline struct timespec time_in(int64_t ns) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    ns += t.tv_nsec;
    return (struct timespec){t.tv_sec + ns / 1000000000, ns % 1000000000};
}

/* ---- fibers: Boost.Context's assembly, whose symbols are plain C ---- */
typedef void *fcontext_t;
struct transfer {
    fcontext_t from;
    void *data;
};

struct place {
    const char *what; /* "__syncthreads()" */
    const char *file;
    int line;
};

/* FRESH and READY threads can be resumed. AT_LOG: under the meter a thread keeps a log, and stops when it is full. */
enum thread_state { FRESH, READY, GAVE_WAY, AT_BARRIER, AT_COLLECTIVE, AT_ACTIVE_MASK, AT_CONDITION, AT_LOG, DONE };

struct thread {
    /* What each access and each switch touches, in two lines of the CPU's cache. */
    _Alignas(64) fcontext_t context;
    enum thread_state state;
    uint32_t clock; /* for memory/shadow.c: when, in the block's own time, which collectives of the warp and barriers advance */
    uint64_t stamp; /* and who */
    const void *last_pc; /* of the latest access: where a thread that has returned was last seen */
    uintptr_t seen;      /* the latest access of `seen_bytes` that a hook has let pass */
    bool tested;         /* the access before it was of this place */
    size_t seen_bytes;
    intptr_t furthest;  /* simt_furthest, while others run */
    uintptr_t stack;    /* lowest address */
    struct place place; /* of the barrier, collective or condition that it waits at */
    struct uint3 index;
    unsigned linear;  /* x fastest, then y, z: consecutive numbers make a warp */
    unsigned number;  /* the same, but counted on through the blocks of a cluster: stamps hold it */
    int votes;        /* what the barrier that it passed last counted */
    uintptr_t judged; /* where the latest write of `judged_bytes` went that a hook let pass (hooks/confined.c) */
    size_t judged_bytes;

    struct worker *home; /* that runs its block */
    bool in_pieces;      /* the access that is judged is a part of one that a card would split */
    uintptr_t elsewhere; /* of the latest simt_shared_address() that asked for a pointer to other memory */
    const struct simt_collective *collective;
    unsigned mask;
    const void *operand;
    void *result;
    const struct simt_condition *condition;
    void *condition_data;

    struct async_copies *copies;            /* collectives/async_copy.c: cp.async under way, NULL before the first */
    struct accumulator_range *accumulators; /* memory/accumulators.c: of wgmma, or NULL */
    unsigned accumulator_count;
    bool wgmma_fenced; /* it has executed wgmma.fence */
    uint8_t scope;     /* enum simt_scope of its atomic and volatile accesses, where this is not the device */
    uint32_t acquired; /* the value that its last ld.acquire read */
    struct waited {
        const void *pc; /* NULL: none */
        int barrier;
        unsigned parity;
    } waited;        /* its last wait at an mbarrier of PTX that is over */
    bool at_cluster; /* it has arrived at the barrier of its cluster, and not waited */
    uint64_t cluster_round;
    struct place cluster_place; /* where it has arrived */
    uint64_t accesses;          /* under the meter: to global and shared memory so far, those of copies left out */
    bool begun;                 /* and it has entered the kernel's first basic block */
};

/* Stacks lie whole pages apart. If all began at the same place of their page, the lanes of a warp would push one another
 * out of the same few lines of the CPU's cache at every switch. A multiple of 128, so that frames aligned to it are alike in all threads. */
static inline size_t stack_colour(const struct thread *thread) { return thread->linear % WARP_SIZE * 384; }

/* The same of a variable in all threads of a kernel: how far up its stack it would lie without the colour. */
static inline size_t stack_offset(const struct thread *thread, uintptr_t address) {
    return address - thread->stack + stack_colour(thread);
}

/* As arguments of printf(): "(%u,%u,%u)", and "%s in %s:%d". */
#define XYZ(index) (index).x, (index).y, (index).z
#define PLACE(place) (place).what, (place).file, (place).line

/* Of a thread or block by its number, x fastest. */
static inline struct uint3 index_in(struct uint3 size, uint64_t number) {
    return (struct uint3){(unsigned)(number % size.x), (unsigned)(number / size.x % size.y),
                          (unsigned)(number / size.x / size.y)};
}

static inline uint64_t greatest_common_divisor(uint64_t a, uint64_t b) {
    return b == 0 ? a : greatest_common_divisor(b, a % b);
}

/* FOR_EACH_LANE(lane, mask) STATEMENT */
#define FOR_EACH_LANE(lane, mask)                                                                                              \
    for (unsigned left_ = (mask), lane; left_ != 0 && (lane = (unsigned)__builtin_ctz(left_), 1); left_ &= left_ - 1)

/* FOR_EACH_BLOCK(of, first) STATEMENT: the worker `first`, and those of the cluster's other blocks where there is a cluster. */
#define FOR_EACH_BLOCK(of, first)                                                                                              \
    for (struct worker *of = (first); of != NULL; of = of->cluster.next != (first) ? of->cluster.next : NULL)

/* FOR_EACH_THREAD(of, worker) STATEMENT: the threads of its block, in order. */
#define FOR_EACH_THREAD(of, worker)                                                                                            \
    for (struct thread *of = (worker)->threads; of < (worker)->threads + (worker)->launch->threads; of++)

/* The lanes that a warp from thread `first` of so many threads has, as a mask. */
static inline unsigned lanes_from(unsigned first, unsigned threads) {
    return threads - first >= WARP_SIZE ? 0xffffffffu : (1u << (threads - first)) - 1;
}

struct warp {
    unsigned live;    /* lanes that exist and have not returned */
    unsigned waiting; /* lanes in state AT_COLLECTIVE */
    unsigned asking;  /* lanes in state AT_ACTIVE_MASK */

    /* Vector clocks: lane b knows of all that lane a did before a's clock reached known_to_all[a], or known[b][a]. */
    uint32_t known_to_all[WARP_SIZE];
    bool has_partial; /* `known` is in use: a collective of some lanes only has happened */
    uint32_t known[WARP_SIZE][WARP_SIZE];
};

struct static_array {
    const size_t *extents; /* of its dimensions, and a 0; the address identifies the __shared__ declaration */
    const char *name;
    size_t offset, bytes; /* in the block's shared memory */
    size_t element_bytes;
};

struct launch {
    const char *name;   /* as the source spells it */
    const void *kernel; /* its code */
    struct uint3 grid, block;
    unsigned threads; /* in a block */
    size_t dynamic_shared_bytes;
    size_t static_limit;           /* of static shared memory, beside the dynamic part */
    void (*body)(void *arguments); /* what each thread runs */
    void *arguments;
    size_t arguments_bytes;
    uint64_t blocks;
    unsigned cluster;            /* so many blocks run together: 1 to MAX_CLUSTER */
    unsigned stride;             /* of thread numbers, from one block of a cluster to the next; 0: there are no clusters */
    _Atomic unsigned wanted[3];  /* __cluster_dims__ of the kernel, where the launch has others: nothing of it runs */
    _Atomic uint64_t next_block; /* to end_block, counted in clusters: all, but for simt_run_part() */
    uint64_t end_block;
    _Atomic bool failed;
    _Atomic unsigned fenced;     /* the widest simt_scope of the fences that have been executed, or 0 */
    _Atomic bool has_narrow;     /* some of them, or of the releases and acquires, did not reach other blocks */
    _Atomic bool has_semaphores; /* ld.acquire or red.release has been executed */
    _Atomic unsigned bounds;     /* __launch_bounds__ that it exceeds, so that nothing of it runs, or 0 */
    _Atomic unsigned registers;  /* of a thread at its start, as its __launch_bounds__ have the assembler choose them, or 0 */
    struct grid_constant {       /* its parameters that are __grid_constant__: where on each thread's stack */
        size_t offset, bytes;
    } grid_constants[8];
    _Atomic unsigned grid_constant_count; /* more than there is room for: any may be one */
    uint64_t number;                      /* of this launch, from 1 */
    uint64_t settled;                     /* a new one with each order (memory/shadow.h) */
    uint64_t order, first_order; /* memory/stamp.h: of what runs now, and of what ran before its first barrier of the grid */
    struct CUstream_st *stream;  /* that it is in */
    bool contested;              /* not all operations of other streams come before it */
    bool after_failure;          /* of a launch whose output it may miss: reads of what nobody wrote are not told */
    unsigned most_resident;      /* so many clusters may have begun and not ended, or 0: as many as there is room for */
    uint64_t step, offset;       /* cluster i runs as number (i * step + offset) % (blocks / cluster) */
    uint64_t seed;               /* of the order of warps; 0: each in turn */
    /* Its blocks run all at once, each on its own worker, and may wait for one another (collectives/grid.c). */
    bool cooperative;
    uint64_t blocks_waiting, blocks_done, grid_barriers;
    struct worker **workers;
    int worker_count;
};

/* What the TMA does beside the threads, as the meter counts it. */
enum tensor_traffic { TENSOR_LOAD, TENSOR_STORE, TENSOR_REDUCTION, TENSOR_TRAFFIC };

/* ---- what each layer keeps of the block that runs; first what an access touches, then what is large ---- */

/* meter/ */
struct worker_meter {
    bool on; /* the block is counted, watched or both: its requests are put together */
    bool counted, watched;
    struct meter *counts; /* of the launch; NULL before the first */
    struct log *logs;     /* one for each thread */
};

/* memory/shared.c */
struct worker_shared {
    unsigned char *start; /* the dynamic part first, then the static arrays */
    size_t base;          /* from there to the dynamic part: 0, unless SIMT_SHARED_BASE=least */
    size_t promised;      /* the alignment that its declaration asks for; 0: no thread has come to one yet */
    struct cell *cells;
    uint64_t *settled;
    int array_count;
    struct static_array arrays[MAX_STATIC_ARRAYS];
    size_t used, dirty; /* bytes: what is given out, whether or not it is accessed; what blocks have left to clear */
};

/* memory/, the shadow */
struct worker_shadow {
    uint64_t owner, shared_owner;                          /* upper bits of the stamps of the block */
    uint64_t settled_global, settled_shared, last_settled; /* memory/shadow.h; the last one given out to shared memory */
    uint32_t barrier_clock;                                /* the clock of all its threads after its last barrier */
    unsigned suspect_count, access_width;
    unsigned widest;          /* simt_scope of the fences, releases and acquires that the block has executed, or 0 */
    bool block_synchronises;  /* it has made an atomic or volatile access */
    _Atomic int *sector_lock; /* of the global cells that it updates at this moment, or NULL */
    struct unwritten {        /* the first read, since the last barrier, of a word that nobody had written by then */
        uintptr_t address;
        const void *pc;
        struct thread *thread; /* NULL: none */
        bool shared;
    } unwritten;
    struct shadow_notes *notes; /* memory/judge.h: what messages need to know */
};

/* hooks/: the allocation that an access site found last: a site nearly always stays in one array. */
enum { SITES = 256 };
struct worker_hooks {
    struct site_memory {
        uintptr_t start;
        size_t bytes;
        struct cell *cells;
        uint64_t *settled;
        bool all_written, read_only;
    } sites[SITES];
};

/* collectives/ */
struct worker_barrier {
    unsigned arrived;
    int votes;
};

/* memory/async_shadow.c and collectives/: Hopper's instructions. Off in blocks that have executed none of them. */
struct worker_async {
    bool on;
    struct async_shadow *shadow;
    struct async_work *work;
};

/* memory/distributed.c, collectives/cluster.c: the other blocks of the cluster, if there are some, run on the same CPU thread. */
struct worker_cluster {
    struct worker *next; /* of rank 1 more, of the last one the first; or NULL */
    unsigned rank;
    unsigned arrived; /* at the barrier of the cluster, of the block's threads that have not returned */
    uint64_t round;
    const struct thread *last; /* to return */
};

/* scheduler/ */
struct worker_watchdog {
    _Atomic uint64_t progress;        /* threads that have returned or come to a barrier or a collective */
    _Atomic int64_t block_started_ns; /* 0: idle, or its block has failed */
};

/* One CPU thread that runs blocks, one at a time. */
struct worker {
    struct launch *launch;
    struct thread *threads;
    struct worker_meter meter;
    struct worker_shared shared;
    struct worker_shadow shadow;
    struct worker_hooks hooks;
    struct worker_barrier barrier;
    struct worker_async async;
    struct worker_cluster cluster;
    struct worker_watchdog watchdog;
    struct worker_signal *signal; /* scheduler/scheduler.h */

    int number;                /* from 0 */
    struct worker *second;     /* for a cluster's next block, or NULL before there is one */
    uint64_t generation;       /* of the launches that were over when it began */
    clockid_t processor_clock; /* what the processor has given to it */
    fcontext_t scheduler;
    bool on_fiber; /* a CUDA thread runs, not the scheduler */
    bool parked;   /* its block waits for other blocks */
    unsigned stack_count;
    unsigned spins; /* accesses that may be waiting for another thread */
    struct uint3 block_index;
    uint64_t block_number; /* in the grid, x fastest */
    unsigned alive;        /* threads of the block that have not returned */
    struct warp warps[MAX_BLOCK_THREADS / WARP_SIZE];
};

/* A number of a thread, as stamps hold it, within its block; of its block within the cluster. */
static inline unsigned index_of_number(const struct launch *launch, unsigned number) {
    return launch->stride != 0 ? number % launch->stride : number;
}
static inline unsigned rank_of_number(const struct launch *launch, unsigned number) {
    return launch->stride != 0 ? number / launch->stride : 0;
}

/* By the linker: where the program begins, or the shared library that holds kernels and this runtime, and where it ends. */
extern const char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

/* Compiled by simt-nvcc --confined: it may try to deceive. */
extern const char __start_simt_confined[] __attribute__((weak));
#define IS_CONFINED (__start_simt_confined != NULL)
/* A text that a kernel hands over: of confined code, one of the program's. */
#define TEXT_OF_KERNEL(text)                                                                                                   \
    (IS_CONFINED && (uintptr_t)(text) - (uintptr_t)__ehdr_start >= (uintptr_t)(_end - __ehdr_start) ? "?" : (text))
static inline struct place place_in_kernel(const char *what, const char *file, int line) {
    return (struct place){TEXT_OF_KERNEL(what), TEXT_OF_KERNEL(file), line};
}

extern _Thread_local struct worker *simt_worker;                          /* NULL on host threads */
extern _Thread_local struct uint3 threadIdx, blockIdx, blockDim, gridDim; /* of the running thread; constants to a kernel */
extern _Thread_local struct thread *simt_self;                            /* NULL outside a kernel */
/* The furthest basic block that the running thread has entered since its last access, or since it met other lanes; after
 * simt_run_in_step() and in blocks that are counted its negative, so that the hook of basic blocks makes one comparison for
 * all of them. */
extern _Thread_local intptr_t simt_furthest;
extern bool simt_counts_blocks;                 /* the meter is on: basic blocks are counted */
extern _Thread_local uintptr_t simt_last_block; /* the basic block that was entered last */

static inline struct worker *worker_of_rank(struct worker *worker, unsigned rank) { /* in its cluster */
    while (worker->cluster.rank != rank) worker = worker->cluster.next;
    return worker;
}
static inline struct worker *worker_numbered(unsigned number) { /* of a thread of this block or of its cluster */
    return worker_of_rank(simt_worker, rank_of_number(simt_worker->launch, number));
}
static inline struct thread *thread_numbered(unsigned number) {
    return &worker_numbered(number)->threads[index_of_number(simt_worker->launch, number)];
}
static inline struct warp *warp_numbered(unsigned number) {
    return &worker_numbered(number)->warps[index_of_number(simt_worker->launch, number) / WARP_SIZE];
}
/* Addresses of shared memory as PTX has them: an offset into the block's own, or one into that of the block of some rank. */
enum { CLUSTER_WINDOW = 1 << 24 };
static inline size_t cluster_address(size_t offset, unsigned rank) { return (rank + 1) * (size_t)CLUSTER_WINDOW + offset; }
/* Whose it is, or NULL where the cluster has no such block; what is left is the offset. */
struct worker *shared_worker_of(size_t *address);
/* By the scheduler: what runs next is of this worker's block. */
static inline void enter_block(struct worker *worker) {
    simt_worker = worker;
    blockIdx = worker->block_index;
}

static inline uint32_t relative_pc(const void *pc) { return (uint32_t)((uintptr_t)pc - (uintptr_t)__ehdr_start); }
static inline const void *absolute_pc(uint32_t relative) { return __ehdr_start + relative; }

/* ---- one fiber for another ---- */

/* By the scheduler: let the thread run until it waits or is done. */
void fiber_resume(struct worker *worker, struct thread *thread);
extern struct transfer jump_fcontext(fcontext_t to, void *data);
/* By the running thread: let others run until somebody makes it READY again. Inline: a return after a switch is one that the CPU
 * does not foresee. */
static inline void fiber_wait(enum thread_state state) {
    struct thread *self = simt_self;
    self->state = state;
    if (state != AT_LOG) self->judged_bytes = self->seen_bytes = 0; /* what was judged must follow at once */
    simt_worker->scheduler = jump_fcontext(simt_worker->scheduler, NULL).from;
}
/* Back to the scheduler for good: the launch has failed. Nothing happens when the scheduler itself calls it. */
void fiber_abandon(struct worker *worker);
/* Stacks are made as blocks need them, each above a page that stops an overflow; false when there is no memory. */
bool fiber_ensure_stacks(struct worker *worker, unsigned count);
