/* NCCL's calls in words, and who waits for ever: a thread that waits for calls that no other thread can make any more. */
#include "nccl_calls.h"

#include "scheduler.h"

#include <dirent.h>
#include <unistd.h>

const char *const nccl_names[] = {"ncclSend()",      "ncclRecv()",   "ncclAllGather()", "ncclReduceScatter()",
                                  "ncclAllReduce()", "ncclReduce()", "ncclBroadcast()"};
const struct nccl_type nccl_types[ncclNumTypes] = {{"ncclInt8", 1},     {"ncclUint8", 1},      {"ncclInt32", 4},
                                                   {"ncclUint32", 4},   {"ncclInt64", 8},      {"ncclUint64", 8},
                                                   {"ncclFloat16", 2},  {"ncclFloat32", 4},    {"ncclFloat64", 8},
                                                   {"ncclBfloat16", 2}, {"ncclFloat8e4m3", 1}, {"ncclFloat8e5m2", 1}};

struct call **nccl_given;
unsigned nccl_given_count, nccl_given_room, nccl_news;
struct clique *nccl_cliques;
unsigned nccl_open_groups;
void *nccl_last_start[CALL_FRAMES];
_Thread_local struct nccl_group nccl_group;

/* ---- in words ------------------------------------------------------------------------------------------------------------ */

static char *line_of(void *const called[CALL_FRAMES]) { return line_of_frames(called, CALL_FRAMES); }

void nccl_call_name(const struct call *call, char *text, size_t room) {
    char *line = line_of(call->called);
    append_text(text, room, "the %s of rank %d", nccl_names[call->kind], call->comm->rank);
    if (call->kind <= RECEIVE) append_text(text, room, " %s rank %d", call->kind == SEND ? "to" : "from", call->peer);
    append_text(text, room, " at %s", line);
    free(line);
}

ncclResult_t nccl_refuse(ncclResult_t result, const char *format, ...) {
    char text[2600] = "", *line = calling_line();
    if (source_line_is_known(line)) append_text(text, sizeof text, "%s: ", line);
    APPEND_ARGUMENTS(text, sizeof text, format);
    free(line);
    simt_report(cudaErrorInvalidValue, text);
    return result;
}

void nccl_fail(const char *format, ...) {
    char text[2600] = "";
    APPEND_ARGUMENTS(text, sizeof text, format);
    simt_fail_outside(cudaErrorLaunchFailure, text);
}

ncclResult_t nccl_result_now(void) { return simt_sticky_error() == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError; }

/* ---- who waits for ever ------------------------------------------------------------------------------------------------------ */

static struct waiter {
    pid_t thread;
    unsigned news; /* when it last looked whether it may go on: what has come since, it has not seen yet */
} * waiting;       /* for calls of others */
static unsigned waiting_count, waiting_room;

static unsigned place_among_waiting(pid_t thread) { /* or their count */
    unsigned i = 0;
    while (i < waiting_count && waiting[i].thread != thread) i++;
    return i;
}

/* Does some other thread of the process run, or wait for a device or a disk? `others`: that do not wait here. One that has
 * not looked since the last news may go on: it runs. */
static bool others_run(unsigned *others) {
    DIR *tasks = opendir("/proc/self/task");
    bool run = false;
    *others = 0;
    for (struct dirent *each; tasks != NULL && (each = readdir(tasks)) != NULL;) {
        char path[300], text[400] = "";
        if (each->d_name[0] == '.' || atoi(each->d_name) == gettid()) continue;
        unsigned place = place_among_waiting(atoi(each->d_name));
        if (place < waiting_count) {
            run |= waiting[place].news != nccl_news;
            continue;
        }
        ++*others;
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", each->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL) continue;
        const char *state = fgets(text, sizeof text, file) != NULL ? strrchr(text, ')') : NULL;
        run |= state != NULL && (state[2] == 'R' || state[2] == 'D');
        fclose(file);
    }
    if (tasks != NULL) closedir(tasks);
    return run;
}

/* Others may still call. Asked again and again by a thread that waits; `idle_since` is 0 at first. */
static bool others_may_call(int64_t *idle_since) {
    double patience = 1e9 * simt_setting("SIMT_WATCHDOG_SECONDS", 0.001, 86400, 10);
    unsigned others;
    int64_t now = read_clock(CLOCK_MONOTONIC);
    bool run = others_run(&others);
    if (others <= (unsigned)scheduler_threads() && !run) return false;
    if (run || *idle_since == 0) *idle_since = now;
    return (double)(now - *idle_since) < patience;
}

static void wait_a_moment(void) {
    APPEND(waiting, waiting_count, waiting_room) = (struct waiter){gettid(), nccl_news};
    api_let_others();
    unsigned place = place_among_waiting(gettid());
    waiting[place] = waiting[--waiting_count];
}

bool nccl_call_is_other_side(const struct call *call, const struct call *other) {
    if (other->comm->clique != call->comm->clique) return false;
    if (call->kind > RECEIVE) return other->kind > RECEIVE;
    return call->kind + other->kind == SEND + RECEIVE && call->kind != other->kind && other->comm->rank == call->peer &&
           other->peer == call->comm->rank;
}

static void append_missing(const struct call *call, char *text, size_t room) {
    nccl_call_name(call, text, room);
    if (call->kind <= RECEIVE) {
        append_text(text, room, ", which no %s of rank %d %s rank %d meets", nccl_names[call->kind == SEND ? RECEIVE : SEND],
                    call->peer, call->kind == SEND ? "from" : "to", call->comm->rank);
    } else {
        append_text(text, room, ", which rank");
        const char *between = " ";
        for (int rank = 0; rank < call->comm->clique->ranks; rank++) {
            bool called = false;
            for (unsigned i = 0; i < nccl_given_count; i++)
                called |= nccl_call_is_other_side(call, nccl_given[i]) && nccl_given[i]->comm->rank == rank;
            if (!called) append_text(text, room, "%s%d", between, rank), between = ", ";
        }
        append_text(text, room, " has not called");
    }
}

/* Behind it: what the rank that is waited for has given its streams instead. */
static void append_reason(const struct call *call, char *text, size_t room) {
    int told = 0;
    for (unsigned i = 0; i < nccl_given_count && told < 3; i++) {
        const struct call *other = nccl_given[i];
        if (other == call || other->comm->clique != call->comm->clique ||
            (call->kind <= RECEIVE && other->comm->rank != call->peer))
            continue;
        append_text(text, room, "%s ", told++ == 0 ? "; there is" : ",");
        nccl_call_name(other, text, room);
    }
}

static void tell_never(const struct call *call) {
    char text[2600] = "", *line = calling_line();
    append_text(text, sizeof text, "%s: this waits for ever for ", line);
    append_missing(call, text, sizeof text);
    append_reason(call, text, sizeof text);
    if (nccl_group.gives)
        append_text(
            text, sizeof text,
            "; calls outside of a group run one after the other, and where each rank waits for another one all wait, even if a "
            "card's buffers hide it for few bytes: ncclGroupStart() before the first and ncclGroupEnd() after the last");
    free(line);
    nccl_fail("%s", text);
}

static const struct call *first_given(const struct clock *clock) {
    for (unsigned i = 0; i < nccl_given_count; i++)
        if (streams_come_before(&nccl_given[i]->operation, clock)) return nccl_given[i];
    return NULL;
}

/* All devices begin again. */
static void forget_all(void) {
    while (nccl_given_count > 0)
        free(nccl_given[0]->before.known), free(nccl_given[0]), nccl_given[0] = nccl_given[--nccl_given_count];
    for (struct clique *clique = nccl_cliques; clique != NULL; clique = clique->next)
        for (int rank = 0; rank < clique->ranks; rank++)
            if (clique->comms[rank] != NULL) clique->comms[rank]->destroyed = true;
    nccl_open_groups = nccl_group.depth = nccl_group.call_count = nccl_group.join_count = 0;
}

enum communication nccl_communication(const struct clock *clock, bool waits) {
    if (clock == NULL) forget_all();
    if (clock == NULL) return COME_ABOUT;
    int64_t idle_since = 0;
    const struct call *call;
    while ((call = first_given(clock)) != NULL && simt_sticky_error() == cudaSuccess) {
        if (!others_may_call(&idle_since)) {
            tell_never(call);
            return NEVER;
        }
        if (!waits) return UNDER_WAY;
        wait_a_moment();
    }
    return simt_sticky_error() == cudaSuccess ? COME_ABOUT : NEVER;
}

bool nccl_calls_wait_for_group(const struct CUstream_st *stream, int device) {
    for (unsigned i = 0; i < nccl_group.call_count && simt_sticky_error() == cudaSuccess; i++) {
        const struct call *call = nccl_group.calls[i];
        if (stream != NULL ? call->stream != stream : call->stream->device != device) continue;
        char text[900] = "", *line = calling_line(), *start = line_of(nccl_last_start);
        nccl_call_name(call, text, sizeof text);
        nccl_fail(
            "%s: this does not wait for %s: a call enters its stream when its group ends, and the group that began at %s has "
            "not ended: "
            "ncclGroupEnd() first",
            line, text, start);
        free(line), free(start);
        return true;
    }
    return false;
}

void nccl_at_end(void) {
    if (simt_sticky_error() != cudaSuccess) return;
    char text[2600] = "at the end of the program: ";
    if (nccl_given_count > 0) {
        append_text(text, sizeof text, "there is ");
        append_missing(nccl_given[0], text, sizeof text);
        append_reason(nccl_given[0], text, sizeof text);
        nccl_fail("%s", text);
    } else if (nccl_open_groups > 0) {
        char *line = line_of(nccl_last_start);
        nccl_fail("%sthe group that began at %s has not ended: ncclGroupEnd() gives its calls to their streams", text, line);
        free(line);
    }
}

ncclResult_t nccl_wait_for_ranks(const struct clique *clique) {
    int64_t idle_since = 0;
    for (; clique->joined < clique->ranks && simt_sticky_error() == cudaSuccess; wait_a_moment())
        if (!others_may_call(&idle_since)) {
            char *line = calling_line();
            nccl_fail(
                "%s: this waits for ever for all %d ranks: %d have called ncclCommInitRank(); one thread calls it for several "
                "ranks between "
                "ncclGroupStart() and ncclGroupEnd()",
                line, clique->ranks, clique->joined);
            free(line);
        }
    return nccl_result_now();
}
