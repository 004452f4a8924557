// 17_ring: equal work under a causal mask.
//
// Idea      The sequence is cut into 2 P chunks, and device r owns chunks r and 2 P - 1 - r: one with few keys, one with many. In each
//           step after the first every device computes as many products as every other, without a mask.
// Costs     What 17b_ring costs; one more launch in the first step.
// Limiter   README.md beside this file derives it.
// Measured  README.md beside this file has the numbers, of two cards.

#include "attend.cuh"
#include "merge.cuh"
#include "ranks.cuh"

// Chunk r, then chunk 2 P - 1 - r.
static piece piece_of_rank(const problem *p, int rank, int i) {
    int chunks = 2 * ranks_of(p);
    return piece_of(p->N_q, i == 0 ? rank : chunks - 1 - rank, chunks);
}

// Two buffers for K and V of any rank, and O in fp32.
static int most_rows(const problem *p) { return 2 * ceil_div(p->N_q, 2 * ranks_of(p)); }
static size_t buffer_size(const problem *p) { return 2 * shard_bytes(p, most_rows(p)); }
static size_t buffer_bytes(const problem *p) { return 2 * buffer_size(p) + 2 * shard_bytes(p, most_rows(p)); }

// The rank whose K and V rank r has at step s, and where: in step 0 its own, then what arrived with hop s, in turns.
static const rank &source(const ranks *all, int r, int s) { return all->of[(r + all->count - s) % all->count]; }
static const void *keys_at(const problem *p, const rank &r, int s) {
    return s == 0 ? r.K : row_at(r.buffers, (s - 1) % 2, buffer_size(p));
}

// Hop s: rank r copies from the rank before it what that one has at step s - 1.
static cudaError_t hop(const problem *p, ranks *all, int r, int s) {
    rank &mine = all->of[r];
    const rank &before = source(all, r, 1), &behind = all->of[(r + 1) % all->count];
    TRY(cudaSetDevice(mine.device));
    if (s >= 2) TRY(cudaStreamWaitEvent(mine.copy, before.arrived[s - 1], 0)); // they have arrived there
    if (s >= 3) TRY(cudaStreamWaitEvent(mine.copy, mine.computed[s - 2], 0));  // my kernel has read the buffer
    if (s >= 3) TRY(cudaStreamWaitEvent(mine.copy, behind.arrived[s - 1], 0)); // the rank behind has copied it
    TRY(cudaMemcpyPeerAsync((void *)keys_at(p, mine, s), mine.device, keys_at(p, before, s - 1), before.device,
                            2 * shard_bytes(p, source(all, r, s).rows), mine.copy));
    return cudaEventRecord(mine.arrived[s], mine.copy);
}

// Step s: the rows of rank r over the keys that it has now.
static cudaError_t compute(const problem *p, ranks *all, int r, int s) {
    rank &mine = all->of[r];
    const rank &from = source(all, r, s);
    TRY(cudaSetDevice(mine.device));
    if (s >= 1) TRY(cudaStreamWaitEvent(mine.compute, mine.arrived[s], 0)); // the keys are there
    const void *K = keys_at(p, mine, s), *V = s == 0 ? mine.V : row_at(K, heads_of(p) * from.keys, row_bytes(p));
    void *O_sum = row_at(mine.buffers, 2, buffer_size(p));
    int low = mine.pieces[0].rows, high = mine.rows - low;
    // After step r the first chunk has met all keys that the mask leaves it.
    int finished = s == all->count - 1 ? mine.rows : p->causal && s == r ? low : 0;
    auto over = [&](int first, int rows, int keys, bool causal) {
        partial_rows out = {row_at(mine.O, first, row_bytes(p)),
                            (float *)row_at(O_sum, first, 2 * row_bytes(p)),
                            mine.L + first,
                            mine.rows,
                            finished - first,
                            s == 0};
        return attend(p, part{mine.Q, mine.rows, first, rows, K, V, from.keys, keys, causal}, out, mine.compute);
    };
    if (!p->causal)
        TRY(over(0, mine.rows, from.keys, false));
    else if (s == 0) {
        TRY(over(0, low, low, true));
        TRY(over(low, high, from.keys, true)); // all keys of the first chunk, and its own up to the diagonal
    } else if (s <= r) // from a rank before r: its first chunk comes before both of mine, its second after both
        TRY(over(0, mine.rows, from.pieces[0].rows, false));
    else // from a rank after r: both of its chunks lie between mine
        TRY(over(low, high, from.keys, false));
    return all->count > 1 ? cudaEventRecord(mine.computed[s], mine.compute) : cudaSuccess;
}

static cudaError_t forward(const problem *p, const tensors *t, void *shards, cudaStream_t stream) {
    ranks one, *all = p->devices > 1 ? (ranks *)shards : one_rank(&one, p, t, stream);
    TRY(fork(all, stream));
    for (int s = 0; s < all->count; s++) {
        for (int r = 0; r < all->count && s + 1 < all->count; r++) TRY(hop(p, all, r, s + 1)); // beside step s
        for (int r = 0; r < all->count; r++) TRY(compute(p, all, r, s));
    }
    return join(all, all->count - 1, stream);
}

extern "C" const step step_17_ring = {
    .name = "17_ring",
    .idea = "equal work under a causal mask",
    .forward = forward,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 90,
    .most_devices = MOST_RANKS,
    .distribute = distribute<2, piece_of_rank, buffer_bytes>,
    .collect = collect,
    .refuses = ranks_refuse<needs_shared_memory<BYTES<64>, BYTES<128>>>,
};
