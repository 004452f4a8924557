/* cp.async: copies from global to shared memory that are under way until the thread waits for them.
 *
 * On a card the data may arrive at any moment between the copy's issue and the wait. Here they arrive at the wait, as late
 * as they may, and until then the words hold poison and are marked as pending: whoever touches them is told so.
 */
#include "simt.h"

#include <stdlib.h>
#include <string.h>

struct async_copy {
    unsigned char *to;
    size_t bytes;
    unsigned char data[16];
    unsigned group; /* number of the thread's group, from 0 */
};

void simt_async_copy(void *to_shared, const void *from_global, size_t bytes, size_t zero_bytes) {
    struct thread *self = simt_self;
    const void *pc = __builtin_return_address(0);
    if ((bytes != 4 && bytes != 8 && bytes != 16) || zero_bytes > bytes)
        simt_fail(cudaErrorInvalidValue,
                  "%s: an asynchronous copy of %zu bytes with %zu zeros: it moves 4, 8 or 16 bytes", source_line(pc),
                  bytes, zero_bytes);
    if ((uintptr_t)to_shared % bytes != 0 || (uintptr_t)from_global % bytes != 0)
        simt_fail(cudaErrorMisalignedAddress,
                  "%s: an asynchronous copy of %zu bytes between addresses that are not "
                  "multiples of it",
                  source_line(pc), bytes);
    if ((uintptr_t)to_shared - (uintptr_t)simt_worker->shared >= SHARED_BYTES_MAX)
        simt_fail(cudaErrorIllegalAddress, "%s: an asynchronous copy to memory that is not shared", source_line(pc));
    if (self->copy_count == self->copy_room) {
        self->copy_room = self->copy_room == 0 ? 16 : 2 * self->copy_room;
        self->copies = realloc(self->copies, self->copy_room * sizeof *self->copies);
        if (self->copies == NULL) simt_fail(cudaErrorMemoryAllocation, "no memory for an asynchronous copy");
    }
    struct async_copy *copy = &self->copies[self->copy_count++];
    *copy = (struct async_copy){.to = to_shared, .bytes = bytes, .group = self->committed_groups};
    size_t offset = (uintptr_t)to_shared - (uintptr_t)simt_worker->shared;
    struct cell *cells = &simt_worker->shared_cells[offset / 4];
    bool metering = simt_worker->metering;
    if (zero_bytes < bytes) {
        simt_check_access(from_global, bytes - zero_bytes, ACCESS_COPY, false, pc);
        if (metering) simt_log_destination(offset);
        memcpy(copy->data, from_global, bytes - zero_bytes);
    }
    /* The copy has been counted, where it reads. */
    simt_worker->metering = false;
    simt_check_access(to_shared, bytes, ACCESS_WRITE, false, pc);
    simt_worker->metering = metering;
    shadow_pending(cells, bytes / 4, true);
    memset(to_shared, POISON, bytes);
}

void simt_async_commit(void) { simt_self->committed_groups++; }

void simt_async_wait(unsigned groups) {
    struct thread *self = simt_self;
    unsigned kept = 0;
    for (unsigned i = 0; i < self->copy_count; i++) {
        struct async_copy copy = self->copies[i];
        bool arrives = copy.group < self->committed_groups && self->committed_groups - copy.group > groups;
        if (!arrives) {
            self->copies[kept++] = copy;
            continue;
        }
        memcpy(copy.to, copy.data, copy.bytes);
        size_t offset = (size_t)(copy.to - simt_worker->shared);
        shadow_pending(&simt_worker->shared_cells[offset / 4], copy.bytes / 4, false);
    }
    self->copy_count = kept;
}
