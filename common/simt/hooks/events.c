/* Who is told what happens in a block: one function per event calls the race detector, the meter and the trace.
 *
 * Invariant: the shadow comes first, because a fault ends the block; then the meter, which puts the requests before the event
 * together and shows them to the trace; then the trace notes the event itself. So a trace has requests and events in order.
 *
 * Accesses are not told here: hooks.c calls the shadow and the meter itself, as each instruction counts there; nor is what only the
 * meter counts, as a product. A new detector adds a line to the events that it needs; the cells of stamp.h know of accesses. */
#include "events.h"

#include "async_shadow.h"
#include "device_memory.h"
#include "hooks.h"
#include "meter.h"
#include "trace.h"

void event_block_started(struct worker *worker) {
    shadow_start_block(worker, worker->block_number);
    worker->meter.watched = trace_start_block(worker);
    meter_start_block(worker);
}

void event_block_ended(struct worker *worker) {
    shadow_report_unwritten(worker);
    shadow_settle_doubt(worker);
    if (worker->meter.on) meter_block(worker);
}

/* `warp` -1: a barrier. */
static void count(struct worker *worker, int warp, const struct thread *thread) {
    if (worker->meter.counted) meter_event(worker, warp, &thread->place);
    if (worker->meter.watched) trace_event(worker, warp, thread);
}

void event_barrier(struct worker *worker, const struct thread *last) {
    shadow_barrier(worker, last);
    if (worker->async.on) async_meet_all(worker);
    if (!worker->meter.on) return;
    meter_block(worker);
    count(worker, -1, last);
}

void event_phase_ended(struct worker *worker, const struct thread *last, const char *space, unsigned object, unsigned phase,
                       const void *pc) {
    shadow_barrier(worker, last);
    meter_phase(worker);
    if (worker->meter.watched) trace_sync(worker, NULL, (struct sync){space, "phase", object, phase, 0, pc});
}

/* What the running thread has accessed stands in the trace before what it does now, as requests of one lane. A meter would count them. */
static void trace_accesses(struct worker *worker) {
    unsigned lane = simt_self->linear % WARP_SIZE;
    if (simt_self->home == worker && !worker->meter.counted) meter_lanes(worker, simt_self - lane, 1u << lane);
}

void event_sync(const char *space, const char *what, unsigned object, unsigned phase, int64_t bytes, const void *pc) {
    if (!simt_worker->meter.watched) return;
    trace_accesses(simt_worker);
    trace_sync(simt_worker, simt_self, (struct sync){space, what, object, phase, bytes, pc});
}

void event_unit(size_t shared, uintptr_t global, uint64_t inside) {
    if (simt_worker->meter.watched) trace_unit(simt_worker, (uint32_t)shared, global, inside);
}

void event_lanes_met(struct worker *worker, struct thread *first_lane, unsigned lanes, bool orders, int times) {
    if (orders) shadow_collective(&worker->warps[first_lane->linear / WARP_SIZE], first_lane, lanes);
    if (orders && worker->async.on) async_meet(worker, first_lane, lanes);
    if (!worker->meter.on) return;
    meter_lanes(worker, first_lane, lanes);
    for (; times > 0; times--) count(worker, (int)(first_lane->linear / WARP_SIZE), &first_lane[__builtin_ctz(lanes)]);
}

void event_copy_issued(struct worker *worker, const void *from, void *to, size_t bytes, size_t zero_bytes, const void *pc) {
    size_t offset = shared_offset_of(worker, (uintptr_t)to);
    bool metering = worker->meter.on;
    if (zero_bytes < bytes) {
        simt_check_access(from, bytes - zero_bytes, ACCESS_COPY, false, pc);
        if (metering) meter_destination(from, offset);
    } else if (metering && bytes < 16) { /* nvcc makes two instructions of it: one copies, the other one writes zeros */
        meter_access((uintptr_t)to, bytes, ACCESS_COPY, SPACE_SHARED, pc);
        meter_destination(to, offset);
    }
    /* The copy has been counted, where it reads. */
    simt_check_uncounted(to, bytes, ACCESS_WRITE, false, pc);
    shadow_pending(worker, offset, bytes, true);
}

void event_groups(enum access_kind what, unsigned groups, const void *pc) {
    if (simt_worker->meter.watched) meter_access(groups, 0, what, SPACE_GLOBAL, pc);
}

void event_copy_landed(struct worker *worker, const void *to, size_t bytes, uint64_t accesses) {
    shadow_pending(worker, shared_offset_of(worker, (uintptr_t)to), bytes, false);
    if (worker->meter.counted) meter_copy_landed(worker, accesses);
}

void event_tensor_copy(enum tensor_traffic kind, uint64_t sectors, uintptr_t base, unsigned barrier, const void *pc) {
    static const char *const names[] = {
        [TENSOR_LOAD] = "bulk load", [TENSOR_STORE] = "bulk store", [TENSOR_REDUCTION] = "bulk add"};
    meter_tensor(simt_worker, kind, sectors);
    if (!simt_worker->meter.watched) return;
    trace_accesses(simt_worker);
    trace_units(simt_worker, simt_self, (struct sync){"bulk", names[kind], barrier, 0, 0, pc}, base);
}

void event_product(unsigned wavefronts, const struct thread *first_lane, const void *pc) {
    if (wavefronts > 0) meter_product(simt_worker, wavefronts);
    if (simt_worker->meter.watched) trace_units(simt_worker, first_lane, (struct sync){"operand", "wgmma", 0, 0, 0, pc}, 0);
}

void event_launch_ended(struct launch *launch) {
    trace_launch_done(launch);
    if (meter_every > 0) meter_launch_done(launch);
}
