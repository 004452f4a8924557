/* The simulated device from the inside: what its own files share.
 *
 *     memory.c   device memory: allocations between guard pages, and the question "whose address is this?"
 *     execute.c  blocks over CPU threads, a fiber for each CUDA thread, barriers and warp collectives, the watchdog
 *     hooks.c    the calls that -fsanitize=thread puts before every access of a kernel: each access is judged here
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

enum thread_state { FRESH, READY, AT_BARRIER, AT_WARP, DONE };

struct thread {
    fcontext_t context;
    enum thread_state state;
    struct uint3 index;
    unsigned linear;     /* x fastest, then y, z: consecutive numbers make a warp */
    uintptr_t stack;     /* lowest address */
    const void *last_pc; /* of the latest access: where a thread that has returned was last seen */

    struct place place; /* of the barrier or warp collective that it waits at */
    enum simt_warp_operation operation;
    unsigned mask;
    int source_lane;
    uint64_t value, result;
};

struct warp {
    unsigned live;    /* lanes that exist and have not returned */
    unsigned waiting; /* lanes in state AT_WARP */
};

struct static_array {
    const void *declaration; /* identifies the __shared__ declaration */
    const char *name;
    size_t offset, bytes; /* in the block's shared memory */
};

struct allocation {
    uintptr_t start;
    size_t bytes;
    void *mapping; /* with its guard pages */
    size_t mapping_bytes;
    int serial; /* counts cudaMalloc calls: what a message calls the allocation by */
};

struct launch {
    const char *name;
    struct uint3 grid, block;
    unsigned threads; /* in a block */
    size_t dynamic_shared_bytes;
    void (*run)(void *arguments);
    void *arguments;
    size_t arguments_bytes;
    uint64_t blocks;
    _Atomic uint64_t next_block;
    _Atomic bool failed;
};

/* One CPU thread that runs blocks, one at a time. */
struct worker {
    struct launch *launch;
    fcontext_t scheduler;
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

    /* The allocation that an access site found last: a site nearly always stays in one array. */
    struct {
        uintptr_t start;
        size_t bytes;
    } site_cache[256];
};

extern _Thread_local struct worker *simt_worker; /* NULL on host threads */
extern _Thread_local struct thread *simt_self;   /* NULL outside a kernel */

void simt_run(struct launch *launch);

/* ---- memory ---- */
void *memory_allocate(size_t bytes); /* NULL when there is not enough; contents are poison */
bool memory_free(void *pointer);
bool memory_contains(const void *pointer, size_t bytes); /* all inside one allocation */
void memory_free_all(void);
size_t memory_total(void), memory_in_use(void);
const struct allocation *memory_find(uintptr_t address);    /* the allocation that holds the byte, or NULL */
const struct allocation *memory_nearest(uintptr_t address); /* the last one that starts at or before it, or NULL */
bool memory_is_module_data(uintptr_t address, size_t bytes);
enum { POISON = 0xff }; /* as a float: NaN; as an int: -1 */

/* ---- hooks: judge one access of the running thread; pc is the return address of the call that stands for it ---- */
void simt_check_access(const void *pointer, size_t bytes, bool is_write, const void *pc);

/* ---- errors ---- */

/* End the running kernel with `error`: the text is kept and printed, the block is abandoned. Called from a fiber it
 * does not return; called from the scheduler it does. */
void simt_fail(cudaError_t error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "steps/01_naive/naive.cu:42" of a code address; the text is the caller's to free. Lines of the simulator's own headers
 * are passed over in favour of the kernel's line that they were inlined into. */
char *source_line(const void *pc);

cudaError_t simt_sticky_error(void);
void simt_set_error(cudaError_t error, const char *text); /* text NULL: not a kernel's failure, nothing is printed */
void simt_clear_error(void);

#endif
