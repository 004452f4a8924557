/* Addresses in words. */
#include "device_memory.h"

#include "report.h"

/* "tile[3][5]"; without an element "tile[32][33]", as it is declared. */
static const char *array_name(const struct static_array *array, const size_t *element, char name[200]) {
    size_t length = (size_t)snprintf(name, 100, "%s", array->name);
    if (length > 99) length = 99;
    for (const size_t *extent = array->extents; *extent != 0; extent++) {
        size_t index = *extent, inner = 1;
        for (const size_t *other = extent + 1; *other != 0; other++) inner *= *other;
        if (element != NULL) index = *element / inner % *extent;
        length += (size_t)snprintf(name + length, 200 - length, "[%zu]", index);
    }
    return name;
}

static void append_gap(size_t elements, const char *where, const struct static_array *array, char *text, size_t room) {
    char name[200];
    append_text(text, room, "%zu element%s %s of the __shared__ array %s of %zu bytes", elements, elements == 1 ? "" : "s",
                where, array_name(array, NULL, name), array->bytes);
}

static void describe_shared(const struct worker *worker, size_t offset, char *text, size_t room) {
    const struct static_array *below = NULL, *above = NULL;
    for (int i = worker->shared.array_count - 1; i >= 0 && below == NULL; i--)
        *(worker->shared.arrays[i].offset <= offset ? &below : &above) = &worker->shared.arrays[i];
    size_t end = below != NULL ? below->offset + below->bytes : worker->launch->dynamic_shared_bytes;
    if (offset < end) above = NULL;
    if (below != NULL && offset < end) {
        char name[200];
        size_t element = (offset - below->offset) / below->element_bytes;
        snprintf(text, room, "%s, in the __shared__ array %s of %zu bytes", array_name(below, &element, name), below->name,
                 below->bytes);
        return;
    }
    text[0] = '\0';
    if (below != NULL)
        append_gap((offset - end) / below->element_bytes + 1, "past the end", below, text, room);
    else if (end > 0 || above == NULL)
        snprintf(text, room, "byte %zu of the block's dynamic shared memory (%zu bytes: the third launch argument)", offset,
                 end);
    if (above == NULL) return;
    if (text[0] != '\0') append_text(text, room, " and ");
    append_gap((above->offset - offset - 1) / above->element_bytes + 1, "before the start", above, text, room);
}

/* The allocation that an address most likely belongs to: the one that it lies in, else the one that its place in the
 * program accessed before, else the nearer one. A guard page lies before and after each: what is a page away from one
 * allocation may lie in the guard page of another. */
static const struct allocation *most_likely(uintptr_t address, uintptr_t before, size_t page) {
    const struct allocation *below = memory_nearest(address), *above = memory_nearest(address + 2 * page);
    const struct allocation *known = before != 0 ? memory_find(before) : NULL;
    if (below != NULL && address - below->start < below->bytes) return below;
    if (above == NULL || above->start <= address) return below;
    if (below == NULL || known == above) return above;
    if (known == below) return below;
    return above->start - address <= address - (below->start + below->bytes) ? above : below;
}

static const char *name_of(const struct allocation *allocation, char serial[40]) {
    if (allocation->name != NULL) return allocation->name;
    snprintf(serial, 40, "device allocation %d", allocation->serial);
    return serial;
}

/* The unit in which a message counts: what the allocation was named with; without a name the width of the latest access, where
 * it is narrower than a float. */
static size_t unit_of(const struct allocation *allocation, uintptr_t address) {
    if (allocation->name != NULL) return allocation->element_bytes;
    bool narrow = simt_self != NULL && address - simt_self->seen < simt_self->seen_bytes && simt_self->seen_bytes < 4;
    return narrow ? simt_self->seen_bytes : 4;
}

/* Of an address before an allocation that an overrun of the one below would reach as well: says so, unless the other is much
 * nearer. */
static void describe_overrun(uintptr_t address, const struct allocation *above, char *text, size_t room) {
    const struct allocation *below = memory_nearest(address);
    char serial[40];
    if (below == NULL || address - (below->start + below->bytes) > 4 * (above->start - address)) return;
    append_text(text, room, "%zu bytes past the end of %s, which has %zu bytes, or ", address - (below->start + below->bytes),
                name_of(below, serial), below->bytes);
}

/* An index of 32 bits leads no further from an array than 2^31 elements of 8 bytes. */
static void describe_far(uintptr_t address, char *text, size_t room) {
    const uintptr_t reach = (uintptr_t)1 << 34;
    const struct allocation *found = memory_nearest(address);
    bool is_past = found != NULL && address - found->start < reach;
    if (!is_past) found = memory_nearest(address + reach);
    char serial[40], index[200] = "";
    if (is_past || (found != NULL && found->start > address))
        snprintf(index, sizeof index, "%zu bytes %s the start of %.80s: an index that %s, ",
                 is_past ? address - found->start : found->start - address, is_past ? "past" : "before", name_of(found, serial),
                 is_past ? "overflowed" : "is negative or overflowed");
    append_text(text, room, "address %#lx, which is no device memory (%sa host pointer, or memory already freed?)", address,
                index);
}

static void describe_global(uintptr_t address, uintptr_t before, char *text, size_t room) {
    const size_t page = 4096;
    const struct allocation *found = most_likely(address, before, page);
    char serial[40], unit_words[60];
    const char *name = found != NULL ? name_of(found, serial) : "";
    size_t unit = found != NULL ? unit_of(found, address) : 1;
    snprintf(unit_words, sizeof unit_words, "counted in %zu-byte elements", unit);
    text[0] = '\0';
    if (found != NULL && found->start > address && (before == 0 || memory_find(before) != found))
        describe_overrun(address, found, text, room);
    if (found != NULL && found->start > address)
        append_text(text, room, "%zu bytes before the start of %s, which has %zu bytes: element -%zu, %s",
                    found->start - address, name, found->bytes, (found->start - address - 1) / unit + 1, unit_words);
    else if (found != NULL && address - found->start < found->bytes)
        append_text(text, room, "%s[%zu], %s", name, (address - found->start) / unit, unit_words);
    else if (found != NULL && address - found->start < found->mapping_bytes)
        append_text(text, room, "byte %zu of %s, which has %zu bytes: element %zu, %s", address - found->start, name,
                    found->bytes, (address - found->start) / unit, unit_words);
    else if (address < page)
        append_text(text, room, "address %#lx: a null pointer", address);
    else
        describe_far(address, text, room);
}

struct words describe_address(uintptr_t address) {
    struct words words;
    describe_stray(address, 0, words.text, sizeof words.text);
    return words;
}

void describe_stray(uintptr_t address, uintptr_t before, char *text, size_t room) {
    size_t offset = simt_worker != NULL ? address - (uintptr_t)simt_worker->shared.start : SIZE_MAX / 2;
    if (offset < SHARED_BYTES_MAX) {
        describe_shared(simt_worker, offset, text, room);
        if (simt_self != NULL && simt_self->home != simt_worker) /* of the other block of the cluster */
            append_text(text, room, " of block (%u,%u,%u)", XYZ(simt_worker->block_index));
    } else if (-offset <= 4096)
        snprintf(text, room, "%zu bytes before the start of the block's shared memory", -offset);
    else
        describe_global(address, before, text, room);
}
