/* Fibers, and the functions by which a running thread learns its own place. */
#include "machine.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern fcontext_t make_fcontext(void *stack_top, size_t bytes, void (*entry)(struct transfer));

_Thread_local struct worker *simt_worker;
_Thread_local struct thread *simt_self;
_Thread_local intptr_t simt_furthest;
bool simt_counts_blocks;
_Thread_local uintptr_t simt_last_block;

static void fiber_main(struct transfer from) {
    simt_worker->scheduler = from.from;
    simt_worker->launch->body(simt_worker->launch->arguments);
    simt_self->state = DONE;
    jump_fcontext(simt_worker->scheduler, NULL);
}

/* What a switch does not keep: there a lane could leave a value for the next one, as in a shuffle that nobody counts. */
static __attribute__((noipa, zero_call_used_regs("all"))) void forget_registers(void) {
#ifdef __x86_64__
    __asm__ volatile("fninit"); /* the flags of x87, too */
#endif
}

void fiber_resume(struct worker *worker, struct thread *thread) {
    if (thread->state == FRESH && IS_CONFINED) /* what another block's thread left there was loaded for nothing */
        memset((void *)thread->stack, 0x7B, STACK_BYTES);
    if (thread->state == FRESH)
        thread->context = make_fcontext((void *)(thread->stack + STACK_BYTES - stack_colour(thread)),
                                        STACK_BYTES - stack_colour(thread), fiber_main);
    thread->state = READY;
    simt_self = thread;
    threadIdx = thread->index;
    simt_furthest = thread->furthest;
    worker->on_fiber = true;
    if (IS_CONFINED) forget_registers();
    struct transfer back = jump_fcontext(thread->context, NULL);
    worker->on_fiber = false;
    thread->furthest = simt_furthest;
    simt_self = NULL;
    thread->context = back.from;
}

void fiber_abandon(struct worker *worker) {
    if (worker->on_fiber) jump_fcontext(worker->scheduler, NULL);
}

/* A thread that spins on a flag would keep its CPU thread for ever, and with it the threads that it waits for. */
void simt_give_way(void) {
    enum { SPINS = 32 };
    if (simt_self != NULL && ++simt_worker->spins % SPINS == 0) fiber_wait(GAVE_WAY);
}

bool fiber_ensure_stacks(struct worker *worker, unsigned count) {
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

/* ---- built-in variables ---- */

_Thread_local struct uint3 threadIdx, blockIdx, blockDim, gridDim;
unsigned simt_lane(void) { return simt_self->linear % WARP_SIZE; }

void simt_set_scope(enum simt_scope scope) {
    if (simt_self != NULL) simt_self->scope = (uint8_t)scope;
}

/* ---- addresses and clocks ---- */

int simt_is_shared(const void *pointer) { return (uintptr_t)pointer - (uintptr_t)simt_worker->shared.start < SHARED_BYTES_MAX; }
/* Kernels keep such an address in 32 bits: one of the block itself, one of a block of the cluster by its rank, or one of other
 * memory, which begins at ELSEWHERE: messages name the pointer that it was. */
enum { ELSEWHERE = 1 << 30 };
size_t simt_shared_address(const void *pointer) {
    size_t offset = (uintptr_t)pointer - (uintptr_t)simt_worker->shared.start;
    if (offset < SHARED_BYTES_MAX || (simt_worker->cluster.next == NULL && offset < ELSEWHERE)) return offset;
    FOR_EACH_BLOCK (of, simt_worker)
        if ((uintptr_t)pointer - (uintptr_t)of->shared.start < SHARED_BYTES_MAX)
            return cluster_address((uintptr_t)pointer - (uintptr_t)of->shared.start, of->cluster.rank);
    simt_self->elsewhere = (uintptr_t)pointer;
    return ELSEWHERE;
}
void *simt_shared_pointer(size_t address) {
    const struct worker *of = address < ELSEWHERE ? shared_worker_of(&address) : NULL;
    if (of != NULL) return of->shared.start + address;
    return (void *)(simt_self->elsewhere + address - ELSEWHERE);
}
struct worker *shared_worker_of(size_t *address) {
    if (*address < CLUSTER_WINDOW) return simt_worker;
    size_t rank = *address / CLUSTER_WINDOW - 1;
    *address %= CLUSTER_WINDOW;
    return rank < simt_worker->launch->cluster ? worker_of_rank(simt_worker, (unsigned)rank) : NULL;
}

long long simt_clock(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
