/* Device memory: every allocation is its own mapping between inaccessible pages, and starts out as poison. */
#include "device_memory.h"

#include "report.h"
#include "stamp.h"

#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

unsigned char memory_poison = 0xff;

/* Sorted by address. Changed only by the host between kernels, so that kernels read it without a lock. */
static struct allocation *allocations;
static unsigned allocation_count, allocation_room;
static size_t bytes_in_use;
static int next_serial = 1;

static _Thread_local const char *next_variable;
void simt_name_variable(const char *name) { next_variable = TEXT_OF_KERNEL(name); }

size_t memory_total(void) { return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE); }
size_t memory_in_use(void) { return bytes_in_use; }

/* The number of allocations that start at or before the address. */
static size_t count_up_to(uintptr_t address) {
    size_t low = 0, high = allocation_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (allocations[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct allocation *memory_nearest(uintptr_t address) {
    size_t count = count_up_to(address);
    return count == 0 ? NULL : &allocations[count - 1];
}

const struct allocation *memory_find(uintptr_t address) {
    const struct allocation *nearest = memory_nearest(address);
    return nearest != NULL && address - nearest->start < nearest->bytes ? nearest : NULL;
}

enum { HUGE_PAGE = 2 << 20 };

/* A kernel reads a cell before it writes it. Left alone, Linux maps its page of zeros, copies it at the write and interrupts the other
 * processors for that, page by page: few pages are made at once, of many it makes large ones. */
void memory_expect_notes(void *start, size_t bytes) {
    madvise(start, bytes, bytes < HUGE_PAGE / 2 ? MADV_POPULATE_WRITE : MADV_HUGEPAGE);
}

static void *allocate(size_t bytes, bool reserved, enum memory_kind kind, int device) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), guard = bytes < HUGE_PAGE ? page : HUGE_PAGE;
    size_t mapping_bytes = (bytes + page - 1) / page * page + 2 * guard;
    unsigned char *mapping = mmap(NULL, mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return NULL;
    /* Pages of cells that no kernel touches take no memory. */
    size_t cell_bytes = cells_bytes(bytes);
    struct cell *cells = MAP_FAILED;
    if (mprotect(mapping + guard, mapping_bytes - 2 * guard, PROT_READ | PROT_WRITE) == 0)
        cells = mmap(NULL, cell_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (cells == MAP_FAILED) {
        munmap(mapping, mapping_bytes);
        return NULL;
    }
    if (!reserved) { /* to open and to close memory for a launch takes a moment for each page */
        memory_expect_notes(cells, (bytes + 3) / 4 * sizeof *cells);
        madvise(mapping + guard, mapping_bytes - 2 * guard, MADV_HUGEPAGE);
        memset(mapping + guard, memory_poison, mapping_bytes - 2 * guard);
    }
    if (kind == DEVICE) mprotect(mapping + guard, mapping_bytes - 2 * guard, PROT_NONE);

    allocations = grow_or_die(allocations, allocation_count, &allocation_room, sizeof *allocations);
    size_t at = count_up_to((uintptr_t)mapping);
    memmove(allocations + at + 1, allocations + at, (allocation_count - at) * sizeof *allocations);
    allocations[at] = (struct allocation){.kind = kind,
                                          .device = device,
                                          .start = (uintptr_t)(mapping + guard),
                                          .bytes = bytes,
                                          .mapping = mapping,
                                          .mapping_bytes = mapping_bytes,
                                          .serial = next_serial++,
                                          .variable = next_variable,
                                          .reserved = reserved,
                                          .all_written = reserved || kind != DEVICE,
                                          .cells = cells,
                                          .cell_bytes = cell_bytes};
    backtrace(allocations[at].callers, sizeof allocations->callers / sizeof *allocations->callers - 1);
    next_variable = NULL;
    allocation_count++;
    if (!reserved) bytes_in_use += bytes;
    return mapping + guard;
}

void *memory_allocate(size_t bytes, enum memory_kind kind, int device) {
    return bytes <= memory_total() - bytes_in_use ? allocate(bytes, false, kind, device) : NULL;
}

void *memory_reserve(size_t bytes, int device) { return allocate(bytes, true, DEVICE, device); }

static void set_rights(const struct allocation *allocation, int rights) {
    if (allocation == NULL || allocation->kind != DEVICE) return;
    size_t guard = allocation->start - (uintptr_t)allocation->mapping;
    if (mprotect((void *)allocation->start, allocation->mapping_bytes - 2 * guard, rights) == 0) return;
    perror("simulated device: mprotect");
    abort();
}

void memory_open(const void *pointer) { set_rights(memory_find((uintptr_t)pointer), PROT_READ | PROT_WRITE); }
void memory_close(const void *pointer) { set_rights(memory_find((uintptr_t)pointer), PROT_NONE); }

static void set_all_rights(int rights) {
    for (size_t i = 0; i < allocation_count; i++) set_rights(&allocations[i], rights);
}
void memory_open_all(void) { set_all_rights(PROT_READ | PROT_WRITE); }
void memory_close_all(void) { set_all_rights(PROT_NONE); }

bool memory_free(void *pointer) {
    const struct allocation *found = memory_find((uintptr_t)pointer);
    if (found == NULL || found->start != (uintptr_t)pointer) return false;
    size_t at = (size_t)(found - allocations);
    if (!found->reserved) bytes_in_use -= found->bytes;
    munmap(found->mapping, found->mapping_bytes);
    munmap(found->cells, found->cell_bytes);
    for (struct displaced *of = found->displaced, *next; of != NULL; of = next) next = of->next, munmap(of, of->bytes);
    free(found->origin);
    memmove(allocations + at, allocations + at + 1, (allocation_count - at - 1) * sizeof *allocations);
    allocation_count--;
    return true;
}

void memory_free_all(void) {
    while (allocation_count > 0) memory_free((void *)allocations[allocation_count - 1].start);
}

/* Called by the host between kernels. Whole words: the byte beside the last one counts as written, too. */
void memory_written_by_host(const void *pointer, size_t bytes) {
    struct allocation *found = (struct allocation *)memory_find((uintptr_t)pointer);
    if (found == NULL || found->all_written) return;
    size_t offset = (uintptr_t)pointer - found->start;
    found->all_written = bytes == found->bytes;
    for (size_t i = offset / 4; i <= (offset + bytes - 1) / 4 && !found->all_written; i++) {
        if (found->cells[i].write == 0) found->cells[i].write = WRITTEN_BY_HOST;
        found->cells[i].split = 0;
    }
}

void memory_copied(const void *to, const void *from, size_t bytes) {
    const struct allocation *source = memory_find((uintptr_t)from);
    if (source == NULL || source->all_written || ((uintptr_t)to - (uintptr_t)from) % 4 != 0) {
        memory_written_by_host(to, bytes);
        return;
    }
    size_t offset = (uintptr_t)from - source->start, end = offset + bytes;
    for (size_t next; offset < end; offset = next) {
        bool written = source->cells[offset / 4].write != 0;
        for (next = offset / 4 * 4 + 4; next < end && (source->cells[next / 4].write != 0) == written;) next += 4;
        if (next > end) next = end;
        if (written) memory_written_by_host((const char *)to + (offset - (end - bytes)), next - offset);
    }
}

void memory_set_rows(const void *pointer, size_t pitch, size_t row_bytes) {
    struct allocation *found = (struct allocation *)memory_find((uintptr_t)pointer);
    if (found == NULL) return;
    found->pitch = pitch;
    found->row_bytes = row_bytes;
}

void simt_name_memory(const void *pointer, const char *name, size_t element_bytes, int read_only) {
    struct allocation *found = (struct allocation *)memory_find((uintptr_t)pointer);
    if (found == NULL) return;
    found->name = name;
    found->element_bytes = element_bytes;
    found->read_only = read_only != 0;
}

bool memory_forget(const void *pointer, int value, size_t bytes) {
    const struct allocation *found = memory_find((uintptr_t)pointer);
    if (found == NULL || !found->reserved || value != 0 || bytes != found->bytes) return false;
    return madvise((void *)found->start, (bytes + 4095) / 4096 * 4096, MADV_DONTNEED) == 0;
}

void memory_for_each(void (*visit)(const struct allocation *allocation, void *data), void *data) {
    for (size_t i = 0; i < allocation_count; i++) visit(&allocations[i], data);
}
