// 17a_allgather: every device gathers K and V, then computes its own rows.
//
// Idea      Device r of P owns rows r N / P to (r + 1) N / P of Q, K, V and O. It copies the K and V of the other devices into one
//           buffer, and then runs the kernel of 12e for its rows over all keys.
// Costs     K and V of the whole sequence on every device; the kernel waits for the last copy.
// Limiter   README.md beside this file derives it.
// Measured  README.md beside this file has the numbers, of two cards.

#include "attend.cuh"
#include "ranks.cuh"

// O normalised and rounded, L stored: what 12e does.
struct whole_rows {
    void *O;  // (heads, N_q, d)
    float *L; // (heads, N_q)

    template <class T, int NO>
    __device__ void store(const float (&O_reg)[NO][4], const float (&m)[2], const float (&l)[2], int head, int my_row,
                          const problem &p) const {
        size_t first = (size_t)head * p.N_q;
        store_rows((T *)O + first * p.d, L + first, O_reg, m, l, my_row, p.N_q, p.d);
    }
};

static piece piece_of_rank(const problem *p, int rank, int) { return piece_of(p->N_q, rank, ranks_of(p)); }
static size_t buffer_bytes(const problem *p) { return 2 * shard_bytes(p, p->N_kv); } // K and V of all ranks

// The first `keys` of K and V, of all that rank r attends to, into its buffers: (heads, keys, d) each.
static cudaError_t gather(const problem *p, const ranks *all, const rank &r, int keys) {
    int rank = r.device;
    for (int i = 0; i < all->count; i++) { // each rank begins with another source
        const struct rank &from = all->of[(rank + i) % all->count];
        int first = from.pieces[0].first;
        if (first >= keys) continue; // the mask hides all of it
        void *K = row_at(r.buffers, first, row_bytes(p)), *V = row_at(K, heads_of(p) * keys, row_bytes(p));
        TRY(copy_rows(p, K, keys, from.K, from.rows, from.rows, row_bytes(p), r.copy));
        TRY(copy_rows(p, V, keys, from.V, from.rows, from.rows, row_bytes(p), r.copy));
    }
    return cudaSuccess;
}

static cudaError_t forward(const problem *p, const tensors *t, void *shards, cudaStream_t stream) {
    ranks one, *all = p->devices > 1 ? (ranks *)shards : one_rank(&one, p, t, stream);
    TRY(fork(all, stream));
    for (int i = 0; i < all->count; i++) {
        rank &r = all->of[i];
        part part = {r.Q, r.rows, 0, r.rows, r.K, r.V, p->N_kv, p->N_kv, p->causal};
        if (all->count > 1) {
            int keys = p->causal ? r.pieces[0].first + r.rows : p->N_kv;
            part.K = r.buffers, part.V = row_at(r.buffers, heads_of(p) * keys, row_bytes(p));
            part.N_kv = part.KV_rows = keys;
            TRY(cudaSetDevice(r.device));
            TRY(gather(p, all, r, keys));
            TRY(cudaEventRecord(r.arrived[0], r.copy));
            TRY(cudaStreamWaitEvent(r.compute, r.arrived[0], 0)); // all keys are there
        }
        TRY(attend(p, part, whole_rows{r.O, r.L}, r.compute));
        if (all->count > 1) TRY(cudaEventRecord(r.computed[0], r.compute));
    }
    return join(all, 0, stream);
}

extern "C" const step step_17a_allgather = {
    .name = "17a_allgather",
    .idea = "each device gathers K and V",
    .forward = forward,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 90,
    .most_devices = MOST_RANKS,
    .distribute = distribute<1, piece_of_rank, buffer_bytes>,
    .collect = collect,
    .refuses = ranks_refuse<needs_shared_memory<BYTES<64>, BYTES<128>>>,
};
