/* The functions that g++ -fsanitize=thread calls before every access to memory, which ThreadSanitizer's library would
 * define; the kernel's KCSAN does the same inside Linux. Each access of a kernel is judged here: it must lie inside
 * shared memory, one allocation, the thread's own stack or the program's data, and be aligned to its size.
 *
 * The return address of a hook is the access's place in the program: report.c turns it into a source line.
 */
#include "simt.h"

#include <stdio.h>
#include <stdlib.h>

/* Inside the dynamic array or one of the static ones. */
static bool in_shared(const struct worker *worker, size_t offset, size_t bytes) {
    if (offset + bytes <= worker->launch->dynamic_shared_bytes) return true;
    for (int i = 0; i < worker->array_count; i++) {
        const struct static_array *array = &worker->arrays[i];
        if (offset >= array->offset && offset + bytes <= array->offset + array->bytes) return true;
    }
    return false;
}

/* Which array the block's shared memory holds at or before an offset, for a message. */
static void describe_shared(const struct worker *worker, size_t offset, char *text, size_t room) {
    const struct static_array *nearest = NULL;
    for (int i = 0; i < worker->array_count; i++)
        if (worker->arrays[i].offset <= offset) nearest = &worker->arrays[i];
    if (nearest != NULL)
        snprintf(text, room, "byte %zu of the __shared__ array %s, which has %zu bytes", offset - nearest->offset,
                 nearest->name, nearest->bytes);
    else
        snprintf(text, room,
                 "byte %zu of the block's dynamic shared memory, which has %zu bytes (the third launch argument)",
                 offset, worker->launch->dynamic_shared_bytes);
}

static void describe_global(uintptr_t address, char *text, size_t room) {
    const struct allocation *nearest = memory_nearest(address);
    const struct allocation *next = nearest == NULL ? memory_nearest(UINTPTR_MAX) : nearest + 1;
    size_t page = 4096;
    if (nearest != NULL && address - nearest->start < nearest->mapping_bytes)
        snprintf(
            text, room,
            "byte %zu of device allocation %d, which has %zu bytes (the %zu-byte array that cudaMalloc call %d made)",
            (size_t)(address - nearest->start), nearest->serial, nearest->bytes, nearest->bytes, nearest->serial);
    else if (next != NULL && nearest != NULL && memory_find(address + page) != NULL)
        snprintf(text, room, "%zu bytes before the start of device allocation %d",
                 (size_t)(memory_find(address + page)->start - address), memory_find(address + page)->serial);
    else if (address < page)
        snprintf(text, room, "address %#lx: a null pointer", (unsigned long)address);
    else
        snprintf(text, room, "address %#lx, which is no device memory (a host pointer, or memory already freed?)",
                 (unsigned long)address);
}

static __attribute__((noinline, cold)) void refuse(uintptr_t address, size_t bytes, bool is_write, const void *pc) {
    struct worker *worker = simt_worker;
    char where[300];
    size_t offset = address - (uintptr_t)worker->shared;
    if (offset < SHARED_BYTES_MAX)
        describe_shared(worker, offset, where, sizeof where);
    else
        describe_global(address, where, sizeof where);
    char *line = source_line(pc);
    simt_self->last_pc = pc;
    simt_fail(cudaErrorIllegalAddress, "%s: %s of %zu bytes out of bounds: %s", line, is_write ? "write" : "read",
              bytes, where);
}

static __attribute__((noinline)) void judge_slowly(uintptr_t address, size_t bytes, bool is_write, const void *pc) {
    struct worker *worker = simt_worker;
    if (address - simt_self->stack < STACK_BYTES) return;
    const struct allocation *found = memory_find(address);
    if (found != NULL && bytes <= found->bytes - (address - found->start)) {
        unsigned site = ((uintptr_t)pc >> 1) % (sizeof worker->site_cache / sizeof *worker->site_cache);
        worker->site_cache[site].start = found->start;
        worker->site_cache[site].bytes = found->bytes;
        return;
    }
    /* A kernel's arguments are a card's constant memory. */
    size_t offset = address - (uintptr_t)worker->launch->arguments;
    if (!is_write && offset + bytes <= worker->launch->arguments_bytes) return;
    if (found == NULL && memory_is_module_data(address, bytes)) return;
    refuse(address, bytes, is_write, pc);
}

void simt_check_access(const void *pointer, size_t bytes, bool is_write, const void *pc) {
    struct thread *self = simt_self;
    if (self == NULL) return; /* host code of the kernel file */
    struct worker *worker = simt_worker;
    uintptr_t address = (uintptr_t)pointer;
    self->last_pc = pc;
    size_t shared_offset = address - (uintptr_t)worker->shared;
    if (shared_offset < SHARED_BYTES_MAX) {
        if (!in_shared(worker, shared_offset, bytes)) refuse(address, bytes, is_write, pc);
        return;
    }
    unsigned site = ((uintptr_t)pc >> 1) % (sizeof worker->site_cache / sizeof *worker->site_cache);
    if (address - worker->site_cache[site].start + bytes <= worker->site_cache[site].bytes &&
        address >= worker->site_cache[site].start)
        return;
    judge_slowly(address, bytes, is_write, pc);
}

static __attribute__((noinline, cold)) void refuse_misaligned(uintptr_t address, size_t bytes, bool is_write,
                                                              const void *pc) {
    char *line = source_line(pc);
    simt_self->last_pc = pc;
    simt_fail(
        cudaErrorMisalignedAddress,
        "%s: %s of %zu bytes at address %#lx, which is not a multiple of %zu: a card reads and writes a %s only at "
        "its own alignment",
        line, is_write ? "write" : "read", bytes, (unsigned long)address, bytes,
        bytes == 16  ? "float4"
        : bytes == 8 ? "float2"
                     : "value");
}

#define HOOK(kind, bytes, is_write)                                                                                    \
    void __tsan_##kind##bytes(void *pointer);                                                                          \
    void __tsan_##kind##bytes(void *pointer) {                                                                         \
        if (((uintptr_t)pointer & (bytes - 1)) != 0 && simt_self != NULL)                                              \
            refuse_misaligned((uintptr_t)pointer, bytes, is_write, __builtin_return_address(0));                       \
        simt_check_access(pointer, bytes, is_write, __builtin_return_address(0));                                      \
    }
HOOK(read, 1, false)
HOOK(read, 2, false)
HOOK(read, 4, false)
HOOK(read, 8, false)
HOOK(read, 16, false)
HOOK(write, 1, true)
HOOK(write, 2, true)
HOOK(write, 4, true)
HOOK(write, 8, true)
HOOK(write, 16, true)

/* Structs of other sizes, and copies that g++ folds. */
void __tsan_read_range(void *pointer, size_t bytes);
void __tsan_read_range(void *pointer, size_t bytes) {
    simt_check_access(pointer, bytes, false, __builtin_return_address(0));
}
void __tsan_write_range(void *pointer, size_t bytes);
void __tsan_write_range(void *pointer, size_t bytes) {
    simt_check_access(pointer, bytes, true, __builtin_return_address(0));
}

void __tsan_init(void);
void __tsan_init(void) {}
void __tsan_vptr_update(void **vptr, void *value);
void __tsan_vptr_update(void **vptr, void *value) {
    (void)vptr;
    (void)value;
}
