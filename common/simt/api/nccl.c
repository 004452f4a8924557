/* The small NCCL of include/nccl.h. A call joins the calls of its thread's group; when the group ends, they are in their streams. A send
 * and a receive, or a collective's calls of all ranks, come about when all of them are there: then the bytes move, and the clocks
 * of memory/streams.h learn of one another. Work that a stream has behind a call that has not come about must wait, and with it
 * the host thread that gives it: work is done when its call returns. A thread that waits lets others call. Where no other thread
 * can, it waits for ever on a card too, and that is told.
 *
 * Within a stream, the calls of one group have no order. Sends come first in its clock, so that who has received knows of no other call
 * of the sender's group.
 */
#include "nccl_calls.h"

#include <execinfo.h>
#include <unistd.h>

static unsigned long groups;

const char *ncclGetErrorString(ncclResult_t result) {
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "operation in progress"};
    return (unsigned)result < ncclNumResults ? texts[result] : "unknown result code";
}
const char *ncclGetLastError(ncclComm_t comm) { return simt_last_report(); }
ncclResult_t ncclGetVersion(int *version) {
    if (version == NULL) return ncclInvalidArgument;
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

static void start_up(void) {
    api_communication = nccl_communication;
    api_no_more_calls = nccl_at_end;
    api_calls_wait_for_group = nccl_calls_wait_for_group;
}

/* ---- communicators -------------------------------------------------------------------------------------------------------- */

static bool same_id(const ncclUniqueId *a, const ncclUniqueId *b) { return memcmp(a, b, sizeof *a) == 0; }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    ONE_HOST_THREAD;
    static int made;
    if (id == NULL) return ncclInvalidArgument;
    start_up();
    *id = (ncclUniqueId){{0}};
    snprintf(id->internal, sizeof id->internal, "simulated %d %d", (int)getpid(), ++made);
    struct clique *clique = resize_or_die(NULL, sizeof *clique);
    *clique = (struct clique){.next = nccl_cliques, .id = *id};
    nccl_cliques = clique;
    return ncclSuccess;
}

static struct clique *find_clique(const ncclUniqueId *id) {
    struct clique *clique = nccl_cliques;
    while (clique != NULL && !same_id(&clique->id, id)) clique = clique->next;
    return clique;
}

static ncclResult_t join(ncclComm_t *comm, struct clique *clique, int ranks, int rank, int device) {
    if (clique->ranks == 0) {
        clique->ranks = ranks;
        clique->comms = resize_or_die(NULL, (size_t)ranks * sizeof *clique->comms);
    }
    if (clique->ranks != ranks)
        return nccl_refuse(ncclInvalidArgument, "rank %d says that there are %d ranks, another one says %d", rank, ranks,
                           clique->ranks);
    if (clique->comms[rank] != NULL) {
        char *line = line_of_frames(clique->comms[rank]->made, CALL_FRAMES);
        nccl_refuse(ncclInvalidUsage, "rank %d has been made already, at %s", rank, line);
        free(line);
        return ncclInvalidUsage;
    }
    for (int other = 0; other < ranks; other++)
        if (clique->comms[other] != NULL && clique->comms[other]->device == device)
            return nccl_refuse(ncclInvalidUsage, "ranks %d and %d are both on device %d: each rank needs a device of its own",
                               other, rank, device);
    ncclComm_t made = resize_or_die(NULL, sizeof *made);
    *made = (struct ncclComm){.clique = clique, .rank = rank, .device = device};
    backtrace(made->made, CALL_FRAMES);
    clique->comms[rank] = *comm = made;
    clique->joined++, nccl_news++;
    return ncclSuccess;
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices) {
    ONE_HOST_THREAD;
    ncclUniqueId id;
    int there;
    cudaGetDeviceCount(&there);
    if (comms == NULL || count < 1) return nccl_refuse(ncclInvalidArgument, "ncclCommInitAll() of %d ranks", count);
    for (int i = 0; i < count; i++)
        if (!api_is_device(devices != NULL ? devices[i] : i))
            return nccl_refuse(ncclInvalidArgument, "ncclCommInitAll(): there is no device %d: there are %d (SIMT_DEVICES)",
                               devices != NULL ? devices[i] : i, there);
    ncclResult_t result = ncclGetUniqueId(&id);
    for (int i = 0; i < count && result == ncclSuccess; i++)
        result = join(&comms[i], find_clique(&id), count, i, devices != NULL ? devices[i] : i);
    return result;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
    ONE_HOST_THREAD;
    struct clique *clique = find_clique(&id);
    if (comm == NULL || ranks < 1 || rank < 0 || rank >= ranks)
        return nccl_refuse(ncclInvalidArgument, "ncclCommInitRank() of rank %d of %d", rank, ranks);
    if (clique == NULL)
        return nccl_refuse(ncclInvalidArgument,
                           "ncclCommInitRank(): the ncclUniqueId is not of this process: here all ranks belong to one");
    ncclResult_t result = join(comm, clique, ranks, rank, api_device);
    if (result != ncclSuccess) return result;
    if (nccl_group.depth == 0) return nccl_wait_for_ranks(clique);
    APPEND(nccl_group.joins, nccl_group.join_count, nccl_group.join_room) = *comm;
    return ncclSuccess;
}

static bool is_comm(const struct ncclComm *comm) {
    for (const struct clique *clique = nccl_cliques; clique != NULL; clique = clique->next)
        for (int rank = 0; rank < clique->ranks; rank++)
            if (clique->comms[rank] == comm && comm != NULL) return !comm->destroyed;
    return false;
}

static ncclResult_t end_comm(ncclComm_t comm, const char *name, bool waits) {
    ONE_HOST_THREAD;
    if (!is_comm(comm)) return nccl_refuse(ncclInvalidArgument, "%s: it is no communicator, or has been destroyed", name);
    for (unsigned i = 0; i < nccl_given_count && waits && nccl_result_now() == ncclSuccess; i++) {
        if (nccl_given[i]->comm != comm) continue;
        struct clock clock = {0};
        streams_tell(&clock, &nccl_given[i]->operation);
        nccl_communication(&clock, true);
        free(clock.known);
    }
    comm->destroyed = true;
    return nccl_result_now();
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return comm == NULL ? ncclSuccess : end_comm(comm, "ncclCommDestroy()", true); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return comm == NULL ? ncclSuccess : end_comm(comm, "ncclCommAbort()", false); }

#define OF_COMM(name, type, value)                                                                                             \
    ncclResult_t name(type comm, int *result) {                                                                                \
        ONE_HOST_THREAD;                                                                                                       \
        if (!is_comm(comm) || result == NULL) return nccl_refuse(ncclInvalidArgument, #name "(): it is no communicator");      \
        *result = value;                                                                                                       \
        return ncclSuccess;                                                                                                    \
    }
OF_COMM(ncclCommCount, const ncclComm_t, comm->clique->ranks)
OF_COMM(ncclCommCuDevice, const ncclComm_t, comm->device)
OF_COMM(ncclCommUserRank, const ncclComm_t, comm->rank)
ncclResult_t ncclCommFinalize(ncclComm_t comm) { return is_comm(comm) ? nccl_result_now() : ncclInvalidArgument; }
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
    *error = nccl_result_now();
    return is_comm(comm) ? ncclSuccess : ncclInvalidArgument;
}

/* ---- groups -------------------------------------------------------------------------------------------------------------------- */

ncclResult_t ncclGroupStart(void) {
    ONE_HOST_THREAD;
    start_up();
    if (nccl_group.depth++ == 0) {
        nccl_open_groups++;
        memset(nccl_last_start, 0, sizeof nccl_last_start);
        backtrace(nccl_last_start, CALL_FRAMES);
    }
    return nccl_result_now();
}

/* No two of one stream touch the same bytes, as they run at the same time; streams of one rank wait for one another. */
static bool calls_are_apart(void) {
    for (unsigned i = 0; i < nccl_group.call_count; i++)
        for (unsigned j = 0; j < nccl_group.call_count; j++) {
            const struct call *a = nccl_group.calls[i], *b = nccl_group.calls[j];
            const char *verb = a->comm == b->comm ? nccl_call_own_overlap(a, b) : NULL;
            if (verb == NULL) continue;
            char first[600] = "", second[600] = "";
            nccl_call_name(a, first, sizeof first), nccl_call_name(b, second, sizeof second);
            if (a == b)
                nccl_fail("the two buffers of %s overlap, and are not in place", first);
            else
                nccl_fail("%s %s %s writes: the calls of one group run at the same time, so they need buffers of their own",
                          first, verb, second);
            return false;
        }
    return true;
}

static bool give(struct call *call) {
    struct CUstream_st *stream = call->stream;
    call->group = groups;
    call->operation = streams_next(stream, nccl_names[call->kind], NULL);
    memcpy(call->operation.called, call->called, sizeof call->called);
    if (nccl_call_reads(call) && !nccl_call_use(call, &call->before, nccl_call_read_by(call), false)) return false;
    APPEND(nccl_given, nccl_given_count, nccl_given_room) = call, nccl_news++;
    return true;
}

static void give_all(void) {
    struct clock together = {0};
    for (unsigned i = 0; i < nccl_group.call_count; i++) { /* what came before each, and before the other streams of its rank */
        together.count = 0;
        for (unsigned j = 0; j < nccl_group.call_count; j++)
            if (nccl_group.calls[j]->comm == nccl_group.calls[i]->comm) {
                streams_advance(nccl_group.calls[j]->stream);
                clock_join(&together, &nccl_group.calls[j]->stream->clock);
            }
        clock_copy(&nccl_group.calls[i]->before, &together);
    }
    free(together.known);
    groups++;
    for (int kind = SEND; kind <= BROADCAST; kind++)
        for (unsigned i = 0; i < nccl_group.call_count && simt_sticky_error() == cudaSuccess; i++)
            if ((int)nccl_group.calls[i]->kind == kind) give(nccl_group.calls[i]);
    for (unsigned i = 0; i < nccl_group.call_count; i++)
        for (unsigned j = 0; j < nccl_group.call_count; j++)
            if (nccl_group.calls[i]->comm == nccl_group.calls[j]->comm &&
                nccl_group.calls[i]->stream != nccl_group.calls[j]->stream)
                streams_tell(&nccl_group.calls[i]->stream->clock, &nccl_group.calls[j]->operation);
}

static void end_group(void) {
    for (unsigned i = 0; i < nccl_group.call_count && simt_sticky_error() == cudaSuccess;
         i++) { /* what its streams have had before */
        streams_advance(nccl_group.calls[i]->stream);
        nccl_communication(&nccl_group.calls[i]->stream->clock, true);
    }
    if (simt_sticky_error() == cudaSuccess && calls_are_apart()) give_all();
    while (simt_sticky_error() == cudaSuccess && nccl_come_about()) {
    }
    host_watch();
}

ncclResult_t ncclGroupEnd(void) {
    ONE_HOST_THREAD;
    if (nccl_group.depth == 0) return nccl_refuse(ncclInvalidUsage, "ncclGroupEnd() without ncclGroupStart()");
    if (--nccl_group.depth > 0) return nccl_result_now();
    nccl_open_groups--;
    nccl_group.gives = true;
    for (unsigned i = 0; i < nccl_group.join_count; i++) nccl_wait_for_ranks(nccl_group.joins[i]->clique);
    if (nccl_group.call_count > 0) end_group();
    nccl_group.gives = false;
    nccl_group.call_count = nccl_group.join_count = 0;
    return nccl_result_now();
}

static ncclResult_t add(struct call call, cudaStream_t handle) {
    ONE_HOST_THREAD;
    const char *name = nccl_names[call.kind];
    if (simt_sticky_error() != cudaSuccess) return ncclUnhandledCudaError;
    if (!is_comm(call.comm)) return nccl_refuse(ncclInvalidArgument, "%s: it is no communicator, or has been destroyed", name);
    if ((unsigned)call.type >= ncclNumTypes || (unsigned)call.op >= ncclNumOps)
        return nccl_refuse(ncclInvalidArgument, "%s: type %d, operation %d: there are none such", name, (int)call.type,
                           (int)call.op);
    bool sums = call.kind >= REDUCE_SCATTER && call.kind <= REDUCE;
    if (sums && call.type >= ncclFloat8e4m3)
        return nccl_refuse(ncclInvalidArgument, "%s: the simulated device does not add %s", name, nccl_types[call.type].name);
    if (call.peer < 0 || call.peer >= call.comm->clique->ranks)
        return nccl_refuse(ncclInvalidArgument, "%s of rank %d: there is no rank %d: there are %d ranks", name, call.comm->rank,
                           call.peer, call.comm->clique->ranks);
    int current = api_device;
    api_device = call.comm->device; /* whose default stream is meant */
    call.stream = api_stream(handle);
    api_device = current;
    if (call.stream == NULL) return nccl_refuse(ncclInvalidArgument, "%s: its stream is none, or has been destroyed", name);
    if (call.stream->device != call.comm->device) {
        char stream[400];
        streams_name_own(call.stream, stream, sizeof stream);
        return nccl_refuse(ncclInvalidArgument, "%s of rank %d, which is on device %d, in %s", name, call.comm->rank,
                           call.comm->device, stream);
    }
    if ((nccl_call_reads(&call) && nccl_call_buffer_is_refused(&call, nccl_call_read_by(&call), "send")) ||
        (nccl_call_writes(&call) && nccl_call_buffer_is_refused(&call, nccl_call_written_by(&call), "receive")))
        return ncclInvalidArgument;
    struct call *kept = resize_or_die(NULL, sizeof *kept);
    *kept = call;
    kept->thread = pthread_self();
    backtrace(kept->called, CALL_FRAMES);
    ncclGroupStart();
    APPEND(nccl_group.calls, nccl_group.call_count, nccl_group.call_room) = kept;
    return ncclGroupEnd();
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    return add((struct call){.kind = SEND, .from = from, .count = count, .type = type, .peer = peer, .comm = comm}, stream);
}
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
    return add((struct call){.kind = RECEIVE, .to = to, .count = count, .type = type, .peer = peer, .comm = comm}, stream);
}
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    return add((struct call){.kind = ALL_GATHER, .from = from, .to = to, .count = count, .type = type, .comm = comm}, stream);
}
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
    return add(
        (struct call){.kind = REDUCE_SCATTER, .from = from, .to = to, .count = count, .type = type, .op = op, .comm = comm},
        stream);
}
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
    return add((struct call){.kind = ALL_REDUCE, .from = from, .to = to, .count = count, .type = type, .op = op, .comm = comm},
               stream);
}
ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
    return add(
        (struct call){
            .kind = REDUCE, .from = from, .to = to, .count = count, .type = type, .op = op, .peer = root, .comm = comm},
        stream);
}
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
    return add(
        (struct call){.kind = BROADCAST, .from = from, .to = to, .count = count, .type = type, .peer = root, .comm = comm},
        stream);
}
ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
