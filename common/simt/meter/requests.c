/* Requests: what the lanes of a warp access at once. The lanes run one after the other here, so each keeps a log, and the
 * logs are put together where lanes meet. */
#include "counts.h"
#include "report.h"

enum { LOG_SIZE = 32 };

/* Accesses of one thread that are not yet counted: a ring. */
struct log {
    unsigned start, length;
    struct access entries[LOG_SIZE];
};

static struct log *log_of(const struct thread *thread) { return &simt_worker->meter.logs[thread->linear]; }

void meter_start_block(struct worker *worker) {
    worker->meter.counted = meter_every > 0 && worker->block_number % meter_every == 0;
    worker->meter.on = worker->meter.counted || worker->meter.watched;
    if (!worker->meter.on) return;
    if (worker->meter.counts == NULL) worker->meter.counts = resize_or_die(NULL, sizeof *worker->meter.counts);
    if (worker->meter.counted) meter_end_block(worker->meter.counts);
    if (worker->meter.logs == NULL) worker->meter.logs = resize_or_die(NULL, MAX_BLOCK_THREADS * sizeof *worker->meter.logs);
    for (unsigned i = 0; i < worker->launch->threads; i++) worker->meter.logs[i].start = worker->meter.logs[i].length = 0;
}

void meter_access(uintptr_t address, size_t bytes, enum access_kind kind, enum memory_space space, const void *pc) {
    struct log *log = log_of(simt_self);
    if (log->length == LOG_SIZE) fiber_wait(AT_LOG);
    const void *furthest = (const void *)labs(simt_furthest);
    uint32_t via = furthest > pc ? relative_pc(furthest) : 0;
    simt_furthest = 0;
    simt_self->accesses += space != SPACE_LOCAL && kind != ACCESS_COPY && kind < ACCESS_KINDS;
    log->entries[(log->start + log->length++) % LOG_SIZE] =
        (struct access){address, relative_pc(pc), via, 0, (uint16_t)bytes, (uint8_t)kind, (uint8_t)space};
}

void meter_destination(const void *from, size_t shared_offset) {
    struct log *log = log_of(simt_self);
    struct access *last = &log->entries[(log->start + log->length + LOG_SIZE - 1) % LOG_SIZE];
    if (log->length > 0 && last->kind == ACCESS_COPY && last->address == (uintptr_t)from) last->to = (uint32_t)shared_offset;
}

/* Take from the logs of these lanes one request after the other: of the accesses that stand first in the logs, those at
 * the lowest address of code. The compiler lays code out in the order of the source, so lanes that have left a loop or
 * skipped a branch wait behind it until the others have come as far: where a card, too, brings them together again.
 * A lane that goes back to a loop's head first waits where the loop's body ended, its `via`, like the others; otherwise
 * a lane that has left an inner loop would be put together, a round of the outer loop later, with lanes still in it.
 * Return when all logs are empty, or when a log is empty whose thread stopped because its log was full: that thread may
 * still add accesses. */
void meter_lanes(struct worker *worker, struct thread *first_lane, unsigned lanes) {
    struct log *first_log = &worker->meter.logs[first_lane->linear];
    unsigned live = lanes; /* that have not returned as far as the count has come */
    for (;;) {
        uintptr_t addresses[WARP_SIZE];
        uint32_t destinations[WARP_SIZE];
        struct access *lowest = NULL;
        uint32_t lowest_place = UINT32_MAX;
        unsigned at_lowest = 0, in_space[MEMORY_SPACES] = {0};
        bool alike = true; /* all that stand at the lowest place go on to the same access */
        FOR_EACH_LANE (lane, lanes) {
            struct log *log = &first_log[lane];
            if (log->length == 0) {
                if (first_lane[lane].state == AT_LOG) return;
                if (first_lane[lane].state == DONE) live &= ~(1u << lane);
                lanes &= ~(1u << lane);
                continue;
            }
            struct access *access = &log->entries[log->start];
            uint32_t place = access->via != 0 ? access->via : access->pc;
            if (place > lowest_place) continue;
            if (place < lowest_place) {
                lowest = access;
                lowest_place = place;
                at_lowest = 0;
                memset(in_space, 0, sizeof in_space);
                alike = true;
            }
            alike = alike && access->pc == lowest->pc;
            at_lowest |= 1u << lane;
            in_space[access->space] |= 1u << lane;
            addresses[lane] = access->address;
            destinations[lane] = access->to;
        }
        if (at_lowest == 0) return;
        if (lowest->via != 0 && !(alike && at_lowest == lanes)) { /* past the loop's end, and look again */
            FOR_EACH_LANE (lane, at_lowest) first_log[lane].entries[first_log[lane].start].via = 0;
            continue;
        }
        for (int space = 0; space < MEMORY_SPACES; space++) { /* `inside ? *global : local` is two requests */
            unsigned group = in_space[space];
            if (group == 0) continue;
            const struct log *log = &first_log[__builtin_ctz(group)];
            meter_request(worker, first_lane->linear / WARP_SIZE, addresses, destinations, group, live,
                          &log->entries[log->start]);
        }
        FOR_EACH_LANE (lane, at_lowest) {
            struct log *log = &first_log[lane];
            log->start = (log->start + 1) % LOG_SIZE;
            log->length--;
        }
    }
}

bool meter_make_room(struct worker *worker, unsigned first, unsigned end) {
    bool any = false;
    for (unsigned i = first; i < end && !any; i++) any = worker->threads[i].state == AT_LOG;
    if (!any) return false;
    meter_lanes(worker, &worker->threads[first], lanes_from(first, end));
    for (unsigned i = first; i < end; i++)
        if (worker->threads[i].state == AT_LOG && worker->meter.logs[i].length < LOG_SIZE) worker->threads[i].state = READY;
    return true;
}

void meter_block(struct worker *worker) {
    size_t shared_bytes = worker->launch->dynamic_shared_bytes;
    for (int i = 0; i < worker->shared.array_count; i++) shared_bytes += worker->shared.arrays[i].bytes;
    if (worker->meter.counted && shared_bytes > worker->meter.counts->shared_bytes)
        worker->meter.counts->shared_bytes = shared_bytes;
    for (unsigned first = 0; first < worker->launch->threads; first += WARP_SIZE)
        meter_lanes(worker, &worker->threads[first], lanes_from(first, worker->launch->threads));
}
