/* The block's barrier, waiting until a condition holds, and the words for a block in which nobody can go on. */
#include "async_work.h"
#include "collectives.h"

#include "events.h"
#include "report.h"

/* Barriers match by source line: two different __syncthreads() met by parts of a block are an error, though a card's
 * barrier counter would let them pass for one another. */
static bool tolerate_two_lines(const struct place *a, const struct place *b) {
    if (simt_strict) return false;
    const char *key = b->file + b->line; /* of this line, as good as an address */
    if (!simt_warned(key))
        simt_warn(key, "parts of the block meet at two barriers: %s in %s:%d and %s in %s:%d", PLACE(*b), PLACE(*a));
    return true;
}

/* Where the thread waits: "__syncthreads() in FILE:LINE", and of a line in a header what calls it. */
static char *where(const struct thread *thread) {
    char *line = source_line(thread->last_pc), *calls = strstr(line, ", called at "), *words;
    if (asprintf(&words, "%s in %s:%d%s", PLACE(thread->place), calls != NULL ? calls : "") < 0) abort();
    free(line);
    return words;
}

/* Rule 20. Whoever comes to a named barrier must know that the round before is over: in another order it may count for that one. */
void named_judge_round(int id, const struct thread *thread) {
    const struct named_barrier *barrier = &thread->home->async.work->named[id];
    if (barrier->round == 0 || row_of(thread)[rounds_column(thread->home->async.shadow, (unsigned)id)] >= barrier->round)
        return;
    if (thread->home->shadow.block_synchronises && atomic_load(&thread->home->launch->fenced)) return; /* by flags, perhaps */
    simt_fail_at(
        thread, NULL, cudaErrorLaunchFailure,
        "%s:%d: %s at barrier %d, of which this thread does not know that the round before is over: that one is of %d "
        "threads, %s in %s:%d among them, and in another order this thread counts for it. Let them meet in between, or "
        "take another number",
        thread->place.file, thread->place.line, thread->place.what, id, barrier->threads, PLACE(barrier->first));
}

/* bar.sync of some threads at barrier 0, which __syncthreads() is of all. */
static void judge_barrier_zero(const struct worker *worker, const struct thread *self) {
    const struct named_barrier *zero = &worker->async.work->named[0];
    if (zero->arrived > 0)
        simt_fail_at(self, NULL, cudaErrorLaunchFailure,
                     "%s:%d: %s is barrier 0 of %u threads, at which %s in %s:%d expects %d: take another number there",
                     self->place.file, self->place.line, self->place.what, worker->launch->threads, PLACE(zero->first),
                     zero->threads);
    named_judge_round(0, self);
}

/* All that are left of the block have come to a barrier: at the same line, or as is tolerated. */
static void release_all(struct worker *worker, const struct thread *last) {
    FOR_EACH_THREAD (thread, worker) {
        if (thread->state == DONE) continue;
        if (!same_place(&thread->place, &last->place) && !tolerate_two_lines(&thread->place, &last->place))
            simt_fail(NULL, cudaErrorLaunchFailure,
                      "divergent barrier: this thread waits at %s while thread (%u,%u,%u) waits at %s; every thread of a block "
                      "must reach the same barrier",
                      where(last), XYZ(thread->index), where(thread));
        thread->state = READY;
        thread->votes = worker->barrier.votes;
    }
    worker->barrier.arrived = 0;
    event_barrier(worker, last);
}

int simt_block_barrier(const char *name, int predicate, const char *file, int line) {
    struct worker *worker = simt_worker;
    struct thread *self = simt_self;
    come_to(name, file, line, __builtin_return_address(0));
    if (worker->async.on) judge_barrier_zero(worker, self);
    if (worker->barrier.arrived++ == 0) worker->barrier.votes = 0;
    worker->barrier.votes += predicate;
    if (worker->barrier.arrived < worker->launch->threads)
        fiber_wait(AT_BARRIER);
    else
        release_all(worker, self);
    return self->votes;
}

bool condition_holds(struct thread *thread) { return thread->condition->holds(thread->condition_data); }

void simt_wait_until(const struct simt_condition *condition, void *data, const char *file, int line) {
    if (condition->holds(data)) return;
    struct thread *self = simt_self;
    self->place = place_in_kernel(condition->name, file, line);
    self->condition = condition;
    self->condition_data = data;
    simt_furthest = 0;
    do fiber_wait(AT_CONDITION);
    while (!condition->holds(data));
}

/* Threads that have returned count as arrived on a card. */
static bool tolerate_returned(struct worker *worker) {
    struct thread *first = NULL;
    FOR_EACH_THREAD (thread, worker) {
        if (thread->state == DONE) continue;
        if (thread->state != AT_BARRIER) return false;
        if (first == NULL) first = thread;
    }
    if (simt_strict || first == NULL) return false;
    const char *key = first->place.file + first->place.line;
    if (!simt_warned(key))
        simt_warn(key, "%u threads wait at %s in %s:%d, and the others have returned from the kernel", worker->barrier.arrived,
                  PLACE(first->place));
    release_all(worker, first);
    return true;
}

/* Of the threads of a block: who waits where, and for what. True: some wait for what can be described. */
static bool describe_waits(struct worker *worker, bool of_cluster, char *text, size_t room, unsigned *places) {
    enum { MOST_PLACES = 6 };
    const struct uint3 block = worker->block_index;
    bool described = false;
    enter_block(worker);
    FOR_EACH_THREAD (thread, worker) {
        if (thread->state == DONE || *places == MOST_PLACES) continue;
        const struct thread *first = NULL; /* at its place */
        unsigned count = 0;
        FOR_EACH_THREAD (other, worker)
            if (other->state != DONE && same_place(&other->place, &thread->place) && count++ == 0) first = other;
        if (first != thread) continue;
        append_text(text, room, "%s%u threads", (*places)++ > 0 ? "; " : "", count);
        if (of_cluster) append_text(text, room, " of block (%u,%u,%u)", XYZ(block));
        append_text(text, room, ", (%u,%u,%u) among them, wait at %s", XYZ(thread->index), where(thread));
        if (thread->state != AT_CONDITION || thread->condition->describe == NULL) continue;
        char what[300];
        thread->condition->describe(thread->condition_data, what, sizeof what);
        append_text(text, room, " %s", what);
        described = true;
    }
    return described;
}

/* Where a barrier in shared memory, a named one or that of a cluster is among what is waited for. False: none is. */
static bool explain_conditions(struct worker *const blocks[], unsigned count, const char *elsewhere) {
    char text[2800] = "";
    unsigned places = 0;
    bool described = false;
    for (unsigned b = 0; b < count; b++) described |= describe_waits(blocks[b], count > 1, text, sizeof text, &places);
    if (described) simt_fail(NULL, cudaErrorLaunchFailure, "deadlock: no thread can go on: %s%s", text, elsewhere);
    return described;
}

bool explain_deadlock(struct worker *const blocks[], unsigned count, const char *elsewhere) {
    unsigned first = 0;
    while (first + 1 < count && blocks[first]->alive == 0) first++;
    struct worker *worker = blocks[first];
    enter_block(worker);
    if (tolerate_returned(worker) || explain_conditions(blocks, count, elsewhere)) return !atomic_load(&worker->launch->failed);
    enter_block(worker);
    const struct thread *waiting = NULL, *missing = NULL, *returned = NULL;
    unsigned at_same = 0;
    FOR_EACH_THREAD (thread, worker) {
        if (thread->state == DONE) {
            if (returned == NULL) returned = thread;
            continue;
        }
        if (waiting == NULL) waiting = thread; /* the first one, with which the others are compared */
        if (same_place(&thread->place, &waiting->place))
            at_same++;
        else if (missing == NULL)
            missing = thread;
    }
    if (missing != NULL) {
        simt_fail(
            NULL, cudaErrorLaunchFailure,
            "divergent barrier: %u threads wait at %s, thread (%u,%u,%u) among them, but thread (%u,%u,%u) waits at %s: a "
            "barrier or warp collective inside a branch or loop that not all of its threads take",
            at_same, where(waiting), XYZ(waiting->index), XYZ(missing->index), where(missing));
    } else if (returned != NULL) {
        bool accessed = returned->last_pc != NULL;
        char *line = source_line(returned->last_pc);
        simt_fail(NULL, cudaErrorLaunchFailure,
                  "barrier not reached: %u threads wait at %s, thread (%u,%u,%u) among them, but thread "
                  "(%u,%u,%u) has returned from the kernel (%s%s): do not return before a barrier, nor put one in a "
                  "branch that only some threads take",
                  at_same, where(waiting), XYZ(waiting->index), XYZ(returned->index),
                  accessed ? "its last access to memory was at " : "it made no access to memory", accessed ? line : "");
        free(line);
    } else {
        simt_fail(NULL, cudaErrorLaunchFailure, "%u threads wait at %s and none can go on: %s", at_same, where(waiting),
                  waiting->state == AT_CONDITION ? "no thread is left that could arrive; does the barrier expect more of them?"
                                                 : "their masks differ");
    }
    return false;
}
