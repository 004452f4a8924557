/* What NCCL's calls read and write, and how they come about: which meet, and what then moves or is added. */
#include "nccl_calls.h"

#include "simt_abi.h"

/* ---- what a call reads and writes --------------------------------------------------------------------------------------------- */

static size_t ranks_of(const struct call *call) { return (size_t)call->comm->clique->ranks; }
bool nccl_call_reads(const struct call *call) {
    return call->kind != RECEIVE && (call->kind != BROADCAST || call->comm->rank == call->peer);
}
bool nccl_call_writes(const struct call *call) {
    return call->kind != SEND && (call->kind != REDUCE || call->comm->rank == call->peer);
}
static struct region whole(const void *start, size_t bytes) { return (struct region){(uintptr_t)start, bytes, bytes, 1}; }
struct region nccl_call_read_by(const struct call *call) {
    return whole(call->from, call->count * nccl_types[call->type].bytes * (call->kind == REDUCE_SCATTER ? ranks_of(call) : 1));
}
struct region nccl_call_written_by(const struct call *call) {
    return whole(call->to, call->count * nccl_types[call->type].bytes * (call->kind == ALL_GATHER ? ranks_of(call) : 1));
}
static bool overlap(struct region a, struct region b) { return a.start < b.start + b.width && b.start < a.start + a.width; }

/* In place: the one buffer is a part of the other, the rank's own. */
static bool is_in_place(const struct call *call) {
    size_t own = (size_t)call->comm->rank * call->count * nccl_types[call->type].bytes;
    uintptr_t from = (uintptr_t)call->from, to = (uintptr_t)call->to;
    return call->kind == ALL_GATHER ? from == to + own : call->kind == REDUCE_SCATTER ? to == from + own : from == to;
}

const char *nccl_call_own_overlap(const struct call *a, const struct call *b) {
    if (nccl_call_reads(a) && nccl_call_writes(b) && overlap(nccl_call_read_by(a), nccl_call_written_by(b)) &&
        !(a == b && is_in_place(a)))
        return "sends what";
    if (a != b && nccl_call_writes(a) && nccl_call_writes(b) && overlap(nccl_call_written_by(a), nccl_call_written_by(b)))
        return "receives where";
    return NULL;
}

bool nccl_call_buffer_is_refused(const struct call *call, struct region region, const char *side) {
    struct memory_place place = memory_place(region.start, region.width > 0 ? region.width : 1);
    if (region.width == 0) return false;
    const char *name = nccl_names[call->kind];
    if (!place.whole || !device_may_access(place.kind))
        return nccl_refuse(ncclInvalidArgument,
                           "%s: the %zu bytes of its %s buffer do not all lie in one allocation of the device", name,
                           region.width, side);
    if (place.kind == DEVICE && place.allocation->device != call->comm->device)
        return nccl_refuse(ncclInvalidArgument, "%s of rank %d, which is on device %d: its %s buffer, %s, lies on device %d",
                           name, call->comm->rank, call->comm->device, side, describe_address(region.start).text,
                           place.allocation->device);
    return false;
}

/* ---- coming about ---------------------------------------------------------------------------------------------------------- */

bool nccl_call_use(const struct call *call, const struct clock *clock, struct region region, bool written) {
    if (region.width == 0) return true;
    struct CUstream_st as = *call->stream;
    as.clock = *clock;
    return streams_use(&as, &call->operation, &region, written);
}

static void move(void *to, const void *from, size_t bytes) {
    if (bytes == 0 || to == from) return;
    api_move(&(struct copy){to, bytes, from, bytes, bytes, 1, cudaMemcpyDefault});
}

static void drop(struct call *call) {
    unsigned i = 0;
    while (nccl_given[i] != call) i++;
    memmove(nccl_given + i, nccl_given + i + 1, (--nccl_given_count - i) * sizeof *nccl_given);
    free(call->before.known), free(call), nccl_news++;
}

/* One thread that calls for several ranks must do so in one group: the first call may wait for the other side before it returns. */
static bool is_one_group(const struct call *a, const struct call *b) {
    if (a->group == b->group || !pthread_equal(a->thread, b->thread)) return true;
    char first[600] = "", second[600] = "";
    nccl_call_name(a, first, sizeof first), nccl_call_name(b, second, sizeof second);
    nccl_fail(
        "%s and %s are not in one group, though one thread makes both: on a card the first may wait for the other before it "
        "returns; "
        "ncclGroupStart() before the first and ncclGroupEnd() after the last",
        first, second);
    return false;
}

static bool agree(const struct call *a, const struct call *b) {
    bool p2p = a->kind <= RECEIVE;
    if (a->count == b->count && a->type == b->type && (p2p || a->kind == b->kind) &&
        (p2p || ((a->op == b->op || a->kind == ALL_GATHER || a->kind == BROADCAST) &&
                 (a->peer == b->peer || (a->kind != REDUCE && a->kind != BROADCAST)))))
        return true;
    char first[600] = "", second[600] = "";
    nccl_call_name(a, first, sizeof first), nccl_call_name(b, second, sizeof second);
    if (!p2p && a->kind != b->kind)
        nccl_fail("%s meets %s: all ranks must call the same collectives in the same order", first, second);
    else if (a->count != b->count || a->type != b->type)
        nccl_fail("%s is of %zu elements of %s, and %s is of %zu elements of %s: both must say the same", first, a->count,
                  nccl_types[a->type].name, second, b->count, nccl_types[b->type].name);
    else
        nccl_fail("%s and %s have different %s", first, second, a->op != b->op ? "operations" : "roots");
    return false;
}

static bool meet(struct call *send, struct call *receive) {
    if (!is_one_group(send, receive) || !agree(send, receive)) return false;
    struct clock *clock = &receive->stream->clock;
    clock_join(clock, &send->before);
    streams_tell(clock, &send->operation);
    if (!nccl_call_use(receive, clock, nccl_call_written_by(receive), true)) return false;
    size_t bytes = nccl_call_written_by(receive).width;
    if (bytes > 0 && api_is_late())
        api_move_late(&(struct copy){receive->to, bytes, send->from, bytes, bytes, 1, cudaMemcpyDefault}, &receive->operation,
                      &send->operation, clock);
    else
        move(receive->to, send->from, bytes);
    drop(send), drop(receive);
    return true;
}

static bool is_signed(ncclDataType_t type) { return type == ncclInt8 || type == ncclInt32 || type == ncclInt64; }
static double number(const void *from, ncclDataType_t type, size_t i) {
    switch (type) {
    case ncclFloat16: return simt_half_to_float(((const uint16_t *)from)[i]);
    case ncclBfloat16: return simt_bfloat16_to_float(((const uint16_t *)from)[i]);
    case ncclFloat32: return ((const float *)from)[i];
    default: return ((const double *)from)[i];
    }
}
static void put_number(void *to, ncclDataType_t type, size_t i, double value) {
    switch (type) {
    case ncclFloat16: ((uint16_t *)to)[i] = simt_half_from_double(value, SIMT_NEAREST); break;
    case ncclBfloat16: ((uint16_t *)to)[i] = simt_bfloat16_from_double(value, SIMT_NEAREST); break;
    case ncclFloat32: ((float *)to)[i] = (float)value; break;
    default: ((double *)to)[i] = value;
    }
}
static uint64_t integer(const void *from, ncclDataType_t type, size_t i) {
    switch (type) {
    case ncclInt8: return (uint64_t)(int64_t)((const int8_t *)from)[i];
    case ncclUint8: return ((const uint8_t *)from)[i];
    case ncclInt32: return (uint64_t)(int64_t)((const int32_t *)from)[i];
    case ncclUint32: return ((const uint32_t *)from)[i];
    default: return ((const uint64_t *)from)[i];
    }
}
static bool is_integer(ncclDataType_t type) { return type <= ncclUint64; }

/* Rounded to the type after each rank, in the order of the ranks. `more` NULL: the average of `ranks`. */
static void combine(void *sum, const void *more, size_t count, ncclDataType_t type, ncclRedOp_t op, size_t ranks) {
    for (size_t i = 0; i < count; i++) {
        if (!is_integer(type)) {
            double a = number(sum, type, i), b = more != NULL ? number(more, type, i) : 0;
            put_number(sum, type, i,
                       more == NULL     ? a / (double)ranks
                       : op == ncclProd ? a * b
                       : op == ncclMax  ? (a > b ? a : b)
                       : op == ncclMin  ? (a < b ? a : b)
                                        : a + b);
            continue;
        }
        uint64_t a = integer(sum, type, i), b = more != NULL ? integer(more, type, i) : 0, result;
        bool less = is_signed(type) ? (int64_t)a < (int64_t)b : a < b;
        if (more == NULL)
            result = is_signed(type) ? (uint64_t)((int64_t)a / (int64_t)ranks) : a / ranks;
        else
            result = op == ncclProd ? a * b : op == ncclMax ? (less ? b : a) : op == ncclMin ? (less ? a : b) : a + b;
        memcpy((char *)sum + i * nccl_types[type].bytes, &result, nccl_types[type].bytes); /* the lower bytes */
    }
}

static void put_result(const struct call *call, const void *from, size_t bytes) {
    memory_open(call->to);
    memcpy(call->to, from, bytes);
    memory_close(call->to);
    memory_written_by_host(call->to, bytes);
}

static void reduce(struct call *const *of, size_t ranks) {
    const struct call *first = of[0];
    size_t part = first->count * nccl_types[first->type].bytes, bytes = nccl_call_read_by(first).width,
           count = bytes / nccl_types[first->type].bytes;
    char *sum = resize_or_die(NULL, bytes);
    for (size_t rank = 0; rank < ranks; rank++) {
        memory_open(of[rank]->from);
        if (rank == 0)
            memcpy(sum, of[rank]->from, bytes);
        else
            combine(sum, of[rank]->from, count, first->type, first->op, ranks);
        memory_close(of[rank]->from);
    }
    if (first->op == ncclAvg) combine(sum, NULL, count, first->type, first->op, ranks);
    for (size_t rank = 0; rank < ranks; rank++)
        if (nccl_call_writes(of[rank])) put_result(of[rank], sum + (first->kind == REDUCE_SCATTER ? rank * part : 0), part);
    free(sum);
}

/* `of` has the call of each rank. */
static bool collect(struct call **of, size_t ranks) {
    const struct call *first = of[0];
    for (size_t rank = 1; rank < ranks; rank++)
        if (!is_one_group(first, of[rank]) || !agree(first, of[rank])) return false;
    for (size_t rank = 0; rank < ranks; rank++) /* of whose bytes a rank has some, it knows what came before */
        for (size_t other = 0; other < ranks && nccl_call_writes(of[rank]); other++) {
            if (!nccl_call_reads(of[other]) || other == rank) continue;
            clock_join(&of[rank]->stream->clock, &of[other]->before);
            streams_tell(&of[rank]->stream->clock, &of[other]->operation);
        }
    for (size_t rank = 0; rank < ranks; rank++)
        if (nccl_call_writes(of[rank]) &&
            !nccl_call_use(of[rank], &of[rank]->stream->clock, nccl_call_written_by(of[rank]), true))
            return false;
    for (size_t rank = 0; rank < ranks; rank++) api_run_late(&of[rank]->stream->clock);
    size_t part = nccl_call_read_by(first).width;
    if (part == 0) {
    } else if (first->kind == ALL_GATHER) {
        for (size_t to = 0; to < ranks; to++)
            for (size_t from = 0; from < ranks; from++) move((char *)of[to]->to + from * part, of[from]->from, part);
    } else if (first->kind == BROADCAST) {
        for (size_t to = 0; to < ranks; to++) move(of[to]->to, of[first->peer]->from, part);
    } else {
        reduce(of, ranks);
    }
    for (size_t rank = 0; rank < ranks; rank++) drop(of[rank]);
    return true;
}

bool nccl_come_about(void) {
    for (unsigned i = 0; i < nccl_given_count; i++) {
        struct call *call = nccl_given[i];
        struct clique *clique = call->comm->clique;
        if (call->kind == RECEIVE) continue;
        if (call->kind == SEND) {
            for (unsigned j = 0; j < nccl_given_count; j++)
                if (nccl_call_is_other_side(call, nccl_given[j])) return meet(call, nccl_given[j]);
            continue;
        }
        struct call **of = resize_or_die(NULL, (size_t)clique->ranks * sizeof *of);
        int there = 0;
        for (unsigned j = 0; j < nccl_given_count; j++)
            if (nccl_call_is_other_side(call, nccl_given[j]) && of[nccl_given[j]->comm->rank] == NULL)
                of[nccl_given[j]->comm->rank] = nccl_given[j], there++;
        bool done = there == clique->ranks && collect(of, (size_t)clique->ranks);
        free(of);
        if (done) return true;
        if (simt_sticky_error() != cudaSuccess) return false;
    }
    return false;
}
