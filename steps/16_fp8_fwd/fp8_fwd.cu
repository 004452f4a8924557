// 16_fp8_fwd: two products per wait, three consumers at d 64, the order of the blocks.
//
// Idea      A consumer starts the product of a tile with K, and right after it the product of the tile before with V. It waits for both
//           before it computes. At d 64 there are three consumers. Blocks start in the order of chapter 12. Where a head has one
//           scale, the kernel reads no scale per tile, and adds a tile's part to O by one instruction per element.
// Costs     O(N) memory: the outputs only. Two shared-memory passes over each tile of V, for 128 or 192 query rows.
// Limiter   README.md beside this file has the counters.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "order.cuh"
#include "softmax8.cuh"
#include "tiles8.cuh"
#include "transpose8.cuh"

template <int D> constexpr int CONSUMERS_OF = D == 64 ? 3 : 2;            // warpgroups that compute, 64 query rows each
template <int D> constexpr int PRODUCER_REGISTERS = D == 64 ? 32 : 40;    // per thread. The sum over all threads is
template <int D> constexpr int CONSUMER_REGISTERS = D == 64 ? 160 : 232;  // at most what it was before setmaxnreg
template <int D> constexpr int THREADS = (1 + CONSUMERS_OF<D>)*WARPGROUP; // per block
template <int D> constexpr int ROWS = 64 * CONSUMERS_OF<D>;               // query rows per block
constexpr int STAGES = 2; // tiles of K, of V and of V transposed in shared memory

constexpr size_t SECTION_BYTES = 32 << 20; // K and V of the heads of a section: what stays in the L2 cache

// Shared memory: Q (Br, D), K, V (STAGES, Bc, D) and V transposed (STAGES, D, Bc), the barriers, and what may lie before a multiple of
// 1024 bytes.
template <int D> constexpr size_t BYTES = (ROWS<D> + 3 * STAGES * Bc) * D + (1 + 5 * STAGES) * sizeof(uint64_t) + 1024;
static_assert(BYTES<128> <= LEAST_SHARED_BYTES_9_0, "the tiles fit into the shared memory of a Hopper card");

struct tensor_maps {
    CUtensorMap Q, K, V;
};

// T: the type of Q, K and V; P is e4m3. BLOCKS: each tile of keys has a scale, else each head.

template <int D, class T, bool BLOCKS>
static __global__ __launch_bounds__(THREADS<D>,
                                    1) void forward_kernel(const __grid_constant__ tensor_maps maps,
                                                           const float *Q_scales, // (heads, scale_blocks(N_q))
                                                           const float *K_scales, // (kv heads, scale_blocks(N_kv))
                                                           const float *V_scales, // (kv heads, scale_blocks(N_kv))
                                                           __nv_bfloat16 *O,      // (heads, N_q, d)
                                                           float *L,              // (heads, N_q)
                                                           int group,             // query heads per head of K and V
                                                           problem p, int section) {
    constexpr int CONSUMERS = CONSUMERS_OF<D>, Br = ROWS<D>;
    extern __shared__ uint4 smem[];
    uint8_t *Q_smem = first_multiple_of_1024(smem); // (Br, D)
    uint8_t *K_smem = Q_smem + Br * D;              // (STAGES, Bc, D)
    uint8_t *V_smem = K_smem + STAGES * Bc * D;     // (STAGES, Bc, D)
    uint8_t *V_t_smem = V_smem + STAGES * Bc * D;   // (STAGES, D, Bc)
    uint64_t *Q_full = (uint64_t *)(V_t_smem + STAGES * Bc * D), *K_full = Q_full + 1, *V_full = K_full + STAGES;
    uint64_t *V_t_full = V_full + STAGES, *K_empty = V_t_full + STAGES, *V_t_empty = K_empty + STAGES; // one per stage
    int warp = threadIdx.x / WARP % 4, lane = threadIdx.x % WARP;
    int consumer = __shfl_sync(FULL_WARP, threadIdx.x / WARPGROUP, 0) - 1; // -1: the producer; known to be uniform
    // Blocks start in the order of their index: section by section, in each the last rows of all its heads first, since under a
    // causal mask they attend to the most keys.
    block_place own = place_of_block(blockIdx.x, blockIdx.y, gridDim.x, gridDim.y, section);
    int head = own.head, kv_head = head / group;
    int row0 = (gridDim.x - 1 - own.tile) * Br;
    int tiles = (attended_keys(p, row0 + Br - 1) + Bc - 1) / Bc; // with keys that the block's last row attends to

    if (threadIdx.x == 0) {
        for (uint64_t *full = Q_full; full < K_empty; full++) mbarrier_init(full, 1);
        for (int i = 0; i < 2 * STAGES; i++) mbarrier_init(K_empty + i, 4 * CONSUMERS); // warps arrive
        fence_mbarrier_init();
    }
    __syncthreads(); // the barriers are ready
    if (consumer < 0) {
        registers_decrease<PRODUCER_REGISTERS<D>>();
        auto load_K = [&](int i) { // tile i from the last one on
            load_bytes(K_smem + i % STAGES * Bc * D, maps.K, Bc * D, 0, (tiles - 1 - i) * Bc, kv_head,
                       K_full + i % STAGES);
        };
        auto load_V = [&](int i) {
            load_bytes(V_smem + i % STAGES * Bc * D, maps.V, Bc * D, 0, (tiles - 1 - i) * Bc, kv_head,
                       V_full + i % STAGES);
        };
        bool loads = threadIdx.x == 0;
        if (loads && tiles > 0) load_bytes(Q_smem, maps.Q, Br * D, 0, row0, head, Q_full);
        for (int i = 0; loads && i < min(tiles, STAGES); i++) load_K(i), load_V(i);
        for (int i = 0; i < tiles; i++) {
            int stage = i % STAGES, round = i / STAGES;
            mbarrier_wait(V_full + stage, round % 2);
            if (round > 0) mbarrier_wait(V_t_empty + stage, (round - 1) % 2);
            __syncwarp(); // redundant: nvcc lets the warp meet here anyway; thread 0 may have waited for the room of a copy
            transpose_tile<D>(V_t_smem + stage * Bc * D, V_smem + stage * Bc * D);
            fence_proxy_async();                          // wgmma sees what this thread has stored
            named_barrier_sync(1 + CONSUMERS, WARPGROUP); // all threads have stored their part, none still reads V
            if (!loads) continue;
            mbarrier_arrive(V_t_full + stage);
            if (i + STAGES >= tiles) continue;
            load_V(i + STAGES);
            mbarrier_wait(K_empty + stage, round % 2);
            load_K(i + STAGES);
        }
        return;
    }
    registers_increase<CONSUMER_REGISTERS<D>>();
    int group_row = row0 + 64 * consumer, my_row = group_row + warp * 16 + lane / 4; // and 8 rows below
    int unmasked = attended_keys(p, group_row) / Bc; // tiles of which all rows of the group attend to all keys
    if (p.scale <= 0.0f) unmasked = 0;               // weights8() then applies the factor to all scores
    int scale_row = min(group_row, p.N_q - 1) / SCALE_ROWS;
    float factor = p.scale * LOG2_E * Q_scales[head * scale_blocks(p.N_q) + scale_row];
    int first_scale = kv_head * scale_blocks(p.N_kv); // of the head of K and V
    if (!BLOCKS) factor *= K_scales[first_scale];

    float S_reg[Bc / 8][4], O_reg[D / 8][4] = {}, part_reg[D / 8][4], m_reg[2] = {NONE, NONE}, l_reg[2] = {},
                                      rescale[2];
    uint32_t P_reg[Bc / 32][4];
    const uint8_t *Q_tile = Q_smem + consumer * 64 * D;
    auto release = [&](uint64_t *empty) { // the whole warp has waited for its product
        if (lane == 0) mbarrier_arrive(empty);
    };
    // A consumer's turn lasts until its products are there, so that the others compute meanwhile. A turn is one barrier, which a
    // consumer meets with the one before it; the barrier's number is 1 + consumer.
    auto my_turn = [&]() { named_barrier_sync(1 + consumer, 2 * WARPGROUP); }; // redundant: for speed only
    auto next_turn = [&]() { named_barrier_arrive(1 + (consumer + 1) % CONSUMERS, 2 * WARPGROUP); };
    if (tiles > 0 && consumer == CONSUMERS - 1) next_turn(); // the first consumer begins
    auto softmax = [&](int tile, bool masked) {
        weights8(S_reg, m_reg, l_reg, rescale, BLOCKS ? factor * K_scales[first_scale + tile] : factor, p, masked,
                 tile * Bc + lane % 4 * 2, my_row);
        round_P8(P_reg, S_reg);
    };
    auto add_to_O = [&](int tile) {
        if constexpr (BLOCKS)
            add_part(O_reg, part_reg, rescale, V_scales[first_scale + tile]);
        else
            add_part(O_reg, part_reg, rescale);
    };
    // The products of `tile` with K and of the tile before it, in time, with V.
    auto visit = [&](int tile, bool masked) {
        int i = tiles - 1 - tile, stage = i % STAGES, before = (i - 1) % STAGES;
        mbarrier_wait(K_full + stage, i / STAGES % 2);
        my_turn();
        multiply_QK8<D, T>(S_reg, Q_tile, K_smem + stage * Bc * D);
        mbarrier_wait(V_t_full + before, (i - 1) / STAGES % 2);
        multiply_PV8<D, T>(part_reg, P_reg, V_t_smem + before * Bc * D);
        wgmma_wait<1>(); // S is there
        release(K_empty + stage);
        wgmma_wait<0>(); // the part is there, too
        next_turn();
        release(V_t_empty + before);
        add_to_O(tile + 1);
        softmax(tile, masked);
    };
    if (tiles > 0) {
        mbarrier_wait(Q_full, 0);
        mbarrier_wait(K_full, 0);
        my_turn();
        multiply_QK8<D, T>(S_reg, Q_tile, K_smem);
        next_turn();
        wgmma_wait<0>();
        release(K_empty);
        softmax(tiles - 1, true);
        int tile = tiles - 2;
        for (; tile >= unmasked; tile--) visit(tile, true);
        for (; tile >= 0; tile--) visit(tile, false);
        int last = (tiles - 1) % STAGES;
        mbarrier_wait(V_t_full + last, (tiles - 1) / STAGES % 2);
        multiply_PV8<D, T>(part_reg, P_reg, V_t_smem + last * Bc * D);
        wgmma_wait<0>();
        add_to_O(0);
    }

    for (int i = 0; i < 2; i++) m_reg[i] -= P_EXPONENT; // O and l have the same factor, and L has it from l
    size_t first = (size_t)head * p.N_q;
    float scale = BLOCKS || tiles == 0 ? 1.0f : V_scales[first_scale];
    store_rows8(O + first * p.d, L + first, O_reg, m_reg, l_reg, scale, my_row, p.N_q, p.d);
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    int heads = p->batch * p->heads, kv = p->batch * kv_heads(p), group = p->heads / kv_heads(p);
    return dispatch8(p, [&]<int D, class T>() {
        constexpr int Br = ROWS<D>;
        tensor_maps maps;
        cudaError_t error = make_bytes_map<D>(&maps.Q, t->Q, heads, p->N_q, p->d, Br);
        if (error == cudaSuccess) error = make_bytes_map<D>(&maps.K, t->K, kv, p->N_kv, p->d, Bc);
        if (error == cudaSuccess) error = make_bytes_map<D>(&maps.V, t->V, kv, p->N_kv, p->d, Bc);
        if (error != cudaSuccess) return error;
        dim3 blocks(ceil_div(p->N_q, Br), heads);
        size_t bytes = 2 * (size_t)p->N_kv * p->d / group + 1; // K and V of a head, of which a group has one
        int section = p->causal ? heads_of_section(SECTION_BYTES, bytes, blocks.y, blocks.x) : 1;
        auto kernel = p->scales == OF_BLOCK ? forward_kernel<D, T, true> : forward_kernel<D, T, false>;
        return launch(kernel, blocks, THREADS<D>, BYTES<D>, stream, maps, t->Q_scales, t->K_scales, t->V_scales,
                      (__nv_bfloat16 *)t->O, t->L, group, *p, section);
    });
}

extern "C" const step step_16_fp8_fwd = {
    .name = "16_fp8_fwd",
    .idea = "two products per wait, three consumers at d 64, the order of the blocks",
    .forward = forward,
    .dtypes = 1 << FP8,
    .d_multiple = 16,
    .grouped_heads = true,
    .compute_capability = 90,
    .refuses = needs_shared_memory<BYTES<64>, BYTES<128>>,
};
