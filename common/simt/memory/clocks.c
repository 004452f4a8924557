/* What streams.c computes with: vector clocks, the bytes that operations have in common, and the names of streams. */
#include "streams.h"

#include "report.h"

#include <stdlib.h>
#include <string.h>

uint64_t clock_known(const struct clock *clock, unsigned slot) { return slot < clock->count ? clock->known[slot] : 0; }

void clock_know(struct clock *clock, unsigned slot, uint64_t of) {
    if (slot >= clock->count) {
        unsigned count = slot + 8;
        clock->known = resize_or_die(clock->known, count * sizeof *clock->known);
        memset(clock->known + clock->count, 0, (count - clock->count) * sizeof *clock->known);
        clock->count = count;
    }
    if (clock->known[slot] < of) clock->known[slot] = of;
}

void clock_join(struct clock *clock, const struct clock *other) {
    for (unsigned slot = 0; slot < other->count; slot++)
        if (other->known[slot] != 0) clock_know(clock, slot, other->known[slot]);
}

void clock_copy(struct clock *clock, const struct clock *other) {
    clock->count = 0;
    clock_join(clock, other);
}

uintptr_t region_first_common(const struct region *region, uintptr_t low, uintptr_t high) {
    size_t row = low > region->start && region->rows > 1 ? (low - region->start) / region->pitch : 0;
    for (; row < region->rows; row++) {
        uintptr_t start = region->start + row * region->pitch, end = start + region->width;
        if (start >= high) return 0;
        if (end > low) return start > low ? start : low;
    }
    return 0;
}

uintptr_t region_common(const struct region *a, const struct region *b) {
    uintptr_t found = 0;
    for (size_t row = 0; row < a->rows && found == 0; row++)
        found = region_first_common(b, a->start + row * a->pitch, a->start + row * a->pitch + a->width);
    return found;
}

bool region_covers(const struct region *a, const struct region *b) {
    if (a->rows == 1 || b->rows != a->rows)
        return a->rows == 1 && a->start <= b->start && a->start + a->width >= b->start + (b->rows - 1) * b->pitch + b->width;
    return a->start == b->start && a->width == b->width && a->pitch == b->pitch;
}

void streams_name_any(unsigned number, int device, void *const made[CALL_FRAMES], char *text, size_t room) {
    char *line = line_of_frames(made, CALL_FRAMES), of_device_text[40] = "";
    bool is_known = source_line_is_known(line);
    if (streams_devices > 1) snprintf(of_device_text, sizeof of_device_text, " of device %d", device);
    if (number == 0)
        snprintf(text, room, "the default stream%s", of_device_text);
    else
        snprintf(text, room, "stream %u%s (%s%s)", number, of_device_text, is_known ? "made at " : "a thread's own",
                 is_known ? line : "");
    free(line);
}

void streams_name_own(const struct CUstream_st *stream, char *text, size_t room) {
    streams_name_any(stream->number, stream->device, stream->made, text, room);
}

void streams_name(const struct operation *operation, char *text, size_t room) {
    text[0] = '\0';
    if (operation->stream == 0) return;
    snprintf(text, room, " in ");
    streams_name_any(operation->stream, operation->device, operation->made, text + 4, room - 4);
}
