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
    size_t base = worker->shared.base, dynamic_bytes = worker->launch->dynamic_shared_bytes;
    size_t end = below != NULL ? below->offset + below->bytes : base + dynamic_bytes;
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
    else if (dynamic_bytes > 0 || above == NULL)
        snprintf(text, room, "byte %s%zu of the block's dynamic shared memory (%zu bytes: the third launch argument)",
                 offset < base ? "-" : "", offset < base ? base - offset : offset - base, dynamic_bytes);
    if (above == NULL) return;
    if (text[0] != '\0') append_text(text, room, " and ");
    append_gap((above->offset - offset - 1) / above->element_bytes + 1, "before the start", above, text, room);
}

struct words describe_promise(size_t offset) {
    const struct worker_shared *shared = &simt_worker->shared;
    struct words words = {""};
    if (shared->base > 0 && offset < shared->base + simt_worker->launch->dynamic_shared_bytes)
        snprintf(words.text, sizeof words.text,
                 "; dynamic shared memory is declared at a multiple of %zu, and with SIMT_SHARED_BASE=least begins at no more: "
                 "round its start up, or declare it with __align__",
                 shared->promised);
    return words;
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

struct origin {
    const struct allocation *of;
    size_t at;      /* of its callers: the call in the program's source */
    bool is_shared; /* by other callers of the function there */
};
static void compare_callers(const struct allocation *other, void *data) {
    struct origin *origin = data;
    void *const *own = origin->of->callers + origin->at, *const *others = other->callers + origin->at;
    origin->is_shared |= own[0] == others[0] && own[1] != others[1];
}

/* Of the call in the program's source, where debug information has it. Where a function allocates for several callers, its
 * caller's place as well. */
static char *find_origin(const struct allocation *allocation) {
    static const char *const calls[] = {
        [DEVICE] = "cudaMalloc", [MANAGED] = "cudaMallocManaged", [PAGE_LOCKED] = "cudaMallocHost"};
    void *const *callers = allocation->callers;
    struct origin origin = {allocation, 0, false};
    char *line = source_line_alone(callers[0]), *text = NULL;
    while (!source_line_is_known(line) && callers[origin.at + 1] != NULL && is_runtime_code(callers[origin.at]))
        free(line), line = source_line_alone(callers[++origin.at]);
    char *caller = source_line_alone(callers[origin.at + 1]);
    if (source_line_is_known(caller)) memory_for_each(compare_callers, &origin);
    if (!source_line_is_known(line))
        text = strdup("");
    else if (asprintf(&text, " (%s, %s%s%s)", calls[allocation->kind], line, origin.is_shared ? ", called at " : "",
                      origin.is_shared ? caller : "") < 0)
        abort();
    free(line), free(caller);
    return text;
}

/* "O" as the harness calls it, else "bins" and " (cudaMalloc, hist.cu:18)", as far as these are known. */
struct label {
    char name[80];
    const char *origin;
};
static struct label label_of(const struct allocation *allocation) {
    struct label label = {.origin = ""};
    if (allocation->name == NULL) {
        char *none = NULL, *origin = allocation->origin;
        if (origin == NULL) {
            origin = find_origin(allocation);
            if (!atomic_compare_exchange_strong(&((struct allocation *)allocation)->origin, &none, origin))
                free(origin), origin = none;
        }
        label.origin = origin;
    }
    const char *name = allocation->name != NULL ? allocation->name : allocation->variable;
    if (name != NULL || *label.origin != '\0')
        snprintf(label.name, sizeof label.name, "%s", name != NULL ? name : "device allocation");
    else
        snprintf(label.name, sizeof label.name, "device allocation %d", allocation->serial);
    return label;
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
    if (below == NULL || address - (below->start + below->bytes) > 4 * (above->start - address)) return;
    struct label label = label_of(below);
    append_text(text, room, "%zu bytes past the end of %s%s, which has %zu bytes, or ", address - (below->start + below->bytes),
                label.name, label.origin, below->bytes);
}

/* An index of 32 bits leads no further from an array than 2^31 elements of 8 bytes. */
static void describe_far(uintptr_t address, char *text, size_t room) {
    const uintptr_t reach = (uintptr_t)1 << 34;
    const struct allocation *found = memory_nearest(address);
    bool is_past = found != NULL && address - found->start < reach;
    if (!is_past) found = memory_nearest(address + reach);
    char index[400] = "";
    if (is_past || (found != NULL && found->start > address)) {
        struct label label = label_of(found);
        snprintf(index, sizeof index, "%zu bytes %s the start of %s%.200s: an index that %s, ",
                 is_past ? address - found->start : found->start - address, is_past ? "past" : "before", label.name,
                 label.origin, is_past ? "overflowed" : "is negative or overflowed");
    }
    append_text(text, room, "address %#lx, which is no device memory (%sa host pointer, or memory already freed?)", address,
                index);
}

static void describe_global(uintptr_t address, uintptr_t before, char *text, size_t room) {
    const size_t page = 4096;
    const struct allocation *found = most_likely(address, before, page);
    char unit_words[60];
    struct label label = found != NULL ? label_of(found) : (struct label){.origin = ""};
    size_t unit = found != NULL ? unit_of(found, address) : 1;
    snprintf(unit_words, sizeof unit_words, "counted in %zu-byte elements", unit);
    text[0] = '\0';
    if (found != NULL && found->start > address && (before == 0 || memory_find(before) != found))
        describe_overrun(address, found, text, room);
    if (found != NULL && found->start > address)
        append_text(text, room, "%zu bytes before the start of %s%s, which has %zu bytes: element -%zu, %s",
                    found->start - address, label.name, label.origin, found->bytes, (found->start - address - 1) / unit + 1,
                    unit_words);
    else if (found != NULL && address - found->start < found->bytes)
        append_text(text, room, "%s[%zu]%s, %s", label.name, (address - found->start) / unit, label.origin, unit_words);
    else if (found != NULL && address - found->start < found->mapping_bytes)
        append_text(text, room, "byte %zu of %s%s, which has %zu bytes: element %zu, %s", address - found->start, label.name,
                    label.origin, found->bytes, (address - found->start) / unit, unit_words);
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
