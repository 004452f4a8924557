/* The functions that g++ -fsanitize=thread calls before every access to memory, which ThreadSanitizer's library would
 * define; the kernel's KCSAN does the same inside Linux. Each access of a kernel is judged here: it must lie inside
 * shared memory, one allocation, the thread's own stack or the program's data, be aligned to its size, and get past
 * shadow.c. Under the meter the thread then waits for the rest of its warp.
 *
 * The return address of a hook is the access's place in the program: report/ turns it into a source line.
 */
#include "hooks.h"

#include "async_shadow.h"
#include "device_memory.h"
#include "meter.h"
#include "report.h"

static inline unsigned site_of(const void *pc) { return (unsigned)((uintptr_t)pc >> 1) % SITES; }

/* ---- refusals ----------------------------------------------------------------------------------------------------------- */

static const char *verb(enum access_kind kind) {
    return only_reads(kind) ? "read" : kind == ACCESS_WRITE ? "write" : "atomic operation";
}

static __attribute__((noinline, cold)) void refuse(uintptr_t address, size_t bytes, enum access_kind kind, const void *pc) {
    /* An index that nobody has written leads anywhere. */
    if (simt_worker->shadow.unwritten.thread == simt_self) shadow_report_unwritten(simt_worker);
    char where[300];
    describe_stray(address, simt_worker->hooks.sites[site_of(pc)].start, where, sizeof where);
    struct memory_place first = memory_place(address, 1);
    bool begins_inside = first.whole && (first.kind == SHARED || first.allocation != NULL);
    simt_fail(pc, cudaErrorIllegalAddress, "%s of %zu bytes out of bounds: %s%s", verb(kind), bytes, where,
              begins_inside ? "; it begins inside and ends past the end" : "");
}

static __attribute__((noinline, cold)) void refuse_misaligned(uintptr_t address, size_t bytes, enum access_kind kind,
                                                              const void *pc) {
    simt_fail(pc, cudaErrorMisalignedAddress,
              "%s of %zu bytes at address %#lx, which is not a multiple of %zu: a card reads and writes a %s only at its own "
              "alignment%s",
              verb(kind), bytes, (unsigned long)address, bytes,
              bytes == 16  ? "float4"
              : bytes == 8 ? "float2"
                           : "value",
              describe_promise(shared_offset_of(simt_worker, address)).text);
}

static __attribute__((noinline, cold)) void refuse_write(uintptr_t address, const void *pc) {
    simt_fail(pc, cudaErrorLaunchFailure, "write to %s, an input that kernels may only read", describe_address(address).text);
}

/* ---- the judgement -------------------------------------------------------------------------------------------------------- */

/* Shared memory of another block of the cluster: judged in its place, and not counted. False: it is none. */
static bool judge_distributed(uintptr_t address, size_t bytes, enum access_kind kind, bool marked, const void *pc) {
    struct worker *own = simt_worker;
    FOR_EACH_BLOCK (of, own) {
        if (of == own || address - (uintptr_t)of->shared.start >= SHARED_BYTES_MAX) continue;
        distributed_use(of, true, pc);
        simt_worker = of;
        simt_check_uncounted((const void *)address, bytes, kind, marked, pc);
        simt_worker = own;
        return true;
    }
    return false;
}

/* Find the allocation that a site accesses and remember it; false when the access is none of global memory's business. */
static __attribute__((noinline)) bool find_site(struct worker *worker, uintptr_t address, size_t bytes, enum access_kind kind,
                                                bool marked, const void *pc) {
    if (judge_distributed(address, bytes, kind, marked, pc)) return false;
    struct memory_place place = memory_place(address, bytes);
    const struct allocation *found = place.allocation;
    if (found != NULL && place.whole) {
        worker->hooks.sites[site_of(pc)] =
            (struct site_memory){found->start,       found->bytes,    found->cells, settled_sectors(found->cells, found->bytes),
                                 found->all_written, found->read_only};
        return true;
    }
    /* A kernel's arguments are a card's constant memory. */
    size_t offset = address - (uintptr_t)worker->launch->arguments;
    if (kind == ACCESS_READ && offset < worker->launch->arguments_bytes && offset + bytes <= worker->launch->arguments_bytes)
        return false;
    bool variable = place.kind == VARIABLE || place.kind == MANAGED;
    if (place.whole && (variable || place.kind == CONSTANT || (place.kind == LITERAL && kind == ACCESS_READ))) {
        if (place.kind == CONSTANT && !only_reads(kind))
            simt_fail(pc, cudaErrorLaunchFailure,
                      "write of %zu bytes to a __constant__ variable, which only the host may write", bytes);
        return false;
    }
    refuse(address, bytes, kind, pc);
    return false;
}

/* What is left to do with a read that needs no judgement. */
static inline void note_settled_read(struct thread *self, uintptr_t address, size_t bytes, enum memory_space space,
                                     const void *pc) {
    self->last_pc = pc;
    self->seen = address, self->seen_bytes = bytes;
    if (simt_worker->meter.on) meter_access(address, bytes, ACCESS_READ, space, pc);
}

/* The whole judgement of most reads: their sector is settled for whoever reads. A sector that is lies within an array. */
static inline bool is_settled_read(struct thread *self, const void *pointer, size_t bytes, const void *pc) {
    const struct worker *worker = simt_worker;
    uintptr_t address = (uintptr_t)pointer;
    size_t offset = shared_offset_of(worker, address);
    if (offset < SHARED_BYTES_MAX) {
        if (!sector_is_settled(worker->shared.settled, offset, worker->shadow.settled_shared)) return false;
        note_settled_read(self, address, bytes, SPACE_SHARED, pc);
        return true;
    }
    const struct site_memory *memory = &worker->hooks.sites[site_of(pc)];
    offset = address - memory->start;
    if (offset >= memory->bytes || !sector_is_settled(memory->settled, offset, worker->shadow.settled_global)) return false;
    note_settled_read(self, address, bytes, SPACE_GLOBAL, pc);
    return true;
}

/* A plain read inside an array that its site accessed before, of words that shadow.c has nothing more to learn about. False:
 * judge() must look. What the block has written of shared memory is a whole word of an array. */
static inline bool is_plain_read(struct thread *self, const void *pointer, size_t bytes, const void *pc) {
    struct worker *worker = simt_worker;
    uintptr_t address = (uintptr_t)pointer;
    size_t shared_offset = shared_offset_of(worker, address);
    struct cell *cells;
    uint64_t stamp = self->stamp;
    bool global = shared_offset >= SHARED_BYTES_MAX, all_written = false;
    if (!global) {
        if (worker->async.on) return false;
        stamp = stamp_in_shared(stamp, worker);
        cells = &worker->shared.cells[shared_offset / 4];
    } else {
        const struct site_memory *memory = &worker->hooks.sites[site_of(pc)];
        size_t offset = address - memory->start;
        if (offset >= memory->bytes || offset + bytes > memory->bytes) return false;
        cells = &memory->cells[offset / 4];
        all_written = memory->all_written;
    }
    for (size_t word = 0; word < bytes / 4; word++)
        if (!shadow_read_is_settled(&cells[word], stamp, worker, self->clock, global, all_written) &&
            (global || !shadow_read_of_next_lane(&cells[word], stamp, worker, self, relative_pc(pc))))
            return false;
    note_settled_read(self, address, bytes, global ? SPACE_GLOBAL : SPACE_SHARED, pc);
    return true;
}

static __attribute__((noinline)) void judge(struct thread *self, const void *pointer, size_t bytes, enum access_kind kind,
                                            bool marked, const void *pc) {
    struct worker *worker = simt_worker;
    uintptr_t address = (uintptr_t)pointer;
    enum memory_space space = SPACE_GLOBAL;
    self->last_pc = pc;
    if (!only_reads(kind) && address - self->stack >= STACK_BYTES) {
        self->judged = address, self->judged_bytes = bytes;
        self->tested = address - self->seen < self->seen_bytes;
    }
    self->seen = address, self->seen_bytes = bytes;
    if (worker->shadow.suspect_count > 0) shadow_settle_suspects(worker);
    if (marked) worker->shadow.block_synchronises = true;
    size_t shared_offset = shared_offset_of(worker, address);
    if (shared_offset < SHARED_BYTES_MAX) {
        if (!shared_contains(worker, shared_offset, bytes)) refuse(address, bytes, kind, pc);
        if (worker->async.on) async_judge(shared_offset, bytes, kind, pc);
        struct shadowed shared = {worker->shared.cells, SHARED_BYTES_MAX, true, false, worker->shared.settled};
        shadow_access(&shared, shared_offset, address, bytes, kind, marked, pc);
        space = SPACE_SHARED;
        if (marked) meter_flag(worker);
    } else if (address - self->stack < STACK_BYTES) {
        space = SPACE_LOCAL;
        if (self->accumulator_count > 0 && accumulators_judge(address, bytes, kind, pc)) return;
    } else {
        const struct site_memory *memory = &worker->hooks.sites[site_of(pc)];
        size_t offset = address - memory->start;
        if (offset >= memory->bytes || offset + bytes > memory->bytes) {
            if (!find_site(worker, address, bytes, kind, marked, pc)) return;
            offset = address - memory->start;
        }
        if (memory->read_only && (kind == ACCESS_WRITE || kind == ACCESS_ATOMIC)) refuse_write(address, pc);
        if (marked && kind != ACCESS_ATOMIC) meter_flag(worker);
        struct shadowed global = {memory->cells, memory->bytes, false, memory->all_written, memory->settled};
        shadow_access(&global, offset, address, bytes, kind, marked, pc);
    }
    if (worker->meter.on) meter_access(address, bytes, kind, space, pc);
}

void simt_check_access(const void *pointer, size_t bytes, enum access_kind kind, bool marked, const void *pc) {
    if (simt_self == NULL) return; /* host code of the kernel file */
    if (kind == ACCESS_ATOMIC && (uintptr_t)pointer % bytes != 0) refuse_misaligned((uintptr_t)pointer, bytes, kind, pc);
    judge(simt_self, pointer, bytes, kind, marked, pc);
}

void simt_check_uncounted(const void *pointer, size_t bytes, enum access_kind kind, bool marked, const void *pc) {
    bool metering = simt_worker->meter.on;
    simt_worker->meter.on = false;
    simt_check_access(pointer, bytes, kind, marked, pc);
    simt_worker->meter.on = metering;
}

void (*host_access)(const void *pointer, size_t bytes, enum access_kind kind, const void *pc);

/* What a hook does beyond the common case, which takes no registers of its own. In confined code volatile orders nothing: who
 * waits long enough would have no race. */
#define HOOK(name, bytes, kind, marked)                                                                                        \
    static __attribute__((noinline)) void judge_##name##bytes(void *pointer, const void *pc) {                                 \
        struct thread *self = simt_self;                                                                                       \
        if (self == NULL) {                                                                                                    \
            if (host_access != NULL && !(marked)) host_access(pointer, bytes, kind, pc);                                       \
            return;                                                                                                            \
        }                                                                                                                      \
        if (((uintptr_t)pointer & ((bytes)-1)) != 0) refuse_misaligned((uintptr_t)pointer, bytes, kind, pc);                   \
        if (kind == ACCESS_READ && !(marked) && (bytes) >= 4 && is_plain_read(self, pointer, bytes, pc)) return;               \
        if (__builtin_expect(simt_in_step, 0)) fiber_wait(GAVE_WAY);                                                           \
        if (marked) simt_give_way(); /* perhaps a flag that another thread will set */                                         \
        judge(self, pointer, bytes, kind, (marked) && !IS_CONFINED, pc);                                                       \
    }                                                                                                                          \
    void __tsan_##name##bytes(void *pointer) {                                                                                 \
        struct thread *self = simt_self;                                                                                       \
        if (self == NULL && host_access == NULL) return;                                                                       \
        if (kind == ACCESS_READ && !(marked) && (bytes) >= 4 && self != NULL && ((uintptr_t)pointer & ((bytes)-1)) == 0 &&     \
            is_settled_read(self, pointer, bytes, __builtin_return_address(0)))                                                \
            return;                                                                                                            \
        judge_##name##bytes(pointer, __builtin_return_address(0));                                                             \
    }
#define HOOKS(bytes)                                                                                                           \
    HOOK(read, bytes, ACCESS_READ, false)                                                                                      \
    HOOK(write, bytes, ACCESS_WRITE, false)                                                                                    \
    HOOK(volatile_read, bytes, ACCESS_READ, true)                                                                              \
    HOOK(volatile_write, bytes, ACCESS_WRITE, true)
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

/* Structs of other sizes, and copies that g++ folds: a card moves 16 bytes per instruction at most, each at a multiple of
 * their number. */
static void judge_range(void *pointer, size_t bytes, enum access_kind kind, const void *pc) {
    struct thread *self = simt_self;
    uintptr_t address = (uintptr_t)pointer, any = address | bytes | 16;
    if (self == NULL) return;
    if (IS_CONFINED && bytes > 1024)
        simt_fail(pc, cudaErrorNotSupported,
                  "a copy of more than 1024 bytes at once: a thread of a card has no more registers");
    size_t piece = any & -any;
    self->in_pieces = piece < bytes;
    for (size_t at = 0; at < bytes; at += piece) judge(self, (char *)pointer + at, piece, kind, false, pc);
    self->in_pieces = false;
    /* As a whole: the instructions that follow are g++'s choice. */
    self->seen = address, self->seen_bytes = bytes;
    bool outside = address - self->stack >= STACK_BYTES && address + bytes - 1 - self->stack >= STACK_BYTES;
    if (!only_reads(kind) && outside) self->judged = address, self->judged_bytes = bytes;
}
void __tsan_read_range(void *pointer, size_t bytes) { judge_range(pointer, bytes, ACCESS_READ, __builtin_return_address(0)); }
void __tsan_write_range(void *pointer, size_t bytes) { judge_range(pointer, bytes, ACCESS_WRITE, __builtin_return_address(0)); }

static __attribute__((noinline)) void go_further(intptr_t pc) {
    enum { FIRST_BLOCK = 256 }; /* the hook's call in a function's first block is so near to its start */
    bool counted = simt_counts_blocks && simt_self != NULL && simt_worker->meter.counted;
    if (!counted && !simt_in_step) {
        simt_furthest = pc;
        return;
    }
    /* What calls the kernel is no loop of it, but may lie behind: its blocks would hide how far the kernel has come. */
    if (counted && !simt_self->begun && (uintptr_t)pc - (uintptr_t)simt_worker->launch->kernel < FIRST_BLOCK)
        simt_self->begun = true, simt_furthest = 0;
    if (pc > -simt_furthest) simt_furthest = -pc; /* below 0: every basic block comes here */
    if (counted) meter_basic_block(simt_worker, (const void *)pc);
    if (simt_in_step && simt_self != NULL) fiber_wait(GAVE_WAY);
}

/* g++ -fsanitize-coverage=trace-pc calls it at the head of each basic block. Where paths part and meet again cannot be
 * told from accesses alone: the end of a loop's body may have none. Loops without any access call it too, so it does
 * as little as can be. */
void __sanitizer_cov_trace_pc(void) {
    intptr_t pc = (intptr_t)__builtin_return_address(0);
    simt_last_block = (uintptr_t)pc;
    if (pc > simt_furthest) go_further(pc);
}

void __tsan_init(void) {}
void __tsan_vptr_update(void **vptr, void *value) {}

/* g++ leaves accesses to a local array without hooks where nothing takes the array's address: with -fsanitize=bounds it
 * compares each index with the array's size instead, and calls this function, which UBSan's library would define. */

/* What g++ lays out: GCC's libsanitizer/ubsan describes it. */
struct array_type {
    uint16_t kind, width_and_sign; /* of an integer type: 2 log2(bits) + whether it is signed */
    char name[];                   /* 'float [8]' with the quotes */
};
struct index_check {
    const char *file;
    uint32_t line, column;
    const struct array_type *array, *index;
};

_Noreturn void __ubsan_handle_out_of_bounds_abort(const struct index_check *check, uintptr_t index) {
    int unused = 64 - (1 << (check->index->width_and_sign >> 1)); /* an index of 128 bits is told as an address */
    intptr_t value = unused > 0 ? (intptr_t)(index << unused) >> unused : (intptr_t)index;
    if (simt_self != NULL)
        simt_fail(__builtin_return_address(0), cudaErrorIllegalAddress, "index %ld is out of bounds: the array is %s", value,
                  check->array->name);
    fprintf(stderr, "%s:%u: index %ld is out of bounds: the array is %s\n", check->file, check->line, value,
            check->array->name);
    exit(3);
}
