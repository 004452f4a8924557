/* Boxes of tensors between global and shared memory, as a tensor map describes them: the innermost dimension first, rows of
 * the box one behind the other, 16 bytes exchanged by the swizzle. What lies outside of the tensor is zero when loaded, and
 * not stored. And bytes that lie one behind the other in both memories. */
#include "async_work.h"

#include "hooks.h"
#include "report.h"

bool async_is_early(void) {
    static int early = -1;
    if (early < 0) early = simt_is_set_to("early", "late", "SIMT_ASYNC");
    return early;
}

static void forget(struct async_work *work, unsigned width) {
    if (work->width != width) {
        enum { ROWS = 2 * (MOST_TRANSACTIONS + NAMED_AND_TILES + 1) };
        free(work->transactions[0].arriving);
        uint32_t *rows = resize_or_die(NULL, (size_t)ROWS * width * sizeof *rows);
        for (int i = 0; i < MOST_TRANSACTIONS; i++, rows += 2 * width)
            work->transactions[i].arriving = rows, work->transactions[i].over = rows + width;
        for (int i = 0; i < NAMED_AND_TILES; i++, rows += 2 * width)
            work->named[i].row = rows, work->named[i].over = rows + width;
        work->cluster_row = rows, work->cluster_over = rows + width;
        work->width = width;
    }
    memset(work->cluster_row, 0, 2 * width * sizeof *work->cluster_row);
    for (struct named_barrier *named = work->named; named < work->named + NAMED_AND_TILES; named++) {
        if (named->threads == 0) continue; /* unused so far */
        memset(named->row, 0, 2 * width * sizeof(uint32_t));
        named->threads = named->arrived = 0, named->round = 0;
    }
    memset(work->registers, 0, sizeof work->registers);
    for (unsigned i = 0; i < work->store_count; i++) free(work->stores[i].taken); /* of a launch that has failed */
    work->transaction_count = work->tile_count = work->load_count = work->store_count = work->store_thread_count = 0;
}

struct async_work *async_work_of(struct worker *worker) {
    if (worker->async.on) return worker->async.work;
    async_start(worker);
    FOR_EACH_BLOCK (of, worker) {
        if (of->async.work == NULL) of->async.work = resize_or_die(NULL, sizeof *of->async.work);
        forget(of->async.work, of->async.shadow->width);
    }
    return worker->async.work;
}

/* Of `elements` elements from `first` on, a mask of those inside of 0 to size - 1, by bytes. */
static uint64_t inside_of(int64_t first, unsigned element_bytes, uint64_t size) {
    uint64_t mask = 0, one = (1u << element_bytes) - 1;
    for (unsigned i = 0; i < 16 / element_bytes; i++)
        if (first + i >= 0 && (uint64_t)(first + i) < size) mask |= one << i * element_bytes;
    return mask;
}

/* Where row `row` of the box begins at column 0 of the tensor. False: it lies outside. */
static bool row_start(const struct tensor_copy *copy, uint32_t row, uintptr_t *start) {
    const struct tensor_map *map = &copy->map;
    bool inside = true;
    *start = map->address;
    for (int d = 1; d < map->rank; d++) {
        int64_t index = copy->at[d] + (int64_t)(row % map->box[d]);
        row /= map->box[d];
        inside = inside && index >= 0 && (uint64_t)index < map->sizes[d];
        *start += (uintptr_t)(index * (int64_t)map->strides[d]);
    }
    return inside;
}

/* Of each row the sectors that its part inside of the tensor touches, and one for each 32 bytes outside. */
uint64_t tensor_copy_sectors(const struct tensor_copy *copy, bool also_outside) {
    enum { SECTOR_BYTES = 32 };
    const struct tensor_map *map = &copy->map;
    if (map->rank == 0) return (map->address % SECTOR_BYTES + copy->bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
    uint64_t sectors = 0, width = map->box[0] * map->element_bytes;
    for (uint32_t row = 0; row < copy->bytes / width; row++) {
        uintptr_t start;
        int64_t first = copy->at[0], past = first + map->box[0];
        if (first < 0) first = 0;
        if (past > (int64_t)map->sizes[0]) past = (int64_t)map->sizes[0];
        if (!row_start(copy, row, &start) || past < first) past = first;
        uint64_t bytes = (uint64_t)(past - first) * map->element_bytes;
        uintptr_t from = start + (uintptr_t)first * map->element_bytes;
        if (bytes > 0) sectors += (from + bytes - 1) / SECTOR_BYTES - from / SECTOR_BYTES + 1;
        if (also_outside) sectors += (width - bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
    }
    return sectors;
}

void tensor_copy_each(const struct tensor_copy *copy,
                      void (*visit)(const struct tensor_copy *copy, size_t offset, uintptr_t global, uint64_t inside)) {
    const struct tensor_map *map = &copy->map;
    for (uint32_t byte = 0; map->rank == 0 && byte < copy->bytes; byte += 16)
        visit(copy, copy->offset + byte, map->address + byte, 0xffff);
    if (map->rank == 0) return;
    unsigned row_bytes = map->box[0] * map->element_bytes;
    for (uint32_t row = 0; row < copy->bytes / row_bytes; row++) {
        uintptr_t start;
        bool inside = row_start(copy, row, &start);
        for (unsigned byte = 0; byte < row_bytes; byte += 16) {
            int64_t first = copy->at[0] + byte / map->element_bytes;
            uint64_t mask = inside ? inside_of(first, map->element_bytes, map->sizes[0]) : 0;
            uint32_t address = swizzled_address((uint32_t)copy->offset + row * row_bytes + byte, map->swizzle);
            visit(copy, address, start + (uintptr_t)(first * map->element_bytes), mask);
        }
    }
}

static void load_unit(const struct tensor_copy *copy, size_t offset, uintptr_t global, uint64_t inside) {
    unsigned char *to = simt_worker->shared.start + offset;
    if (inside == 0xffff) memcpy(to, (const void *)global, 16);
    for (int i = 0; inside != 0xffff && i < 16; i++) to[i] = (inside >> i & 1) != 0 ? ((const unsigned char *)global)[i] : 0;
    async_landed(simt_worker, copy->issuer, offset, 16);
}

static void store_unit(const struct tensor_copy *copy, size_t offset, uintptr_t global, uint64_t inside) {
    const unsigned char *from =
        copy->taken != NULL ? copy->taken + (offset - copy->offset) : simt_worker->shared.start + offset;
    if (copy->adds) {
        atomic_add_floats((float *)global, (const float *)from, 4);
        return;
    }
    for (int i = 0; i < 16; i++)
        if ((inside >> i & 1) != 0) ((unsigned char *)global)[i] = from[i];
}

void tensor_copy_load(const struct tensor_copy *copy) { tensor_copy_each(copy, load_unit); }

/* The swizzle exchanges units within 128 bytes. */
void tensor_copy_take(struct tensor_copy *copy) {
    copy->was_read = true;
    if (copy->written || copy->taken != NULL) return;
    size_t bytes = (copy->bytes + 127) / 128 * 128;
    if (bytes > SHARED_BYTES_MAX - copy->offset) bytes = SHARED_BYTES_MAX - copy->offset;
    copy->taken = resize_or_die(NULL, bytes + 1);
    memcpy(copy->taken, simt_worker->shared.start + copy->offset, bytes);
}

void tensor_copy_store(struct tensor_copy *copy) {
    if (!copy->written) tensor_copy_each(copy, store_unit);
    copy->written = true;
    free(copy->taken);
    copy->taken = NULL;
}
