// 12x_cluster: 12e_order with clusters of two blocks that load K and V once for both.
//
// Idea      Two neighbouring blocks have query tiles of one head, and need the same tiles of K and V. Each loads half of each tile
//           and the TMA writes it into the shared memory of both.
// Costs     A stage is empty when the consumers of both blocks have read it, so the blocks wait for each other. Under a causal
//           mask the block with the earlier rows also visits tiles that only the other one needs.
// Limiter   README.md beside this file has the counters.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "order.cuh"
#include "softmax.cuh"
#include "store.cuh"
#include "tensor.cuh"
#include "tiles.cuh"

// At d 128 the registers of O and P leave room for two consumers only, when a product of the next tile runs beside them (12d).
template <int D> constexpr int CONSUMERS = D == 64 ? 3 : 2; // warpgroups, 64 query rows each
template <int D> constexpr int THREADS = (1 + CONSUMERS<D>)*WARPGROUP;
template <int D> constexpr int PRODUCER_REGISTERS = D == 64 ? 32 : 24;   // per thread. The sum over all threads
template <int D> constexpr int CONSUMER_REGISTERS = D == 64 ? 160 : 240; // is the same before setmaxnreg and after
template <int D> constexpr int Br = 64 * CONSUMERS<D>;                   // query rows per block
template <int D> constexpr int KEYS = D == 64 ? 128 : 176;               // per tile; 192 were not tried
constexpr int STAGES = 2;                                                // tiles of K and of V in shared memory
constexpr int PAIR = 2;                                                  // blocks per cluster

constexpr size_t SECTION_BYTES = 32 << 20; // K and V of the heads of a section: what stays in the L2 cache

// Shared memory: Q and later O (Br, D), K and V (STAGES, Bc, D), each in panels of 64 columns; the barriers; and what may lie
// before the first multiple of 1024 bytes, at which the swizzle repeats.
template <int D>
constexpr size_t BYTES = 2 * (Br<D> + 2 * STAGES * KEYS<D>)*D + (1 + 4 * STAGES) * sizeof(uint64_t) + 1024;
static_assert(BYTES<128> <= LEAST_SHARED_BYTES_9_0, "the tiles fit into the shared memory of a Hopper card");

/* One thread of each block of the cluster asks for its half of the rows [first, first + rows) of a head, for both blocks. `full`
 * completes when both halves are there. */
template <int D, class T>
__device__ inline void load_half(T *tile, const CUtensorMap &map, int rows, int first, int head, uint64_t *full) {
    mbarrier_arrive_expect(full, rows * D * sizeof(T));
    int row = cluster_rank() * rows / PAIR;
    for (int column = 0; column < D; column += 64)
        tma_load_multicast(tile + rows * column + row * 64, &map, column, first + row, head, full, 3);
}

template <int D, class T>
static __global__ __cluster_dims__(PAIR, 1, 1)
    __launch_bounds__(THREADS<D>, 1) void forward_kernel(const __grid_constant__ tensor_maps maps,
                                                         const __grid_constant__ CUtensorMap O_map,
                                                         float *L, // (heads, N_q)
                                                         problem p, int section) {
    constexpr int Bc = KEYS<D>;
    extern __shared__ uint4 smem[];
    T *Q_smem = first_multiple_of_1024<T>(smem); // (D / 64, Br, 64)
    T *K_smem = Q_smem + Br<D> * D;              // (STAGES, D / 64, Bc, 64)
    T *V_smem = K_smem + STAGES * Bc * D;        // (STAGES, D / 64, Bc, 64)
    uint64_t *Q_full = (uint64_t *)(V_smem + STAGES * Bc * D), *K_full = Q_full + 1, *V_full = K_full + STAGES;
    uint64_t *K_empty = V_full + STAGES, *V_empty = K_empty + STAGES; // one per stage
    int warp = threadIdx.x / WARP % 4, lane = threadIdx.x % WARP;
    int consumer = __shfl_sync(FULL_WARP, threadIdx.x / WARPGROUP, 0) - 1; // -1: the producer; known to be uniform
    // Pairs of blocks start in the order of their index: section by section, in each the last rows of all its heads first, since
    // under a causal mask they attend to the most keys.
    int pairs = gridDim.x / PAIR;
    block_place own = place_of_block(blockIdx.x / PAIR, blockIdx.y, pairs, gridDim.y, section);
    int head = own.head, pair_row = (pairs - 1 - own.tile) * PAIR * Br<D>, row0 = pair_row + cluster_rank() * Br<D>;
    int tiles =
        (attended_keys(p, pair_row + PAIR * Br<D> - 1) + Bc - 1) / Bc; // with keys that the pair's last row attends to

    if (threadIdx.x == 0) {
        for (uint64_t *full = Q_full; full < K_empty; full++) mbarrier_init(full, 1);
        for (int i = 0; i < 2 * STAGES; i++) mbarrier_init(K_empty + i, PAIR * 4 * CONSUMERS<D>); // warps arrive
        fence_mbarrier_init();
    }
    cluster_arrive(); // the barriers of both blocks are ready
    cluster_wait();
    if (consumer < 0) {
        registers_decrease<PRODUCER_REGISTERS<D>>();
        if (threadIdx.x == 0 && tiles > 0) {
            load_tile<D>(Q_smem, maps.Q, Br<D>, row0, head, Q_full);
            for (int tile = tiles - 1; tile >= 0; tile--) {
                int i = tiles - 1 - tile, stage = i % STAGES, round = i / STAGES;
                if (round > 0) mbarrier_wait(K_empty + stage, (round - 1) % 2);
                load_half<D>(K_smem + stage * Bc * D, maps.K, Bc, tile * Bc, head, K_full + stage);
                if (round > 0) mbarrier_wait(V_empty + stage, (round - 1) % 2);
                load_half<D>(V_smem + stage * Bc * D, maps.V, Bc, tile * Bc, head, V_full + stage);
            }
        }
        return;
    }
    registers_increase<CONSUMER_REGISTERS<D>>();
    int group_row = row0 + 64 * consumer, my_row = group_row + warp * 16 + lane / 4; // and 8 rows below
    int unmasked = attended_keys(p, group_row) / Bc; // tiles of which all rows of the group attend to all keys
    if (p.scale <= 0.0f) unmasked = 0;               // new_maxima() then applies the factor to all scores

    float S_reg[Bc / 8][4], O_reg[D / 8][4] = {}, m_reg[2] = {NONE, NONE}, l_reg[2] = {}, rescale[2];
    uint32_t P_reg[Bc / 16][4];
    const T *Q_tile = Q_smem + consumer * 64 * 64;
    auto release = [&](uint64_t *empty) {
        __syncwarp(); // redundant: wgmma_wait() is the whole warp's; but faster at d 128
        if (lane < PAIR) mbarrier_arrive_remote(empty, lane); // in both blocks
    };
    // A consumer's turn is one barrier, which it meets with the consumer before it; the barrier's number is 1 + consumer.
    auto my_turn = [&]() { named_barrier_sync(1 + consumer, 2 * WARPGROUP); }; // redundant: for speed only
    auto next_turn = [&]() { named_barrier_arrive(1 + (consumer + 1) % CONSUMERS<D>, 2 * WARPGROUP); };
    if (tiles > 0 && consumer == CONSUMERS<D> - 1) next_turn(); // the first consumer begins
    auto softmax = [&](int tile, bool masked) {
        bool grows = new_maxima(S_reg, m_reg, l_reg, rescale, p, masked, tile * Bc + lane % 4 * 2, my_row);
        weights(S_reg, m_reg, l_reg, p, masked);
        return grows;
    };
    // The products of `tile` with K and of the tile before it, in time, with V.
    auto visit = [&](int tile, bool masked) {
        int i = tiles - 1 - tile, stage = i % STAGES, before = (i - 1) % STAGES;
        mbarrier_wait(K_full + stage, i / STAGES % 2);
        my_turn();
        multiply_QK<D, Br<D>, Bc>(S_reg, Q_tile, K_smem + stage * Bc * D);
        mbarrier_wait(V_full + before, (i - 1) / STAGES % 2);
        multiply_PV<D, Bc>(O_reg, P_reg, V_smem + before * Bc * D);
        next_turn();
        wgmma_wait<1>(); // S is there
        release(K_empty + stage);
        bool grows = softmax(tile, masked);
        wgmma_wait<0>(); // O is there, and P may be overwritten
        release(V_empty + before);
        if (grows) rescale_rows(O_reg, rescale);
        round_P<T>(P_reg, S_reg);
    };
    if (tiles > 0) {
        mbarrier_wait(Q_full, 0);
        mbarrier_wait(K_full, 0);
        my_turn();
        multiply_QK<D, Br<D>, Bc>(S_reg, Q_tile, K_smem);
        next_turn();
        wgmma_wait<0>();
        release(K_empty);
        softmax(tiles - 1, true); // O is 0
        round_P<T>(P_reg, S_reg);
        int tile = tiles - 2;
        for (; tile >= unmasked; tile--) visit(tile, true);
        for (; tile >= 0; tile--) visit(tile, false);
        int last = (tiles - 1) % STAGES;
        mbarrier_wait(V_full + last, (tiles - 1) / STAGES % 2);
        multiply_PV<D, Bc>(O_reg, P_reg, V_smem + last * Bc * D);
        wgmma_wait<0>();
    }

    cluster_arrive();                        // this thread is done with the other block's barriers
    T *O_tile = Q_smem + consumer * 64 * 64; // nobody reads these rows of Q any more
    store_tile<D, Br<D>>(O_tile, L + (size_t)head * p.N_q, O_reg, m_reg, l_reg, my_row, p.N_q);
    fence_proxy_async(); // the TMA sees what this thread has stored
    named_barrier_sync(1 + CONSUMERS<D> + consumer, WARPGROUP);
    if (threadIdx.x % WARPGROUP == 0) {
        for (int column = 0; column < D; column += 64)
            tma_store(&O_map, column, group_row, head, O_tile + Br<D> * column);
        tma_commit();
        tma_wait_read<0>(); // shared memory stays until it is read
    }
    cluster_wait(); // nobody arrives any more at the barriers of this block
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    return dispatch(p, [&]<int D, class T>() {
        tensor_maps maps;
        cudaError_t error = make_tensor_maps(&maps, p, t, Br<D>, KEYS<D> / PAIR);
        if (error != cudaSuccess) return error;
        CUtensorMap O;
        error = make_tensor_map(&O, p->dtype, t->O, p->batch * p->heads, p->N_q, p->d, 64);
        if (error != cudaSuccess) return error;
        dim3 blocks(PAIR * ceil_div(p->N_q, PAIR * Br<D>), p->batch * p->heads);
        size_t bytes = 4 * (size_t)p->N_kv * p->d; // K and V of a head
        int section = p->causal ? heads_of_section(SECTION_BYTES, bytes, blocks.y, blocks.x / PAIR) : 1;
        return launch(forward_kernel<D, T>, blocks, THREADS<D>, BYTES<D>, stream, maps, O, t->L, *p, section);
    });
}

extern "C" const step step_12x_cluster = {
    .name = "12x_cluster",
    .idea = "clusters of two blocks, which load K and V for both",
    .beside = "slower on an H200",
    .forward = forward,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 90,
    .refuses = needs_shared_memory<BYTES<64>, BYTES<128>>,
};
