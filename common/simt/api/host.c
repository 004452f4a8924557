/* What the host does with memory of the device that it should not rely on yet: it copies what nobody has written, or it
 * accesses without a wait what a kernel or an asynchronous copy may still be writing. Only in programs that simt-nvcc makes:
 * the book's harness has contents of its own for what is not written, and checks it. */
#include "api.h"

#include "hooks.h"

bool host_is_watched;
static _Thread_local const struct operation *inside; /* that this function of the host's is, which a stream runs */

static void judge_access(const void *pointer, size_t bytes, enum access_kind kind, const void *pc) {
    uintptr_t address = (uintptr_t)pointer;
    const struct allocation *memory = memory_find(address);
    if (memory == NULL || memory->kind == DEVICE || address + bytes > memory->start + memory->bytes) return;
    struct meeting meeting;
    bool writes = kind == ACCESS_WRITE;
    if (streams_host_meets(address, bytes, writes, &meeting)) {
        const struct operation *other = meeting.other;
        char what[600], of_stream[400], *line = source_line(pc), *other_line = source_line(absolute_pc(meeting.pc));
        streams_name(other, of_stream, sizeof of_stream);
        const char *verb = meeting.wrote ? "writes" : "reads";
        if (other->first_order != 0)
            snprintf(what, sizeof what, "kernel that %s it at %s", verb, other_line);
        else if (strcmp(other->what, "host function") == 0)
            snprintf(what, sizeof what, "host function that %s it", verb);
        else
            snprintf(what, sizeof what, "asynchronous %s %s it", other->what, meeting.wrote ? "into" : "out of");
        simt_warn_of_host(pc, "%s: the host %s %s, and nothing has waited for the %s%s: %s first", line,
                          writes ? "writes" : "reads", describe_address(address).text, what, of_stream,
                          other->first_order != 0 ? "cudaDeviceSynchronize()" : "cudaStreamSynchronize()");
        free(line), free(other_line);
    }
    if (streams_inside != NULL) streams_host_did(inside, address, bytes, writes);
}

/* A host thread that would have to wait for another's launch goes on: that kernel may be waiting for it. */
static void look_at_access(const void *pointer, size_t bytes, enum access_kind kind, const void *pc) {
    int entered __attribute__((cleanup(api_leave))) = api_try_to_enter();
    if (entered) judge_access(pointer, bytes, kind, pc);
}

void host_watch(void) {
    host_access = host_is_watched && (streams_inside != NULL || streams_are_busy()) ? look_at_access : NULL;
}

void host_goes_inside(cudaStream_t of, const struct operation *operation) {
    streams_inside = of;
    inside = operation;
    host_watch();
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
