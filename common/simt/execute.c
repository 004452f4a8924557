/* Execution: blocks are spread over CPU threads ("workers"); a block stays on one worker, and each of its CUDA threads is
 * a fiber there. A fiber runs until it ends or must wait for others, at a barrier or a warp collective; then the
 * scheduler, run_block(), goes on with the next.
 */
#define _GNU_SOURCE
#include "simt.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

_Thread_local struct worker *simt_worker;
_Thread_local struct thread *simt_self;
_Thread_local uintptr_t simt_furthest, simt_last_block;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- built-in variables -------------------------------------------------------------------------------------------- */

struct uint3 simt_thread_index(void) {
    return simt_self->index;
}
struct uint3 simt_block_index(void) {
    return simt_worker->block_index;
}
struct uint3 simt_block_size(void) {
    return simt_worker->launch->block;
}
struct uint3 simt_grid_size(void) {
    return simt_worker->launch->grid;
}
unsigned simt_lane(void) { return simt_self->linear % WARP_SIZE; }

/* ---- shared memory ------------------------------------------------------------------------------------------------- */

/* No worker: an extern __shared__ array outside of any function, which asks before main(). */
void *simt_dynamic_shared(void) { return simt_worker != NULL ? simt_worker->shared : NULL; }

/* The first thread of a block that reaches a __shared__ declaration places the array; the others find it. Arrays lie
 * apart, so that an index past the end of one does not land in the next unnoticed. */
void *simt_static_shared(const void *declaration, size_t bytes, const char *name, size_t element_bytes, size_t columns,
                         const char *file, int line) {
    enum { GAP = 128 };
    struct worker *worker = simt_worker;
    size_t static_bytes = 0;
    for (int i = 0; i < worker->array_count; i++) {
        if (worker->arrays[i].declaration == declaration) return worker->shared + worker->arrays[i].offset;
        static_bytes += worker->arrays[i].bytes;
    }
    static_bytes += bytes;
    size_t offset = (worker->shared_used + GAP + GAP - 1) / GAP * GAP;
    if (static_bytes > SHARED_BYTES_DEFAULT ||
        static_bytes + worker->launch->dynamic_shared_bytes > worker->launch->shared_limit ||
        worker->array_count == MAX_STATIC_ARRAYS)
        simt_fail(
            cudaErrorLaunchFailure,
            "%s:%d: the __shared__ array %s brings the block to %zu bytes of static shared memory in %d arrays, and "
            "%zu bytes with the dynamic part: at most %d bytes and %d arrays may be declared, and all of it may "
            "have %zu bytes (cudaFuncSetAttribute allows more)",
            file, line, name, static_bytes, worker->array_count + 1,
            static_bytes + worker->launch->dynamic_shared_bytes, SHARED_BYTES_DEFAULT, MAX_STATIC_ARRAYS,
            worker->launch->shared_limit);
    worker->arrays[worker->array_count++] =
        (struct static_array){declaration, name, offset, bytes, element_bytes, columns};
    worker->shared_used = offset + bytes;
    return worker->shared + offset;
}

static void count_requests(struct worker *worker, struct thread *first_lane, unsigned lanes);
static void count_all_requests(struct worker *worker);

/* ---- waiting ------------------------------------------------------------------------------------------------------- */

static void yield(void) { simt_worker->scheduler = jump_fcontext(simt_worker->scheduler, NULL).from; }

static bool same_place(const struct place *a, const struct place *b) {
    return a->line == b->line && a->what == b->what && strcmp(a->file, b->file) == 0;
}

/* Barriers match by source line: two different __syncthreads() met by parts of a block are an error, though a card's
 * barrier counter would let them pass for one another. */
int simt_block_barrier(const char *name, int predicate, const char *file, int line) {
    struct worker *worker = simt_worker;
    struct thread *self = simt_self;
    self->place = (struct place){name, file, line};
    self->last_pc = __builtin_return_address(0);
    simt_furthest = 0; /* lanes that wait here together go on together */
    if (worker->at_barrier++ == 0) worker->barrier_votes = 0;
    worker->barrier_votes += predicate;
    if (worker->at_barrier < worker->launch->threads) {
        self->state = AT_BARRIER;
        yield();
        return (int)self->result;
    }
    for (unsigned i = 0; i < worker->launch->threads; i++) {
        struct thread *other = &worker->threads[i];
        if (!same_place(&other->place, &self->place))
            simt_fail(
                cudaErrorLaunchFailure,
                "divergent barrier: this thread waits at %s in %s:%d while thread (%u,%u,%u) waits at %s in %s:%d; "
                "every thread of a block must reach the same barrier",
                name, file, line, other->index.x, other->index.y, other->index.z, other->place.what, other->place.file,
                other->place.line);
        other->state = READY;
        other->result = (uint64_t)worker->barrier_votes;
    }
    worker->at_barrier = 0;
    shadow_barrier(worker);
    if (worker->metering) {
        count_all_requests(worker);
        meter_event(worker, name, file, line);
    }
    return worker->barrier_votes;
}

/* When every lane that `self` waits for has arrived at the same collective: exchange, and let all of them go on. */
static void try_collective(struct warp *warp, struct thread *self) {
    unsigned lanes = self->mask & warp->live;
    if ((warp->waiting & lanes) != lanes) return;
    struct thread *first = self - self->linear % WARP_SIZE;
    unsigned ballot = 0;
    for (unsigned left = lanes; left != 0; left &= left - 1) {
        struct thread *other = first + __builtin_ctz(left);
        if (other->operation != self->operation || other->mask != self->mask ||
            !same_place(&other->place, &self->place))
            return;
        if (other->value != 0) ballot |= left & -left;
    }
    for (unsigned left = lanes; left != 0; left &= left - 1) {
        struct thread *other = first + __builtin_ctz(left);
        if (other->operation == SIMT_SHUFFLE) {
            int source = other->source_lane;
            if (source < 0 || source >= WARP_SIZE || (lanes >> source & 1) == 0) {
                simt_self = other;
                simt_fail(cudaErrorLaunchFailure,
                          "%s:%d: %s: lane %u reads lane %d, which is not there: the mask is %#010x, and of its lanes "
                          "%#010x run",
                          other->place.file, other->place.line, other->place.what, other->linear % WARP_SIZE, source,
                          other->mask, lanes);
                return;
            }
            other->result = first[source].value;
        } else {
            other->result = ballot;
        }
        other->state = READY;
    }
    warp->waiting &= ~lanes;
    shadow_collective(warp, first, lanes);
    if (simt_worker->metering) {
        count_requests(simt_worker, first, lanes);
        meter_event(simt_worker, self->place.what, self->place.file, self->place.line);
    }
}

uint64_t simt_warp_collective(enum simt_warp_operation operation, const char *name, unsigned mask, uint64_t value,
                              int source_lane, const char *file, int line) {
    struct thread *self = simt_self;
    struct warp *warp = &simt_worker->warps[self->linear / WARP_SIZE];
    unsigned lane = self->linear % WARP_SIZE;
    if ((mask >> lane & 1) == 0)
        simt_fail(cudaErrorLaunchFailure, "%s:%d: %s: lane %u calls it with mask %#010x, which does not name that lane",
                  file, line, name, lane, mask);
    self->place = (struct place){name, file, line};
    self->last_pc = __builtin_return_address(0);
    simt_furthest = 0; /* lanes that wait here together go on together */
    self->operation = operation;
    self->mask = mask;
    self->value = value;
    self->source_lane = source_lane;
    self->state = AT_WARP;
    warp->waiting |= 1u << lane;
    try_collective(warp, self);
    if (self->state == AT_WARP) yield();
    return self->result;
}

void simt_fence(void) {
    atomic_store_explicit(&simt_worker->launch->fenced, true, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

/* A thread that spins on a flag would keep its CPU thread for ever, and with it the threads that it waits for. */
void simt_give_way(void) {
    enum { SPINS = 32 };
    if (simt_self == NULL || ++simt_worker->spins % SPINS != 0) return;
    simt_self->state = GAVE_WAY;
    yield();
}

unsigned simt_active_mask(void) { return simt_worker->warps[simt_self->linear / WARP_SIZE].live; }

/* ---- the meter's view: warps ----------------------------------------------------------------------------------------- */

/* Called by every access of a metered block. The lanes of a warp run one after the other here, so each keeps a log, and
 * count_requests() puts together what a card's warp does at once. */
void simt_log_access(uintptr_t address, size_t bytes, enum access_kind kind, enum memory_space space, const void *pc) {
    struct thread *self = simt_self;
    if (self->log_length == LOG_SIZE) {
        self->state = AT_ACCESS;
        yield();
    }
    uint32_t via = simt_furthest > (uintptr_t)pc ? relative_pc((const void *)simt_furthest) : 0;
    simt_furthest = 0;
    self->log[(self->log_start + self->log_length++) % LOG_SIZE] =
        (struct access){address, relative_pc(pc), via, 0, (uint16_t)bytes, (uint8_t)kind, (uint8_t)space};
}

void simt_log_destination(size_t shared_offset) {
    struct thread *self = simt_self;
    self->log[(self->log_start + self->log_length - 1) % LOG_SIZE].to = (uint32_t)shared_offset;
}

/* Take from the logs of these lanes one request after the other: of the accesses that stand first in the logs, those at
 * the lowest address of code. The compiler lays code out in the order of the source, so lanes that have left a loop or
 * skipped a branch wait behind it until the others have come as far: where a card, too, brings them together again.
 * A lane that goes back to a loop's head first waits where the loop's body ended, its `via`, like the others; otherwise
 * a lane that has left an inner loop would be put together, a round of the outer loop later, with lanes still in it.
 * Ends when the logs are empty, or when one is whose thread has stopped only for want of room and may have more to add.
 */
static void count_requests(struct worker *worker, struct thread *first_lane, unsigned lanes) {
    unsigned live = lanes; /* that have not returned as far as the count has come */
    for (;;) {
        uintptr_t addresses[WARP_SIZE];
        uint32_t destinations[WARP_SIZE];
        struct access *lowest = NULL;
        uint32_t lowest_place = UINT32_MAX;
        unsigned at_lowest = 0;
        bool alike = true; /* all that stand at the lowest place go on to the same access */
        for (unsigned left = lanes; left != 0; left &= left - 1) {
            unsigned lane = (unsigned)__builtin_ctz(left);
            struct thread *thread = &first_lane[lane];
            if (thread->log_length == 0) {
                if (thread->state == AT_ACCESS) return;
                if (thread->state == DONE) live &= ~(1u << lane);
                lanes &= ~(1u << lane);
                continue;
            }
            struct access *access = &thread->log[thread->log_start];
            uint32_t place = access->via != 0 ? access->via : access->pc;
            if (place > lowest_place) continue;
            if (place < lowest_place) {
                lowest = access;
                lowest_place = place;
                at_lowest = 0;
                alike = true;
            }
            alike = alike && access->pc == lowest->pc;
            at_lowest |= 1u << lane;
            addresses[lane] = access->address;
            destinations[lane] = access->to;
        }
        if (at_lowest == 0) return;
        if (lowest->via != 0 && !(alike && at_lowest == lanes)) { /* past the loop's end, and look again */
            for (unsigned left = at_lowest; left != 0; left &= left - 1) {
                struct thread *thread = &first_lane[__builtin_ctz(left)];
                thread->log[thread->log_start].via = 0;
            }
            continue;
        }
        meter_request(worker, addresses, destinations, at_lowest, live, lowest);
        for (unsigned left = at_lowest; left != 0; left &= left - 1) {
            struct thread *thread = &first_lane[__builtin_ctz(left)];
            thread->log_start = (thread->log_start + 1) % LOG_SIZE;
            thread->log_length--;
        }
    }
}

/* No lane of the warp can go on: make room in its logs. False when that was not what they waited for. */
static bool make_room(struct worker *worker, unsigned first, unsigned end) {
    struct thread *first_lane = &worker->threads[first];
    unsigned lanes = end - first == WARP_SIZE ? 0xffffffffu : (1u << (end - first)) - 1;
    bool any = false;
    for (unsigned i = first; i < end && !any; i++) any = worker->threads[i].state == AT_ACCESS;
    if (!any) return false;
    count_requests(worker, first_lane, lanes);
    for (unsigned i = first; i < end; i++)
        if (worker->threads[i].state == AT_ACCESS && worker->threads[i].log_length < LOG_SIZE)
            worker->threads[i].state = READY;
    return true;
}

/* All that the block has logged: at its barriers, before any thread goes past, and at its end. */
static void count_all_requests(struct worker *worker) {
    for (unsigned first = 0; first < worker->launch->threads; first += WARP_SIZE) {
        unsigned left = worker->launch->threads - first;
        count_requests(worker, &worker->threads[first], left >= WARP_SIZE ? 0xffffffffu : (1u << left) - 1);
    }
}

/* ---- atomics ------------------------------------------------------------------------------------------------------- */

static uint64_t combine(enum simt_atomic_operation operation, enum simt_atomic_type type, uint64_t old,
                        uint64_t operand, uint64_t compare) {
    union {
        uint64_t bits;
        float f;
        double d;
        int32_t i;
        uint32_t u;
    } a = {old}, b = {operand}, r = {0};
    if (operation == SIMT_EXCHANGE) return operand;
    if (operation == SIMT_COMPARE_AND_SWAP) return old == compare ? operand : old;
    if (operation == SIMT_AND) return old & operand;
    if (operation == SIMT_OR) return old | operand;
    if (operation == SIMT_XOR) return old ^ operand;
    bool take_new = false;
    switch (type) {
    case SIMT_FLOAT:
        r.f = a.f + b.f;
        take_new = operation == SIMT_MIN ? b.f < a.f : b.f > a.f;
        break;
    case SIMT_DOUBLE:
        r.d = a.d + b.d;
        take_new = operation == SIMT_MIN ? b.d < a.d : b.d > a.d;
        break;
    case SIMT_INT:
        r.u = a.u + b.u;
        take_new = operation == SIMT_MIN ? b.i < a.i : b.i > a.i;
        break;
    case SIMT_UNSIGNED:
        r.u = a.u + b.u;
        take_new = operation == SIMT_MIN ? b.u < a.u : b.u > a.u;
        break;
    case SIMT_LONG:
        r.bits = old + operand;
        take_new = operation == SIMT_MIN ? operand < old : operand > old;
        break;
    }
    if (operation == SIMT_ADD) return r.bits;
    return take_new ? operand : old;
}

uint64_t simt_atomic(enum simt_atomic_operation operation, enum simt_atomic_type type, void *address, uint64_t operand,
                     uint64_t compare) {
    bool is_wide = type == SIMT_LONG || type == SIMT_DOUBLE;
    simt_check_access(address, is_wide ? 8 : 4, ACCESS_ATOMIC, true, __builtin_return_address(0));
    if (operation == SIMT_COMPARE_AND_SWAP || operation == SIMT_EXCHANGE) simt_give_way(); /* perhaps a lock */
    if (is_wide) {
        uint64_t *cell = address, old = __atomic_load_n(cell, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(cell, &old, combine(operation, type, old, operand, compare), true,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
        return old;
    }
    uint32_t *cell = address, old = __atomic_load_n(cell, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(cell, &old, (uint32_t)combine(operation, type, old, operand, compare), true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return old;
}

void simt_reduce_add4(float *address, const float operand[4]) {
    simt_check_access(address, 4 * sizeof *address, ACCESS_ATOMIC, true, __builtin_return_address(0));
    for (int i = 0; i < 4; i++) {
        uint32_t *cell = (uint32_t *)(void *)&address[i], old = __atomic_load_n(cell, __ATOMIC_RELAXED), bits;
        memcpy(&bits, &operand[i], sizeof bits);
        while (!__atomic_compare_exchange_n(cell, &old, (uint32_t)combine(SIMT_ADD, SIMT_FLOAT, old, bits, 0), true,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
    }
}

/* ---- one block ------------------------------------------------------------------------------------------------------ */

static void fiber_main(struct transfer from) {
    simt_worker->scheduler = from.from;
    simt_worker->launch->run(simt_worker->launch->arguments);
    simt_self->state = DONE;
    jump_fcontext(simt_worker->scheduler, NULL);
}

/* Stacks lie whole pages apart. If all began at the same place of their page, the lanes of a warp would push one another
 * out of the same few lines of the CPU's cache at every switch. */
static size_t stack_colour(const struct thread *thread) { return thread->linear % WARP_SIZE * 320; }

static void resume(struct worker *worker, struct thread *thread) {
    if (thread->state == FRESH)
        thread->context = make_fcontext((void *)(thread->stack + STACK_BYTES - stack_colour(thread)),
                                        STACK_BYTES - stack_colour(thread), fiber_main);
    thread->state = READY;
    simt_self = thread;
    simt_furthest = thread->furthest;
    worker->on_fiber = true;
    struct transfer back = jump_fcontext(thread->context, NULL);
    worker->on_fiber = false;
    thread->furthest = simt_furthest;
    simt_self = NULL;
    thread->context = back.from;
    if (thread->state != DONE) return;

    worker->alive--;
    struct warp *warp = &worker->warps[thread->linear / WARP_SIZE];
    warp->live &= ~(1u << thread->linear % WARP_SIZE);
    struct thread *first = thread - thread->linear % WARP_SIZE;
    for (unsigned left = warp->waiting; left != 0; left &= left - 1)
        if (first[__builtin_ctz(left)].state == AT_WARP) try_collective(warp, first + __builtin_ctz(left));
}

/* No thread can go on and some are not done: say who waits where, and for whom. */
static void explain_deadlock(struct worker *worker) {
    const struct thread *waiting = NULL, *missing = NULL, *returned = NULL;
    unsigned at_same = 0;
    for (unsigned i = 0; i < worker->launch->threads; i++) {
        const struct thread *thread = &worker->threads[i];
        if (thread->state == DONE) {
            if (returned == NULL) returned = thread;
        } else if (waiting == NULL) {
            waiting = thread;
        }
    }
    for (unsigned i = 0; i < worker->launch->threads; i++) {
        const struct thread *thread = &worker->threads[i];
        if (thread->state == DONE) continue;
        if (same_place(&thread->place, &waiting->place))
            at_same++;
        else if (missing == NULL)
            missing = thread;
    }
    const struct place *place = &waiting->place;
    if (missing != NULL) {
        simt_fail(
            cudaErrorLaunchFailure,
            "divergent barrier: %u threads wait at %s in %s:%d, thread (%u,%u,%u) among them, but thread (%u,%u,%u) "
            "waits at %s in %s:%d: a barrier or warp collective inside a branch or loop that not all of its threads "
            "take",
            at_same, place->what, place->file, place->line, waiting->index.x, waiting->index.y, waiting->index.z,
            missing->index.x, missing->index.y, missing->index.z, missing->place.what, missing->place.file,
            missing->place.line);
    } else if (returned != NULL) {
        bool accessed = returned->last_pc != NULL;
        char *line = source_line(returned->last_pc);
        simt_fail(cudaErrorLaunchFailure,
                  "barrier not reached: %u threads wait at %s in %s:%d, thread (%u,%u,%u) among them, but thread "
                  "(%u,%u,%u) has returned from the kernel (%s%s): do not return before a barrier",
                  at_same, place->what, place->file, place->line, waiting->index.x, waiting->index.y, waiting->index.z,
                  returned->index.x, returned->index.y, returned->index.z,
                  accessed ? "its last access to memory was at " : "it made no access to memory", accessed ? line : "");
        free(line);
    } else {
        simt_fail(cudaErrorLaunchFailure, "%u threads wait at %s in %s:%d and none can go on: their masks differ",
                  at_same, place->what, place->file, place->line);
    }
}

/* Fiber stacks are made as blocks need them, each above a page that stops an overflow. */
static bool ensure_stacks(struct worker *worker, unsigned count) {
    size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    for (; worker->stack_count < count; worker->stack_count++) {
        unsigned char *mapping =
            mmap(NULL, STACK_BYTES + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapping == MAP_FAILED) return false;
        mprotect(mapping, guard, PROT_NONE);
        worker->threads[worker->stack_count].stack = (uintptr_t)(mapping + guard);
    }
    return true;
}

static void explain_signal(struct worker *worker) {
    char *line = source_line((const char *)worker->signal_pc + 1);
    uintptr_t address = worker->signal_address;
    /* Stopped inside the runtime: what the kernel asked of it last is the place. */
    enum { HOOK_BYTES = 64 }; /* of code, more than the hook of basic blocks has */
    bool in_block_hook = (uintptr_t)worker->signal_pc - (uintptr_t)__sanitizer_cov_trace_pc < HOOK_BYTES;
    const void *asked = in_block_hook ? (const void *)simt_last_block : simt_self->last_pc;
    if (strstr(line, ".cu:") == NULL && asked != NULL) {
        free(line);
        line = source_line(asked);
    }
    if (worker->signal == SIGUSR2)
        simt_fail(cudaErrorLaunchTimeout,
                  "%s: a thread was still running here when the block's time was up: an endless loop? (the watchdog's "
                  "seconds are set by SIMT_WATCHDOG_SECONDS)",
                  line);
    else if (worker->signal == SIGFPE)
        simt_fail(cudaErrorLaunchFailure, "%s: integer division by zero", line);
    else if (simt_self->stack - address <= (uintptr_t)sysconf(_SC_PAGESIZE))
        simt_fail(cudaErrorLaunchFailure,
                  "%s: the thread's local memory (%d bytes) is full: local arrays too large, or "
                  "endless recursion",
                  line, STACK_BYTES);
    else
        simt_fail(cudaErrorIllegalAddress, "%s: access to address %#lx, which is no device memory", line,
                  (unsigned long)address);
}

static void start_block(struct worker *worker, uint64_t number) {
    const struct launch *launch = worker->launch;
    worker->block_index.x = (unsigned)(number % launch->grid.x);
    worker->block_index.y = (unsigned)(number / launch->grid.x % launch->grid.y);
    worker->block_index.z = (unsigned)(number / launch->grid.x / launch->grid.y);
    if (worker->shared_used > worker->shared_dirty) worker->shared_dirty = worker->shared_used;
    if (launch->dynamic_shared_bytes > worker->shared_dirty) worker->shared_dirty = launch->dynamic_shared_bytes;
    memset(worker->shared, POISON, worker->shared_dirty);
    worker->shared_used = worker->shared_dirty = launch->dynamic_shared_bytes;
    worker->array_count = 0;
    worker->alive = launch->threads;
    worker->at_barrier = 0;

    struct uint3 size = launch->block;
    for (unsigned i = 0; i < launch->threads; i++) {
        struct thread *thread = &worker->threads[i];
        thread->state = FRESH;
        thread->linear = i;
        thread->index = (struct uint3){i % size.x, i / size.x % size.y, i / size.x / size.y};
        thread->last_pc = NULL;
        thread->furthest = 0;
        thread->place = (struct place){"", "", 0};
    }
    for (unsigned first = 0; first < launch->threads; first += WARP_SIZE) {
        unsigned lanes = launch->threads - first;
        worker->warps[first / WARP_SIZE].live = lanes >= WARP_SIZE ? 0xffffffffu : (1u << lanes) - 1;
        worker->warps[first / WARP_SIZE].waiting = 0;
    }
    shadow_start_block(worker, number);
    worker->metering = launch->metered && number % launch->meter_every == 0;
}

/* A warp runs until all its lanes wait for other warps or are done, then the next: what a warp touches stays in cache. */
static void run_block(struct worker *worker, uint64_t number) {
    struct launch *launch = worker->launch;
    start_block(worker, number);
    atomic_store_explicit(&worker->block_started_ns, now_ns(), memory_order_relaxed);
    if (sigsetjmp(worker->escape, 1) != 0) {
        explain_signal(worker);
        simt_self = NULL;
        return;
    }
    while (worker->alive > 0) {
        bool any_ran = false;
        for (unsigned i = 0; i < launch->threads; i++)
            if (worker->threads[i].state == GAVE_WAY) worker->threads[i].state = READY;
        for (unsigned first = 0; first < launch->threads; first += WARP_SIZE) {
            unsigned end = first + WARP_SIZE < launch->threads ? first + WARP_SIZE : launch->threads;
            for (bool warp_ran = true; warp_ran;) {
                warp_ran = false;
                for (unsigned i = first; i < end; i++) {
                    struct thread *thread = &worker->threads[i];
                    if (thread->state > READY) continue;
                    resume(worker, thread);
                    if (atomic_load_explicit(&launch->failed, memory_order_relaxed)) return;
                    warp_ran = any_ran = true;
                }
                if (!warp_ran && worker->metering) warp_ran = make_room(worker, first, end);
            }
        }
        if (!any_ran) {
            explain_deadlock(worker);
            return;
        }
    }
    shadow_report_unwritten(worker);
    if (worker->metering) count_all_requests(worker);
}

/* ---- workers --------------------------------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    struct worker **workers;
    int count, busy;
    uint64_t generation;
    struct launch *launch;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

/* A fault or the watchdog's signal in a kernel: leave the fiber for run_block(), which explains. Elsewhere the signal
 * has its ordinary effect. */
static void on_signal(int number, siginfo_t *info, void *data) {
    const ucontext_t *context = data;
    struct worker *worker = simt_worker;
    if (worker == NULL || !worker->on_fiber) {
        if (number != SIGUSR2) signal(number, SIG_DFL);
        return;
    }
    worker->signal = number;
    worker->signal_address = number == SIGSEGV || number == SIGBUS ? (uintptr_t)info->si_addr : 0;
#if defined(__x86_64__)
    worker->signal_pc = (const void *)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    worker->signal_pc = (const void *)context->uc_mcontext.pc;
#endif
    worker->on_fiber = false; /* no second signal may interrupt the explanation */
    siglongjmp(worker->escape, 1);
}

static void catch_signals(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigemptyset(&action.sa_mask);
    int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGUSR2};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaction(numbers[i], &action, NULL);
}

static double watchdog_seconds(void) {
    const char *text = getenv("SIMT_WATCHDOG_SECONDS");
    double seconds = text != NULL ? strtod(text, NULL) : 0.0;
    return seconds > 0.0 ? seconds : 60.0;
}

static void *worker_main(void *data) {
    struct worker *worker = data;
    simt_worker = worker;
    stack_t stack = {.ss_sp = worker->signal_stack, .ss_size = 1 << 16};
    sigaltstack(&stack, NULL);
    uint64_t seen = 0;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.generation == seen) pthread_cond_wait(&pool.work, &pool.lock);
        seen = pool.generation;
        struct launch *launch = pool.launch;
        pthread_mutex_unlock(&pool.lock);

        worker->launch = launch;
        memset(worker->site_cache, 0, sizeof worker->site_cache);
        if (ensure_stacks(worker, launch->threads)) {
            while (!atomic_load(&launch->failed)) {
                uint64_t number = atomic_fetch_add(&launch->next_block, 1);
                if (number >= launch->blocks) break;
                run_block(worker, (number * launch->step + launch->offset) % launch->blocks);
            }
        } else {
            simt_fail(cudaErrorMemoryAllocation, "no memory for the stacks of %u threads", launch->threads);
        }
        atomic_store(&worker->block_started_ns, 0);

        pthread_mutex_lock(&pool.lock);
        if (--pool.busy == 0) pthread_cond_signal(&pool.done);
    }
    return NULL;
}

static pthread_t *worker_threads;

static void *allocate_or_die(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (memory == NULL) {
        fputs("simulated device: out of memory\n", stderr);
        abort();
    }
    return memory;
}

static void start_workers(void) {
    const char *wanted = getenv("SIMT_THREADS");
    long count = wanted != NULL ? strtol(wanted, NULL, 10) : sysconf(_SC_NPROCESSORS_ONLN);
    if (count < 1) count = 1;
    catch_signals();
    pool.workers = allocate_or_die((size_t)count * sizeof *pool.workers);
    worker_threads = allocate_or_die((size_t)count * sizeof *worker_threads);
    for (long i = 0; i < count; i++) {
        struct worker *worker = allocate_or_die(sizeof *worker);
        worker->threads = allocate_or_die(MAX_BLOCK_THREADS * sizeof *worker->threads);
        worker->shared = mmap(NULL, 2 * SHARED_BYTES_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        worker->shared_cells = mmap(NULL, SHARED_BYTES_MAX / 4 * sizeof(struct cell), PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        worker->meter = meter_create();
        worker->signal_stack = allocate_or_die(1 << 16);
        pool.workers[i] = worker;
        if (worker->shared == MAP_FAILED || worker->shared_cells == MAP_FAILED ||
            pthread_create(&worker_threads[i], NULL, worker_main, worker) != 0) {
            fputs("simulated device: cannot start its threads\n", stderr);
            abort();
        }
        pool.count++;
    }
}

static void wake_stuck_workers(int64_t limit_ns) {
    for (int i = 0; i < pool.count; i++) {
        int64_t started = atomic_load(&pool.workers[i]->block_started_ns);
        if (started != 0 && now_ns() - started > limit_ns) pthread_kill(worker_threads[i], SIGUSR2);
    }
}

void simt_run(struct launch *launch) {
    int64_t limit_ns = (int64_t)(watchdog_seconds() * 1e9);
    pthread_mutex_lock(&pool.lock);
    if (pool.count == 0) {
        pthread_mutex_unlock(&pool.lock);
        start_workers();
        pthread_mutex_lock(&pool.lock);
    }
    pool.launch = launch;
    pool.busy = pool.count;
    pool.generation++;
    pthread_cond_broadcast(&pool.work);
    while (pool.busy > 0) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&pool.done, &pool.lock, &until);
        wake_stuck_workers(limit_ns);
    }
    pthread_mutex_unlock(&pool.lock);
    if (launch->metered) meter_launch_done(launch, pool.workers, pool.count);
}
