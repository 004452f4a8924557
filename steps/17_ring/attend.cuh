/* The kernel of all rungs of this chapter: that of 12e, with two changes. It computes some rows of Q, from row `first`
 * on, over the first N_kv keys of K and V. And what becomes of O, m and l is the rung's business: its epilogue's store(), a
 * template <class T, int NO>, is called by all threads that hold rows, once. */
#ifndef ATTEND_CUH
#define ATTEND_CUH

#include "attention.h"

#include "../12_hopper_fwd/softmax.cuh"
#include "../12_hopper_fwd/tiles.cuh"
#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "order.cuh"
#include "tensor.cuh"

// At d 128 the registers of O and P leave room for two consumers only, when a product of the next tile runs beside them (12d).
template <int D> constexpr int CONSUMERS = D == 64 ? 3 : 2; // warpgroups, 64 query rows each
template <int D> constexpr int THREADS = (1 + CONSUMERS<D>)*WARPGROUP;
template <int D> constexpr int PRODUCER_REGISTERS = D == 64 ? 32 : 24;   // per thread. The sum over all threads
template <int D> constexpr int CONSUMER_REGISTERS = D == 64 ? 160 : 240; // is the same before setmaxnreg and after
template <int D> constexpr int Br = 64 * CONSUMERS<D>;                   // query rows per block
template <int D> constexpr int KEYS = D == 64 ? 128 : 176;               // per tile; 192 were not tried
constexpr int STAGES = 2;                                                // tiles of K and of V in shared memory

constexpr size_t SECTION_BYTES = 32 << 20; // K and V of the heads of a section: what stays in the L2 cache

// Shared memory: Q (Br, D), K and V (STAGES, Bc, D), each in panels of 64 columns; the barriers; and what may lie
// before the first multiple of 1024 bytes, at which the swizzle repeats.
template <int D>
constexpr size_t BYTES = 2 * (Br<D> + 2 * STAGES * KEYS<D>)*D + (1 + 4 * STAGES) * sizeof(uint64_t) + 1024;
static_assert(BYTES<128> <= LEAST_SHARED_BYTES_9_0, "the tiles fit into the shared memory of a Hopper card");

template <int D, class T, class Epilogue>
static __global__ __launch_bounds__(THREADS<D>, 1) void attend_kernel(const __grid_constant__ tensor_maps maps,
                                                                      Epilogue epilogue, int first, problem p,
                                                                      int section) {
    constexpr int Bc = KEYS<D>;
    extern __shared__ uint4 smem[];
    T *Q_smem = first_multiple_of_1024<T>(smem); // (D / 64, Br, 64)
    T *K_smem = Q_smem + Br<D> * D;              // (STAGES, D / 64, Bc, 64)
    T *V_smem = K_smem + STAGES * Bc * D;        // (STAGES, D / 64, Bc, 64)
    uint64_t *Q_full = (uint64_t *)(V_smem + STAGES * Bc * D), *K_full = Q_full + 1, *V_full = K_full + STAGES;
    uint64_t *K_empty = V_full + STAGES, *V_empty = K_empty + STAGES; // one per stage
    int warp = threadIdx.x / WARP % 4, lane = threadIdx.x % WARP;
    int consumer = __shfl_sync(FULL_WARP, threadIdx.x / WARPGROUP, 0) - 1; // -1: the producer; known to be uniform
    // Blocks start in the order of their index: section by section, in each the last rows of all its heads first, since under a
    // causal mask they attend to the most keys.
    block_place own = place_of_block(blockIdx.x, blockIdx.y, gridDim.x, gridDim.y, section);
    int head = own.head, row0 = (gridDim.x - 1 - own.tile) * Br<D>;
    int tiles = (attended_keys(p, row0 + Br<D> - 1) + Bc - 1) / Bc; // with keys that the block's last row attends to

    if (threadIdx.x == 0) {
        for (uint64_t *full = Q_full; full < K_empty; full++) mbarrier_init(full, 1);
        for (int i = 0; i < 2 * STAGES; i++) mbarrier_init(K_empty + i, 4 * CONSUMERS<D>); // warps arrive
        fence_mbarrier_init();
    }
    __syncthreads(); // the barriers are ready
    if (consumer < 0) {
        registers_decrease<PRODUCER_REGISTERS<D>>();
        if (threadIdx.x == 0 && tiles > 0) {
            load_tile<D>(Q_smem, maps.Q, Br<D>, first + row0, head, Q_full);
            for (int tile = tiles - 1; tile >= 0; tile--) {
                int i = tiles - 1 - tile, stage = i % STAGES, round = i / STAGES;
                if (round > 0) mbarrier_wait(K_empty + stage, (round - 1) % 2);
                load_tile<D>(K_smem + stage * Bc * D, maps.K, Bc, tile * Bc, head, K_full + stage);
                if (round > 0) mbarrier_wait(V_empty + stage, (round - 1) % 2);
                load_tile<D>(V_smem + stage * Bc * D, maps.V, Bc, tile * Bc, head, V_full + stage);
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
        if (lane == 0) mbarrier_arrive(empty);
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

    epilogue.template store<T>(O_reg, m_reg, l_reg, head, my_row, p);
}

/* Which rows of Q (heads, Q_rows, d) attend to which of K and V (heads, KV_rows, d): N_q rows from `first` on to the first N_kv. If
 * causal, the last of these rows attends to all of these keys, as in struct problem. */
struct part {
    const void *Q;
    int Q_rows, first, N_q;
    const void *K, *V;
    int KV_rows, N_kv;
    bool causal;
};

/* Start the kernel on the current device. Without keys it still calls the epilogue; without rows nothing is started. */
template <class Epilogue>
cudaError_t attend(const problem *whole, const part &part, const Epilogue &epilogue, cudaStream_t stream) {
    problem p = *whole;
    p.N_q = part.N_q, p.N_kv = part.N_kv, p.causal = part.causal;
    if (p.N_q == 0) return cudaSuccess;
    return dispatch(&p, [&]<int D, class T>() {
        tensor_maps maps;
        int heads = whole->batch * whole->heads,
            rows = part.KV_rows > 0 ? part.KV_rows : 1; // a map of no rows is refused
        cudaError_t error = make_tensor_map(&maps.Q, p.dtype, part.Q, heads, part.Q_rows, p.d, Br<D>);
        if (error == cudaSuccess) error = make_tensor_map(&maps.K, p.dtype, part.K, heads, rows, p.d, KEYS<D>);
        if (error == cudaSuccess) error = make_tensor_map(&maps.V, p.dtype, part.V, heads, rows, p.d, KEYS<D>);
        if (error != cudaSuccess) return error;
        dim3 blocks(ceil_div(p.N_q, Br<D>), heads);
        size_t bytes = 4 * (size_t)rows * p.d; // K and V of a head
        int section = p.causal ? heads_of_section(SECTION_BYTES, bytes, blocks.y, blocks.x) : 1;
        return launch(attend_kernel<D, T, Epilogue>, blocks, THREADS<D>, BYTES<D>, stream, maps, epilogue, part.first,
                      p, section);
    });
}

#endif
