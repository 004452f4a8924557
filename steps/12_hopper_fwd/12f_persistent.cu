// 12f_persistent: blocks that take one query tile after the other.
//
// Idea      There are as many blocks as multiprocessors. A block takes query tiles from a counter until none is left. Its producer
//           copies for the next query tile while the consumers finish this one, and the TMA stores O while they begin the next.
// Costs     Shared memory for two Q and for O, so a tile has 128 keys at d 128, not 12e's 176. O(N) memory: the outputs, a counter.
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
template <int D> constexpr int KEYS = 128;                               // per tile; Q and O take the room
constexpr int STAGES = 2;                                                // tiles of K and of V in shared memory

constexpr size_t SECTION_BYTES = 32 << 20; // K and V of the heads of a section: what stays in the L2 cache

// Shared memory: Q (2, Br, D), O (Br, D), K and V (STAGES, Bc, D), each in panels of 64 columns; the barriers and two ints; what may
// lie before the first multiple of 1024 bytes, at which the swizzle repeats.
template <int D>
constexpr size_t BYTES = 2 * (3 * Br<D> + 2 * STAGES * KEYS<D>)*D + (5 + 4 * STAGES) * sizeof(uint64_t) + 1024;
static_assert(BYTES<128> <= LEAST_SHARED_BYTES_9_0, "the tiles fit into the shared memory of a Hopper card");

template <int D, class T>
static __global__ __launch_bounds__(THREADS<D>, 1) void forward_kernel(const __grid_constant__ tensor_maps maps,
                                                                       const __grid_constant__ CUtensorMap O_map,
                                                                       float *L, // (heads, N_q)
                                                                       problem p, int row_tiles, int heads, int section,
                                                                       unsigned *taken) {
    constexpr int Bc = KEYS<D>;
    extern __shared__ uint4 smem[];
    T *Q_smem = first_multiple_of_1024<T>(smem); // (2, D / 64, Br, 64)
    T *O_smem = Q_smem + 2 * Br<D> * D;          // (D / 64, Br, 64)
    T *K_smem = O_smem + Br<D> * D;              // (STAGES, D / 64, Bc, 64)
    T *V_smem = K_smem + STAGES * Bc * D;        // (STAGES, D / 64, Bc, 64)
    uint64_t *Q_full = (uint64_t *)(V_smem + STAGES * Bc * D), *K_full = Q_full + 2, *V_full = K_full + STAGES;
    uint64_t *Q_empty = V_full + STAGES, *K_empty = Q_empty + 2, *V_empty = K_empty + STAGES; // one per buffer
    int *at_smem = (int *)(V_empty + STAGES); // whose rows are in the two buffers of Q
    int warp = threadIdx.x / WARP % 4, lane = threadIdx.x % WARP;
    int consumer = __shfl_sync(FULL_WARP, threadIdx.x / WARPGROUP, 0) - 1; // -1: the producer; known to be uniform
    // The order of the query tiles: section by section, in each the last rows of all its heads first, since under a causal mask they
    // attend to the most keys.
    struct query_tile {
        int head, row0, tiles; // tiles: with keys that its last row attends to
    };
    auto query_tile_at = [&](int at) {
        block_place own = place_of_block(at % row_tiles, at / row_tiles, row_tiles, heads, section);
        int row0 = (row_tiles - 1 - own.tile) * Br<D>;
        return query_tile{own.head, row0, (attended_keys(p, row0 + Br<D> - 1) + Bc - 1) / Bc};
    };

    if (threadIdx.x == 0) {
        for (uint64_t *full = Q_full; full < Q_empty; full++) mbarrier_init(full, 1);
        for (int i = 0; i < 2 + 2 * STAGES; i++) mbarrier_init(Q_empty + i, 4 * CONSUMERS<D>); // warps arrive
        fence_mbarrier_init();
    }
    __syncthreads(); // the barriers are ready
    if (consumer < 0) {
        registers_decrease<PRODUCER_REGISTERS<D>>();
        if (threadIdx.x != 0) return;
        for (int k = 0, i = 0, at = blockIdx.x;; k++) { // the block's query tiles, and their tiles of keys, so far
            if (k > 1) mbarrier_wait(Q_empty + k % 2, (k / 2 - 1) % 2);
            at_smem[k % 2] = at; // the consumers read it when Q is full
            if (at >= row_tiles * heads) return mbarrier_arrive(Q_full + k % 2);
            auto [head, row0, tiles] = query_tile_at(at);
            load_tile<D>(Q_smem + k % 2 * Br<D> * D, maps.Q, Br<D>, row0, head, Q_full + k % 2);
            for (int tile = tiles - 1; tile >= 0; tile--, i++) {
                int stage = i % STAGES, round = i / STAGES;
                if (round > 0) mbarrier_wait(K_empty + stage, (round - 1) % 2);
                load_tile<D>(K_smem + stage * Bc * D, maps.K, Bc, tile * Bc, head, K_full + stage);
                if (round > 0) mbarrier_wait(V_empty + stage, (round - 1) % 2);
                load_tile<D>(V_smem + stage * Bc * D, maps.V, Bc, tile * Bc, head, V_full + stage);
            }
            at = gridDim.x + atomicAdd(taken, 1);
        }
    }
    registers_increase<CONSUMER_REGISTERS<D>>();
    int i = 0, my_row = 0; // tiles of keys so far; the lane's rows are my_row and 8 below
    const T *Q_tile = Q_smem;

    float S_reg[Bc / 8][4], O_reg[D / 8][4], m_reg[2], l_reg[2], rescale[2];
    uint32_t P_reg[Bc / 16][4];
    T *O_tile = O_smem + consumer * 64 * 64;
    auto release = [&](uint64_t *empty) {
        __syncwarp(); // redundant: wgmma_wait() is the whole warp's; but faster at d 128
        if (lane == 0) mbarrier_arrive(empty);
    };
    // A consumer's turn is one barrier, which it meets with the consumer before it; the barrier's number is 1 + consumer.
    auto my_turn = [&]() { named_barrier_sync(1 + consumer, 2 * WARPGROUP); }; // redundant: for speed only
    auto next_turn = [&]() { named_barrier_arrive(1 + (consumer + 1) % CONSUMERS<D>, 2 * WARPGROUP); };
    if (consumer == CONSUMERS<D> - 1) next_turn(); // the first consumer begins
    auto softmax = [&](int tile, bool masked) {
        bool grows = new_maxima(S_reg, m_reg, l_reg, rescale, p, masked, tile * Bc + lane % 4 * 2, my_row);
        weights(S_reg, m_reg, l_reg, p, masked);
        return grows;
    };
    // The products of `tile` with K and of the tile before it, in time, with V.
    auto visit = [&](int tile, bool masked) {
        int stage = i % STAGES, before = (i - 1) % STAGES;
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
        i++;
    };
    for (int k = 0;; k++) {
        mbarrier_wait(Q_full + k % 2, k / 2 % 2);
        int at = __shfl_sync(FULL_WARP, lane == 0 ? at_smem[k % 2] : 0, 0); // known to be uniform
        if (at >= row_tiles * heads) break;
        auto [head, row0, tiles] = query_tile_at(at);
        Q_tile = Q_smem + (k % 2 * Br<D> * D + consumer * 64 * 64);
        int group_row = row0 + 64 * consumer, unmasked = attended_keys(p, group_row) / Bc;
        if (p.scale <= 0.0f) unmasked = 0; // new_maxima() then applies the factor to all scores
        my_row = group_row + warp * 16 + lane / 4;
        for (int e = 0; e < 2; e++) m_reg[e] = NONE, l_reg[e] = 0.0f;
        for (auto &O : O_reg) O[0] = O[1] = O[2] = O[3] = 0.0f;
        if (tiles > 0) {
            mbarrier_wait(K_full + i % STAGES, i / STAGES % 2);
            my_turn();
            multiply_QK<D, Br<D>, Bc>(S_reg, Q_tile, K_smem + i % STAGES * Bc * D);
            next_turn();
            wgmma_wait<0>();
            release(K_empty + i % STAGES);
            softmax(tiles - 1, true); // O is 0
            round_P<T>(P_reg, S_reg);
            i++;
            int tile = tiles - 2;
            for (; tile >= unmasked; tile--) visit(tile, true);
            for (; tile >= 0; tile--) visit(tile, false);
        }
        release(Q_empty + k % 2); // all products with Q are there
        if (tiles > 0) {
            int last = (i - 1) % STAGES;
            mbarrier_wait(V_full + last, (i - 1) / STAGES % 2);
            multiply_PV<D, Bc>(O_reg, P_reg, V_smem + last * Bc * D);
            wgmma_wait<0>();
            release(V_empty + last);
        }

        if (threadIdx.x % WARPGROUP == 0) tma_wait_read<0>(); // the TMA has read the O before
        named_barrier_sync(1 + CONSUMERS<D> + consumer, WARPGROUP);
        store_tile<D, Br<D>>(O_tile, L + (size_t)head * p.N_q, O_reg, m_reg, l_reg, my_row, p.N_q);
        fence_proxy_async(); // the TMA sees what this thread has stored
        named_barrier_sync(1 + CONSUMERS<D> + consumer, WARPGROUP);
        if (threadIdx.x % WARPGROUP == 0) {
            for (int column = 0; column < D; column += 64)
                tma_store(&O_map, column, group_row, head, O_tile + Br<D> * column);
            tma_commit();
        }
    }
    if (threadIdx.x % WARPGROUP == 0) tma_wait_read<0>(); // the block may not end before the TMA has read O
}

static size_t workspace_bytes(const problem *) { return sizeof(unsigned); } // the counter

static cudaError_t forward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    return dispatch(p, [&]<int D, class T>() {
        tensor_maps maps;
        cudaError_t error = make_tensor_maps(&maps, p, t, Br<D>, KEYS<D>);
        if (error != cudaSuccess) return error;
        CUtensorMap O;
        error = make_tensor_map(&O, p->dtype, t->O, p->batch * p->heads, p->N_q, p->d, 64);
        int device = 0, multiprocessors = 0;
        if (error == cudaSuccess) error = cudaGetDevice(&device);
        if (error == cudaSuccess)
            error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
        unsigned *taken = (unsigned *)workspace;
        if (error == cudaSuccess) error = cudaMemsetAsync(taken, 0, sizeof *taken, stream);
        if (error != cudaSuccess) return error;
        int row_tiles = ceil_div(p->N_q, Br<D>), heads = p->batch * p->heads;
        size_t bytes = 4 * (size_t)p->N_kv * p->d; // K and V of a head
        int section = p->causal ? heads_of_section(SECTION_BYTES, bytes, heads, row_tiles) : 1;
        int blocks = row_tiles * heads < multiprocessors ? row_tiles * heads : multiprocessors;
        return launch(forward_kernel<D, T>, blocks, THREADS<D>, BYTES<D>, stream, maps, O, t->L, *p, row_tiles, heads,
                      section, taken);
    });
}

extern "C" const step step_12f_persistent = {
    .name = "12f_persistent",
    .idea = "persistent blocks, query tiles from a counter",
    .forward = forward,
    .workspace_bytes = workspace_bytes,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 90,
    .refuses = needs_shared_memory<BYTES<64>, BYTES<128>>,
};
