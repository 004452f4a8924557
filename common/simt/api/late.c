/* SIMT_STREAMS=late: an asynchronous copy, or what an ncclRecv() receives, happens at the last moment that order allows: when the host waits for
 * it, or when work comes that is ordered behind it. So a host that reads the target, or fills the source again, without a wait gets
 * or gives other numbers. Of what the clocks order, all that comes before comes along, in the order of the calls. */
#include "api.h"

static struct late {
    struct operation operation, other; /* of a message: its receive and its send; of a copy twice the same */
    struct clock before;               /* what it comes after */
    struct copy copy;
    bool now;
} * late;
static unsigned late_count, late_room;

bool api_is_late(void) {
    const char *text = getenv("SIMT_STREAMS");
    if (text == NULL || *text == '\0') return false;
    if (strcmp(text, "late") == 0) return true;
    fprintf(stderr, "simulated device: SIMT_STREAMS is \"%.100s\": it must be late, or nothing\n", text);
    exit(2);
}

void api_move(const struct copy *copy) {
    memory_open(copy->to), memory_open(copy->from);
    for (size_t row = 0; row < copy->rows; row++)
        memmove((char *)copy->to + row * copy->to_pitch, (const char *)copy->from + row * copy->from_pitch, copy->width);
    memory_close(copy->to), memory_close(copy->from);
    for (size_t row = 0; row < copy->rows; row++)
        memory_copied((char *)copy->to + row * copy->to_pitch, (const char *)copy->from + row * copy->from_pitch, copy->width);
}

void api_move_late(const struct copy *copy, const struct operation *operation, const struct operation *other,
                   const struct clock *before) {
    struct late *made = &APPEND(late, late_count, late_room);
    *made = (struct late){*operation, *other, .copy = *copy};
    clock_copy(&made->before, before);
}

void api_run_late(const struct clock *clock) {
    if (late_count == 0) return;
    struct clock needed = {0};
    if (clock != NULL) clock_join(&needed, clock);
    for (unsigned i = late_count; i-- > 0;) {
        late[i].now =
            clock == NULL || streams_come_before(&late[i].operation, &needed) || streams_come_before(&late[i].other, &needed);
        if (late[i].now) clock_join(&needed, &late[i].before);
    }
    free(needed.known);
    unsigned kept = 0;
    for (unsigned i = 0; i < late_count; i++)
        if (late[i].now)
            api_move(&late[i].copy), free(late[i].before.known);
        else
            late[kept++] = late[i];
    late_count = kept;
}

void api_run_late_before(cudaStream_t stream) {
    if (late_count == 0 || stream == NULL) return;
    streams_advance(stream);
    api_run_late(&stream->clock);
}
