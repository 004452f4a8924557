// 17x_backward: the gradients of a head that several devices share.
//
// Idea      K and V go round again, as in the last rung, and behind them go dK and dV of the same keys, in fp32: each device adds its part
//           and passes the sum on. After P hops it is home. dQ stays where its rows are.
// Costs     As the last rung, and four times the fp32 dK and dV of one device: two parts and two sums.
// Limiter   README.md beside this file derives it.
// Measured  README.md beside this file has the numbers, of two cards.

#include "backward.cuh"
#include "ranks.cuh"

// Chunk r, then chunk 2 P - 1 - r.
static piece piece_of_rank(const problem *p, int rank, int i) {
    int chunks = 2 * ranks_of(p);
    return piece_of(p->N_q, i == 0 ? rank : chunks - 1 - rank, chunks);
}

static size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }
static int most_rows(const problem *p) { return 2 * ceil_div(p->N_q, 2 * ranks_of(p)); }
static size_t shard_size(const problem *p) { return aligned(shard_bytes(p, most_rows(p))); } // 16 bits per element
static size_t between_size(const problem *p, int rows) {
    problem of = with_rows(p, rows);
    return aligned(intermediate_bytes(&of));
}

// K and V twice, dO, dQ, dK, dV; then, in fp32, two parts and two sums of dK and dV.
enum { KEYS, dO_AT = 4, dQ_AT, GRADIENTS, PARTS = 8, SUMS = 16, BETWEEN = 24 }; // in shards
static size_t buffer_bytes(const problem *p) { return BETWEEN * shard_size(p) + 2 * between_size(p, most_rows(p)); }
static void *buffer(const problem *p, const rank &r, int at) { return row_at(r.buffers, at, shard_size(p)); }
static float *part_of(const problem *p, const rank &r, int s) { return (float *)buffer(p, r, PARTS + s % 2 * 4); }
static float *sum_of(const problem *p, const rank &r, int s) { return (float *)buffer(p, r, SUMS + s % 2 * 4); }

// Chunk i of a rank. Q, O, dO, dQ and L are stored chunk after chunk here.
static chunk chunk_of(const problem *p, const rank &r, int i) {
    size_t before = i == 0 ? 0 : heads_of(p) * r.pieces[0].rows; // rows
    auto at = [&](void *all) { return row_at(all, before, row_bytes(p)); };
    void *between = row_at(buffer(p, r, BETWEEN), i, between_size(p, most_rows(p)));
    return {r.pieces[i].rows,        at(r.Q),      at(r.O), at(buffer(p, r, dO_AT)),
            at(buffer(p, r, dQ_AT)), r.L + before, between};
}

// What a pass needs: the ranks of the other rungs, and events for the sums.
struct shards {
    ranks *all;
    struct {
        cudaEvent_t received[MOST_RANKS + 1]; // by hop: the sum of the rank before is here, and its buffer read
        cudaEvent_t summed[MOST_RANKS];       // by step: my part is added, and its buffer read
    } of[MOST_RANKS];
};

// Between the whole tensor, on device 0, and the rank's chunks of it.
static cudaError_t copy_chunks(const problem *p, const rank &r, void *shard, const void *whole, size_t bytes,
                               bool to_shard) {
    for (const piece &piece : r.pieces) {
        void *rows = row_at((void *)whole, piece.first, bytes);
        TRY(to_shard ? copy_rows(p, shard, piece.rows, rows, p->N_q, piece.rows, bytes, r.copy)
                     : copy_rows(p, rows, p->N_q, shard, piece.rows, piece.rows, bytes, r.copy));
        shard = row_at(shard, heads_of(p) * piece.rows, bytes);
    }
    return cudaSuccess;
}

static cudaError_t fill(const problem *p, const tensors *t, shards *s) {
    for (int i = 0; i < s->all->count; i++) {
        const rank &r = s->all->of[i];
        TRY(cudaSetDevice(i));
        TRY(copy_chunks(p, r, r.Q, t->Q, row_bytes(p), true));
        TRY(copy_chunks(p, r, r.O, t->O, row_bytes(p), true));
        TRY(copy_chunks(p, r, buffer(p, r, dO_AT), t->dO, row_bytes(p), true));
        TRY(copy_chunks(p, r, r.L, t->L, sizeof(float), true));
        for (cudaEvent_t &event : s->of[i].received) TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        for (cudaEvent_t &event : s->of[i].summed) TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        TRY(cudaStreamSynchronize(r.copy));
    }
    return cudaSetDevice(0);
}

static cudaError_t free_shards(shards *s) {
    cudaError_t error = cudaSuccess;
    auto destroy = [&](cudaEvent_t event) {
        if (event != nullptr && error == cudaSuccess) error = cudaEventDestroy(event);
    };
    for (auto &of : s->of) {
        for (cudaEvent_t event : of.received) destroy(event);
        for (cudaEvent_t event : of.summed) destroy(event);
    }
    cudaError_t freed = free_ranks(s->all);
    delete s;
    return error != cudaSuccess ? error : freed;
}

static cudaError_t distribute_backward(const problem *p, const tensors *t, void **result) {
    void *all = nullptr;
    TRY((distribute<2, piece_of_rank, buffer_bytes>(p, t, &all)));
    shards *s = new shards{.all = (ranks *)all};
    cudaError_t error = fill(p, t, s);
    if (error == cudaSuccess)
        *result = s;
    else
        free_shards(s);
    return error;
}

static cudaError_t fetch(const problem *p, const tensors *t, const ranks *all) {
    for (int i = 0; i < all->count; i++) {
        const rank &r = all->of[i];
        TRY(cudaSetDevice(i));
        TRY(cudaDeviceSynchronize());
        TRY(copy_chunks(p, r, buffer(p, r, dQ_AT), t->dQ, row_bytes(p), false));
        TRY(copy_pieces(p, r, buffer(p, r, GRADIENTS), t->dK, row_bytes(p), false));
        TRY(copy_pieces(p, r, buffer(p, r, GRADIENTS + 1), t->dV, row_bytes(p), false));
        TRY(cudaStreamSynchronize(r.copy));
    }
    return cudaSuccess;
}
static cudaError_t collect_backward(const problem *p, const tensors *t, void *result) {
    cudaError_t error = fetch(p, t, ((shards *)result)->all), freed = free_shards((shards *)result);
    return error != cudaSuccess ? error : freed;
}

static const rank &source(const ranks *all, int r, int s) { return all->of[(r + all->count - s) % all->count]; }
static const void *keys_at(const problem *p, const rank &r, int s) {
    return s == 0 ? r.K : buffer(p, r, KEYS + (s - 1) % 2 * 2);
}

// Hop s of K and V: as in the last rung, with one wait less. In the copy stream this hop comes after the sum of step s - 2, which has waited
// for the kernel of that step. For the same reason kernel s, which waits for this hop, finds its part of step s - 2 added.
static cudaError_t hop(const problem *p, ranks *all, int r, int s) {
    rank &mine = all->of[r];
    const rank &before = source(all, r, 1), &behind = all->of[(r + 1) % all->count];
    TRY(cudaSetDevice(mine.device));
    if (s >= 2) TRY(cudaStreamWaitEvent(mine.copy, before.arrived[s - 1], 0)); // they have arrived there
    if (s >= 3) TRY(cudaStreamWaitEvent(mine.copy, behind.arrived[s - 1], 0)); // the rank behind has copied it
    TRY(cudaMemcpyPeerAsync((void *)keys_at(p, mine, s), mine.device, keys_at(p, before, s - 1), before.device,
                            2 * shard_bytes(p, source(all, r, s).rows), mine.copy));
    return cudaEventRecord(mine.arrived[s], mine.copy);
}

// Step s: the rows of rank r with the keys that it has now. *covered: of these keys, those that get gradients from here.
static cudaError_t compute(const problem *p, shards *all, int r, int s, int *covered) {
    rank &mine = all->all->of[r];
    const rank &from = source(all->all, r, s);
    TRY(cudaSetDevice(mine.device));
    if (s >= 1) TRY(cudaStreamWaitEvent(mine.compute, mine.arrived[s], 0)); // the keys are there
    const void *K = keys_at(p, mine, s), *V = s == 0 ? mine.V : row_at(K, heads_of(p) * from.keys, row_bytes(p));
    float *dK = part_of(p, mine, s), *dV = dK + (size_t)from.keys * heads_of(p) * p->d;
    chunk low = chunk_of(p, mine, 0), high = chunk_of(p, mine, 1);
    *covered = 0;
    auto over = [&](const chunk &rows, int keys, bool causal) {
        if (rows.rows == 0 || keys == 0) return cudaSuccess;
        TRY(products(p, rows, K, V, keys, causal, {dK, dV, from.keys, *covered}, mine.compute));
        *covered = keys;
        return cudaSuccess;
    };
    if (s == 0) {
        TRY(begin_rows(p, low, mine.compute));
        TRY(begin_rows(p, high, mine.compute));
    }
    // Which chunks attend to which: as in the last rung.
    if (!p->causal || s <= r) TRY(over(low, !p->causal ? from.keys : from.pieces[0].rows, p->causal && s == 0));
    TRY(over(high, !p->causal || s == 0 || s > r ? from.keys : from.pieces[0].rows, p->causal && s == 0));
    if (s == all->all->count - 1) {
        TRY(end_rows(p, low, mine.compute));
        TRY(end_rows(p, high, mine.compute));
    }
    return all->all->count > 1 ? cudaEventRecord(mine.computed[s], mine.compute) : cudaSuccess;
}

// Hop s of dK and dV: rank r copies the sum that the rank before it had after step s - 1.
static cudaError_t receive(const problem *p, shards *all, int r, int s) {
    rank &mine = all->all->of[r];
    const rank &before = source(all->all, r, 1);
    TRY(cudaStreamWaitEvent(mine.copy, all->of[before.device].summed[s - 1], 0)); // it is complete there
    int behind = (r + 1) % all->all->count;
    if (s >= 2) TRY(cudaStreamWaitEvent(mine.copy, all->of[behind].received[s - 1], 0)); // what lay here is copied
    TRY(cudaMemcpyPeerAsync(sum_of(p, mine, s), mine.device, sum_of(p, before, s - 1), before.device,
                            4 * shard_bytes(p, source(all->all, r, s).rows), mine.copy));
    return cudaEventRecord(all->of[r].received[s], mine.copy);
}

// After step s: add my part to the sum that has come with the keys.
static cudaError_t add_part(const problem *p, shards *all, int r, int s, int covered) {
    rank &mine = all->all->of[r];
    TRY(cudaSetDevice(mine.device));
    if (s >= 1) TRY(receive(p, all, r, s));
    TRY(cudaStreamWaitEvent(mine.copy, mine.computed[s], 0)); // the part is there
    TRY(add_sums(p, sum_of(p, mine, s), part_of(p, mine, s), s >= 1, covered, source(all->all, r, s).rows, mine.copy));
    return cudaEventRecord(all->of[r].summed[s], mine.copy);
}

// The sum of all ranks is home: hop P.
static cudaError_t come_home(const problem *p, shards *all, int r) {
    rank &mine = all->all->of[r];
    int count = all->all->count;
    TRY(cudaSetDevice(mine.device));
    TRY(receive(p, all, r, count));
    TRY(round_sums(p, buffer(p, mine, GRADIENTS), buffer(p, mine, GRADIENTS + 1), sum_of(p, mine, count), mine.rows,
                   mine.copy));
    TRY(cudaEventRecord(mine.arrived[0], mine.copy)); // no hop of keys has number 0
    return cudaStreamWaitEvent(mine.compute, mine.arrived[0], 0);
}

static cudaError_t on_devices(const problem *p, shards *all, cudaStream_t stream) {
    int count = all->all->count, covered[MOST_RANKS];
    TRY(fork(all->all, stream));
    for (int s = 0; s < count; s++) {
        for (int r = 0; r < count && s + 1 < count; r++) TRY(hop(p, all->all, r, s + 1)); // beside step s
        for (int r = 0; r < count; r++) TRY(compute(p, all, r, s, &covered[r]));
        for (int r = 0; r < count; r++) TRY(add_part(p, all, r, s, covered[r])); // beside step s + 1
    }
    for (int r = 0; r < count; r++) TRY(come_home(p, all, r));
    for (int r = 0; r < count; r++) {
        TRY(cudaSetDevice(r));
        TRY(cudaEventRecord(all->all->of[r].computed[count - 1], all->all->of[r].compute)); // now with its gradients
    }
    return join(all->all, count - 1, stream);
}

// ---- one device: the tensors as they are, and a workspace for what lies between

static size_t part_bytes(const problem *p) { return aligned(4 * shard_bytes(p, p->N_kv)); }
static size_t workspace_bytes(const problem *p) { return p->devices > 1 ? 0 : part_bytes(p) + between_size(p, p->N_q); }

static cudaError_t backward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    if (p->devices > 1) return on_devices(p, (shards *)workspace, stream);
    chunk rows = {p->N_q, (void *)t->Q, t->O, (void *)t->dO, t->dQ, t->L, (char *)workspace + part_bytes(p)};
    float *dK = (float *)workspace, *dV = dK + (size_t)p->N_kv * heads_of(p) * p->d;
    TRY(begin_rows(p, rows, stream));
    TRY(products(p, rows, t->K, t->V, p->N_kv, p->causal, {dK, dV, p->N_kv, 0}, stream));
    TRY(end_rows(p, rows, stream));
    return round_sums(p, t->dK, t->dV, dK, p->N_kv, stream);
}

static const char *refuses(const problem *p) {
    return shared_memory_fits(p->d <= 64 ? BYTES<64> : BYTES<128>) ? nullptr
                                                                   : "its tiles need more shared memory per block";
}

extern "C" const step step_17x_backward = {
    .name = "17x_backward",
    .idea = "dK and dV travel behind K and V, in fp32",
    .beside = "the backward pass",
    .backward = backward,
    .workspace_bytes = workspace_bytes,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 90,
    .most_devices = MOST_RANKS,
    .distribute = distribute_backward,
    .collect = collect_backward,
    .refuses = ranks_refuse<refuses>,
};
