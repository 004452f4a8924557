// 16b_in_shared: V is transposed in shared memory, by the warpgroup that copies.
//
// Idea      A whole warpgroup is the producer: the TMA brings V as it lies in memory, and the 128 threads transpose the tile while
//           two consumers compute. ldmatrix.trans and two byte permutes leave the keys in the order that P has.
// Costs     O(N) memory: the outputs only. Two shared-memory passes over each tile of V, for 128 query rows.
// Limiter   A consumer waits for each product before the softmax, as in 12b.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "softmax8.cuh"
#include "tiles8.cuh"
#include "transpose8.cuh"

constexpr int CONSUMERS = 2;                         // warpgroups that compute, 64 query rows each
constexpr int THREADS = (1 + CONSUMERS) * WARPGROUP; // per block
constexpr int Br = 64 * CONSUMERS;                   // query rows per block
constexpr int STAGES = 2;                            // tiles of K, of V and of V transposed in shared memory
static_assert(SCALE_ROWS % Br == 0, "a block's rows have one scale");

// Shared memory: Q (Br, D), K, V (STAGES, Bc, D) and V transposed (STAGES, D, Bc), the barriers, and what may lie before a multiple of
// 1024 bytes.
template <int D> constexpr size_t BYTES = (Br + 3 * STAGES * Bc) * D + (1 + 5 * STAGES) * sizeof(uint64_t) + 1024;
static_assert(BYTES<128> <= LEAST_SHARED_BYTES_9_0, "the tiles fit into the shared memory of a Hopper card");

struct tensor_maps {
    CUtensorMap Q, K, V;
};

// T: the type of Q, K and V; P is e4m3.

template <int D, class T>
static __global__ __launch_bounds__(THREADS,
                                    1) void forward_kernel(const __grid_constant__ tensor_maps maps,
                                                           const float *Q_scales, // (heads, scale_blocks(N_q))
                                                           const float *K_scales, // (kv heads, scale_blocks(N_kv))
                                                           const float *V_scales, // (kv heads, scale_blocks(N_kv))
                                                           __nv_bfloat16 *O,      // (heads, N_q, d)
                                                           float *L,              // (heads, N_q)
                                                           int group,             // query heads per head of K and V
                                                           problem p) {
    extern __shared__ uint4 smem[];
    uint8_t *Q_smem = first_multiple_of_1024(smem); // (Br, D)
    uint8_t *K_smem = Q_smem + Br * D;              // (STAGES, Bc, D)
    uint8_t *V_smem = K_smem + STAGES * Bc * D;     // (STAGES, Bc, D)
    uint8_t *V_t_smem = V_smem + STAGES * Bc * D;   // (STAGES, D, Bc)
    uint64_t *Q_full = (uint64_t *)(V_t_smem + STAGES * Bc * D), *K_full = Q_full + 1, *V_full = K_full + STAGES;
    uint64_t *V_t_full = V_full + STAGES, *K_empty = V_t_full + STAGES, *V_t_empty = K_empty + STAGES; // one per stage
    int warp = threadIdx.x / WARP % 4, lane = threadIdx.x % WARP;
    int consumer = __shfl_sync(FULL_WARP, threadIdx.x / WARPGROUP, 0) - 1; // -1: the producer; known to be uniform
    int head = blockIdx.y, kv_head = head / group;
    // Under a causal mask the last rows attend to the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br;
    int tiles = (attended_keys(p, row0 + Br - 1) + Bc - 1) / Bc; // with keys that the block's last row attends to

    if (threadIdx.x == 0) {
        for (uint64_t *full = Q_full; full < K_empty; full++) mbarrier_init(full, 1);
        for (int i = 0; i < 2 * STAGES; i++) mbarrier_init(K_empty + i, 4 * CONSUMERS); // warps arrive
        fence_mbarrier_init();
    }
    __syncthreads(); // the barriers are ready
    if (consumer < 0) {
        registers_decrease<40>();
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
        for (int i = 0; loads && i < min(tiles, STAGES); i++) load_V(i), load_K(i);
        for (int i = 0; i < tiles; i++) {
            int stage = i % STAGES, round = i / STAGES;
            mbarrier_wait(V_full + stage, round % 2);
            if (round > 0) mbarrier_wait(V_t_empty + stage, (round - 1) % 2);
            __syncwarp(); // redundant: nvcc lets the warp meet here anyway; thread 0 may have waited for the room of a copy
            transpose_tile<D>(V_t_smem + stage * Bc * D, V_smem + stage * Bc * D);
            fence_proxy_async();              // wgmma sees what this thread has stored
            named_barrier_sync(1, WARPGROUP); // all threads have stored their part, and none still reads V
            if (!loads) continue;
            mbarrier_arrive(V_t_full + stage);
            if (i + STAGES >= tiles) continue;
            load_V(i + STAGES);
            mbarrier_wait(K_empty + stage, round % 2);
            load_K(i + STAGES);
        }
        return;
    }
    registers_increase<232>();
    int group_row = row0 + 64 * consumer, my_row = group_row + warp * 16 + lane / 4; // and 8 rows below
    int unmasked = attended_keys(p, group_row) / Bc; // tiles of which all rows of the group attend to all keys
    if (p.scale <= 0.0f) unmasked = 0;               // weights8() then applies the factor to all scores
    float Q_factor = p.scale * LOG2_E * Q_scales[head * scale_blocks(p.N_q) + row0 / SCALE_ROWS];
    K_scales += kv_head * scale_blocks(p.N_kv);
    V_scales += kv_head * scale_blocks(p.N_kv);

    float S_reg[Bc / 8][4], O_reg[D / 8][4] = {}, part_reg[D / 8][4], m_reg[2] = {NONE, NONE}, l_reg[2] = {},
                                      rescale[2];
    uint32_t P_reg[Bc / 32][4];
    auto release = [&](uint64_t *empty) { // the whole warp has waited for its product
        if (lane == 0) mbarrier_arrive(empty);
    };
    auto visit = [&](int tile, bool masked) {
        int i = tiles - 1 - tile, stage = i % STAGES, parity = i / STAGES % 2;
        mbarrier_wait(K_full + stage, parity);
        multiply_QK8<D, T>(S_reg, Q_smem + consumer * 64 * D, K_smem + stage * Bc * D);
        wgmma_wait<0>();
        release(K_empty + stage);

        weights8(S_reg, m_reg, l_reg, rescale, Q_factor * K_scales[tile], p, masked, tile * Bc + lane % 4 * 2, my_row);
        round_P8(P_reg, S_reg);

        mbarrier_wait(V_t_full + stage, parity);
        multiply_PV8<D, T>(part_reg, P_reg, V_t_smem + stage * Bc * D);
        wgmma_wait<0>();
        release(V_t_empty + stage);
        add_part(O_reg, part_reg, rescale, V_scales[tile]);
    };
    int tile = tiles - 1;
    if (tiles > 0) mbarrier_wait(Q_full, 0);
    for (; tile >= unmasked; tile--) visit(tile, true);
    for (; tile >= 0; tile--) visit(tile, false);

    for (int i = 0; i < 2; i++) m_reg[i] -= P_EXPONENT; // O and l have the same factor, and L has it from l
    size_t first = (size_t)head * p.N_q;
    store_rows8(O + first * p.d, L + first, O_reg, m_reg, l_reg, 1.0f, my_row, p.N_q, p.d);
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    int heads = p->batch * p->heads, kv = p->batch * kv_heads(p);
    return dispatch8(p, [&]<int D, class T>() {
        tensor_maps maps;
        cudaError_t error = make_bytes_map<D>(&maps.Q, t->Q, heads, p->N_q, p->d, Br);
        if (error == cudaSuccess) error = make_bytes_map<D>(&maps.K, t->K, kv, p->N_kv, p->d, Bc);
        if (error == cudaSuccess) error = make_bytes_map<D>(&maps.V, t->V, kv, p->N_kv, p->d, Bc);
        if (error != cudaSuccess) return error;
        dim3 blocks(ceil_div(p->N_q, Br), heads);
        return launch(forward_kernel<D, T>, blocks, THREADS, BYTES<D>, stream, maps, t->Q_scales, t->K_scales,
                      t->V_scales, (__nv_bfloat16 *)t->O, t->L, p->heads / kv_heads(p), *p);
    });
}

extern "C" const step step_16b_in_shared = {
    .name = "16b_in_shared",
    .idea = "V transposed in shared memory by a producer warpgroup",
    .forward = forward,
    .dtypes = 1 << FP8,
    .d_multiple = 16,
    .grouped_heads = true,
    .compute_capability = 90,
    .refuses = needs_shared_memory<BYTES<64>, BYTES<128>>,
};
