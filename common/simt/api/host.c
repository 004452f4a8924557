/* What the host does with memory of the device that it should not rely on yet: it copies what nobody has written, or it
 * accesses without a wait what a kernel or an asynchronous copy may still be writing. Only in programs that simt-nvcc makes:
 * the book's harness has contents of its own for what is not written, and checks it. */
#include "api.h"

#include "hooks.h"

bool host_is_watched;
static uint64_t first_order;         /* of the launches since the last wait; 0: there was none */
static const unsigned char *copy_to; /* the last asynchronous copy to page-locked memory since then */
static size_t copy_bytes;

static bool is_since(uint64_t stamp) { return first_order != 0 && stamp_launch(stamp) >= first_order; }

static void judge_access(const void *pointer, size_t bytes, enum access_kind kind, const void *pc) {
    uintptr_t address = (uintptr_t)pointer;
    const struct allocation *memory = memory_find(address);
    if (memory == NULL || memory->kind == DEVICE || address + bytes > memory->start + memory->bytes) return;
    const struct cell *cell = &memory->cells[(address - memory->start) / 4];
    if (cell->split) cell = byte_cells(memory->cells, memory->bytes, (address - memory->start) / 4) + address % 4;
    bool copied = address - (uintptr_t)copy_to < copy_bytes, written = is_since(cell->write);
    bool read = kind == ACCESS_WRITE && is_since(cell->read);
    if (!copied && !written && !read) return;
    char *line = source_line(pc), *other = source_line(absolute_pc(written ? cell->write_pc : cell->read_pc));
    simt_warn_of_host(pc, "%s: the host %s %s, and nothing has waited for the %s%s: %s first", line,
                      kind == ACCESS_WRITE ? "writes" : "reads", describe_address(address).text,
                      copied    ? "asynchronous copy into it"
                      : written ? "kernel that writes it at "
                                : "kernel that reads it at ",
                      copied ? "" : other, copied ? "cudaStreamSynchronize()" : "cudaDeviceSynchronize()");
    free(line), free(other);
}

/* A host thread that would have to wait for another's launch goes on: that kernel may be waiting for it. */
static void look_at_access(const void *pointer, size_t bytes, enum access_kind kind, const void *pc) {
    int entered __attribute__((cleanup(api_leave))) = api_try_to_enter();
    if (entered) judge_access(pointer, bytes, kind, pc);
}

void host_launched(uint64_t order) {
    if (!host_is_watched) return;
    if (first_order == 0 || order < first_order) first_order = order; /* less: the orders have begun anew */
    host_access = look_at_access;
}

void host_copies_later(const void *to, size_t bytes) {
    if (!host_is_watched) return;
    copy_to = to;
    copy_bytes = bytes;
    host_access = look_at_access;
}

void host_waited(void) {
    host_access = NULL;
    first_order = copy_bytes = 0;
}

void host_copies_unwritten(const void *from, size_t bytes) {
    const struct allocation *memory = memory_find((uintptr_t)from);
    if (!host_is_watched || memory == NULL || memory->all_written) return;
    enum { LINES = 3 };
    size_t offset = (uintptr_t)from - memory->start, first = SIZE_MAX, unwritten = 0, pitch = memory->pitch;
    uint32_t writers[LINES] = {0};
    int count = 0;
    for (size_t word = offset / 4; word <= (offset + bytes - 1) / 4; word++) {
        const struct cell *cell = &memory->cells[word];
        if (cell->write == 0 && (pitch == 0 || 4 * word % pitch < memory->row_bytes)) {
            if (unwritten++ == 0) first = word;
            continue;
        }
        for (int b = 0; b < 4 && cell->split; b++) /* which of them was written tells where */
            if (byte_cells(memory->cells, memory->bytes, word)[b].write_pc != 0)
                cell = &byte_cells(memory->cells, memory->bytes, word)[b];
        bool known = cell->write_pc == 0;
        for (int i = 0; i < count; i++) known |= writers[i] == cell->write_pc;
        if (!known && count < LINES) writers[count++] = cell->write_pc;
    }
    if (unwritten == 0) return;
    char rest[600] = "; no kernel has written any of it";
    char *line = calling_line();
    if (count > 0) strcpy(rest, "; the rest was written at ");
    for (int i = 0; i < count; i++) {
        char *written = source_line(absolute_pc(writers[i]));
        append_text(rest, sizeof rest, "%s%s", i == 0 ? "" : ", ", written);
        free(written);
    }
    simt_warn_of_host(memory->cells, "%s: copy to the host: nobody has written %zu of the %zu elements, the first is %s%s",
                      line, unwritten, (bytes + 3) / 4, describe_address(memory->start + 4 * first).text, rest);
    free(line);
}
