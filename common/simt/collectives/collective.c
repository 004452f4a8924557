/* Warp collectives: shuffles, votes and all other instructions that lanes of one warp execute together are this one
 * mechanism. Each lane of the mask leaves a pointer to its operand and one to where its result goes, and waits. The
 * last to arrive combines, and all go on.
 */
#include "collectives.h"

#include "events.h"
#include "report.h"

static struct thread *first_lane_of(struct thread *thread) { return thread - thread->linear % WARP_SIZE; }

/* A card moves 8 bytes by two shuffles. 4 bytes or fewer arrive here with zeros above them. */
static bool is_wide_shuffle(const struct simt_collective *collective, const struct simt_lanes *lanes) {
    if (collective->combine != collective_exchanges[simt_shfl].combine) return false;
    uint64_t any = 0;
    FOR_EACH_LANE (lane, lanes->present) any |= ((const struct simt_value *)lanes->operand[lane])->value;
    return any >> 32 != 0;
}

/* When every lane that `self` waits for has arrived at the same collective: combine, and let all of them go on. */
static void try_collective(struct warp *warp, struct thread *self) {
    unsigned present = self->mask & warp->live;
    if ((warp->waiting & present) != present) return;
    struct thread *first = first_lane_of(self);
    struct simt_lanes lanes = {.mask = self->mask, .present = present, .first_lane = first};
    FOR_EACH_LANE (lane, present) {
        struct thread *other = &first[lane];
        if (other->mask != self->mask || !same_place(&other->place, &self->place)) return;
        lanes.operand[lane] = other->operand;
        lanes.result[lane] = other->result;
    }
    if ((self->collective->flags & SIMT_ALL_LANES) != 0 && present != 0xffffffffu)
        simt_refuse_lane(&lanes, (unsigned)__builtin_ctz(present),
                         "takes part, but of its warp only the lanes %#010x do: all 32 lanes must", present);
    else if (self->collective->combine != NULL)
        self->collective->combine(&lanes);
    if (atomic_load_explicit(&simt_worker->launch->failed, memory_order_relaxed)) return;
    FOR_EACH_LANE (lane, present) first[lane].state = READY;
    warp->waiting &= ~present;
    event_lanes_met(simt_worker, first, present, (self->collective->flags & SIMT_ORDERS_NOTHING) == 0,
                    is_wide_shuffle(self->collective, &lanes) ? 2 : 1);
}

void simt_refuse_lane(const struct simt_lanes *lanes, unsigned lane, const char *format, ...) {
    char text[400] = "";
    APPEND_ARGUMENTS(text, sizeof text, format);
    const struct thread *thread = (const struct thread *)lanes->first_lane + lane;
    simt_fail_at(thread, thread->last_pc, cudaErrorLaunchFailure, "%s: lane %u %s", thread->place.what, lane, text);
}

void collective_meet(const struct simt_collective *collective, unsigned mask, const void *operand, void *result,
                     const char *file, int line, const void *pc) {
    struct thread *self = simt_self;
    struct warp *warp = &simt_worker->warps[self->linear / WARP_SIZE];
    unsigned lane = self->linear % WARP_SIZE;
    if ((mask >> lane & 1) == 0)
        simt_fail(pc, cudaErrorLaunchFailure, "%s: lane %u calls it with mask %#010x, which does not name that lane",
                  collective->name, lane, mask);
    come_to(collective->name, file, line, pc);
    self->collective = collective;
    self->mask = mask;
    self->operand = operand;
    self->result = result;
    self->state = AT_COLLECTIVE;
    warp->waiting |= 1u << lane;
    try_collective(warp, self);
    if (self->state == AT_COLLECTIVE) fiber_wait(AT_COLLECTIVE);
}

const struct simt_collective *collective_numbered(const struct simt_collective *collectives, unsigned count, unsigned number,
                                                  const void *pc) {
    if (number >= count) simt_fail(pc, cudaErrorIllegalInstruction, "number %u is no exchange between lanes", number);
    return &collectives[number];
}

void simt_meet(enum simt_meeting why, unsigned mask, const char *file, int line) {
    static const struct simt_collective meetings[SIMT_MEETINGS] = {
        [simt_syncwarp] = {"__syncwarp()", NULL, 0},
        [simt_wmma_load] = {"load_matrix_sync()", NULL, SIMT_ALL_LANES},
        [simt_wmma_store] = {"store_matrix_sync()", NULL, SIMT_ALL_LANES},
    };
    const void *pc = __builtin_return_address(0);
    collective_meet(collective_numbered(meetings, SIMT_MEETINGS, why, pc), mask, NULL, NULL, file, line, pc);
}

uint64_t simt_exchange(enum simt_exchanged how, unsigned mask, uint64_t value, int lane, const char *file, int line) {
    const void *pc = __builtin_return_address(0);
    struct simt_value operand = {value, lane};
    uint64_t result = 0;
    collective_meet(collective_numbered(collective_exchanges, SIMT_EXCHANGED, how, pc), mask, &operand, &result, file, line,
                    pc);
    return result;
}

/* On a card the lanes that took one path are active together. Here each lane runs alone, so the question is put off until no lane
 * of the warp can come to the same line any more. */
unsigned simt_active_mask(const char *file, int line) {
    struct thread *self = simt_self;
    come_to("__activemask()", file, line, __builtin_return_address(0));
    simt_worker->warps[self->linear / WARP_SIZE].asking |= 1u << self->linear % WARP_SIZE;
    fiber_wait(AT_ACTIVE_MASK);
    return self->mask;
}

bool collectives_answer_active_mask(struct worker *worker, unsigned first) {
    struct warp *warp = &worker->warps[first / WARP_SIZE];
    if (warp->asking == 0) return false;
    struct thread *first_lane = &worker->threads[first];
    const struct place *place = &first_lane[__builtin_ctz(warp->asking)].place;
    unsigned active = 0;
    FOR_EACH_LANE (lane, warp->asking)
        if (same_place(&first_lane[lane].place, place)) active |= 1u << lane;
    FOR_EACH_LANE (lane, active) {
        first_lane[lane].mask = active;
        first_lane[lane].state = READY;
    }
    warp->asking &= ~active;
    event_lanes_met(worker, first_lane, active, false, 1); /* it tells a lane what the others did, as a vote does */
    return true;
}

void collectives_start_block(struct worker *worker) {
    worker->alive = worker->launch->threads;
    worker->barrier.arrived = 0;
    for (unsigned first = 0; first < worker->launch->threads; first += WARP_SIZE) {
        struct warp *warp = &worker->warps[first / WARP_SIZE];
        warp->live = lanes_from(first, worker->launch->threads);
        warp->waiting = warp->asking = 0;
    }
    async_copies_forget(worker);
}

void collectives_thread_done(struct worker *worker, struct thread *thread) {
    worker->alive--;
    struct warp *warp = &worker->warps[thread->linear / WARP_SIZE];
    warp->live &= ~(1u << thread->linear % WARP_SIZE);
    struct thread *first = first_lane_of(thread);
    FOR_EACH_LANE (lane, warp->waiting)
        if (first[lane].state == AT_COLLECTIVE) try_collective(warp, first + lane);
    if (worker->cluster.next != NULL || worker->cluster.arrived > 0) cluster_thread_done(worker, thread);
}
