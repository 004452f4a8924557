// 17b_ring: K and V travel round a ring of devices while the kernel computes.
//
// Idea      Each device computes its rows over the K and V that it holds, while it copies the next ones from the device before it.
//           After P - 1 hops it has seen all of them. The kernel's epilogue merges O and L with those of the steps before, in fp32.
// Costs     Three times the K and V of one device, and O in fp32, on each: not K and V of the whole sequence.
// Limiter   README.md beside this file derives it.
// Measured  README.md beside this file has the numbers, of two cards.

#include "attend.cuh"
#include "merge.cuh"
#include "ranks.cuh"

static piece piece_of_rank(const problem *p, int rank, int) { return piece_of(p->N_q, rank, ranks_of(p)); }

// Two buffers for K and V of any rank, and O in fp32.
static size_t buffer_size(const problem *p) { return 2 * shard_bytes(p, ceil_div(p->N_kv, ranks_of(p))); }
static size_t buffer_bytes(const problem *p) {
    return 2 * buffer_size(p) + 2 * shard_bytes(p, ceil_div(p->N_q, ranks_of(p)));
}

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
    int last = p->causal ? r : all->count - 1; // the mask hides the keys of the ranks after r
    float *O_sum = (float *)row_at(mine.buffers, 2, buffer_size(p));
    partial_rows out = {mine.O, O_sum, mine.L, mine.rows, s == last ? mine.rows : 0, s == 0};
    part part = {mine.Q, mine.rows, 0, mine.rows, K, V, from.keys, from.keys, p->causal && s == 0};
    if (s <= last) TRY(attend(p, part, out, mine.compute));
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

extern "C" const step step_17b_ring = {
    .name = "17b_ring",
    .idea = "K and V travel while the kernel computes",
    .forward = forward,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 90,
    .most_devices = MOST_RANKS,
    .distribute = distribute<1, piece_of_rank, buffer_bytes>,
    .collect = collect,
    .refuses = ranks_refuse<needs_shared_memory<BYTES<64>, BYTES<128>>>,
};
