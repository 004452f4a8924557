// 16x_one_accumulator: 16a_transposed with O in the accumulator of the tensor core for all tiles. Wrong for long rows; beside the chain.
//
// Idea      A fresh accumulator per tile costs an fp32 addition per element of O and tile, and a register. Without it O is an operand of
//           each product with V, and only rescaled between tiles. But the accumulator cuts off what lies 13 bits below its size.
// Costs     O(N) memory: the outputs, and a transposed copy of V in the workspace, one byte per element.
// Limiter   Its result: the check of the program refuses it for flat rows of 8192 keys and more.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "softmax8.cuh"
#include "tiles8.cuh"
#include "transpose_kernel.cuh"

constexpr int THREADS = WARPGROUP; // per block
constexpr int Br = 64;             // query rows per block: those of one wgmma
static_assert(SCALE_ROWS % Br == 0, "a block's rows have one scale");

// Shared memory: Q (Br, D), K (Bc, D), V transposed (D, Bc), three barriers, and what may lie before a multiple of 1024 bytes.
template <int D> constexpr size_t BYTES = (Br + 2 * Bc) * D + 3 * sizeof(uint64_t) + 1024;
static_assert(BYTES<128> <= LEAST_SHARED_BYTES_9_0, "the tiles fit into the shared memory of a Hopper card");

struct tensor_maps {
    CUtensorMap Q, K, V; // V: transposed
};

// Start O += P V for the keys of one tile. T: the type of V; P is e4m3.
template <int D, class T>
__device__ __forceinline__ void add_PV8(float (&O)[D / 8][4], const uint32_t (&P)[Bc / 32][4], const uint8_t *V_tile) {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < Bc / 32; k++) wgmma_fp8(T(), O, P[k], bytes_tile<Bc>(V_tile + 32 * k), true);
    wgmma_commit();
}

// T: the type of Q, K and V.

template <int D, class T>
static __global__ __launch_bounds__(THREADS,
                                    3) void forward_kernel(const __grid_constant__ tensor_maps maps,
                                                           const float *Q_scales, // (heads, scale_blocks(N_q))
                                                           const float *K_scales, // (kv heads, scale_blocks(N_kv))
                                                           const float *V_scales, // (kv heads, scale_blocks(N_kv))
                                                           __nv_bfloat16 *O,      // (heads, N_q, d)
                                                           float *L,              // (heads, N_q)
                                                           int group,             // query heads per head of K and V
                                                           problem p) {
    extern __shared__ uint4 smem[];
    uint8_t *Q_smem = first_multiple_of_1024(smem); // (Br, D)
    uint8_t *K_smem = Q_smem + Br * D;              // (Bc, D)
    uint8_t *V_smem = K_smem + Bc * D;              // (D, Bc)
    uint64_t *Q_full = (uint64_t *)(V_smem + Bc * D), *K_full = Q_full + 1, *V_full = Q_full + 2;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    int head = blockIdx.y, kv_head = head / group;
    // Under a causal mask the last rows attend to the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br;
    int my_row = row0 + warp * 16 + lane / 4;                    // and 8 rows below
    int tiles = (attended_keys(p, row0 + Br - 1) + Bc - 1) / Bc; // with keys that the block's last row attends to
    int unmasked = attended_keys(p, row0) / Bc; // tiles of which all rows of the block attend to all keys

    if (threadIdx.x == 0) {
        for (int i = 0; i < 3; i++) mbarrier_init(Q_full + i, 1);
        fence_mbarrier_init();
    }
    __syncthreads(); // the barriers are ready
    auto load_K = [&](int tile) { load_bytes(K_smem, maps.K, Bc * D, 0, tile * Bc, kv_head, K_full); };
    auto load_V = [&](int tile) { load_bytes(V_smem, maps.V, Bc * D, tile * Bc, 0, kv_head, V_full); };
    bool loads = threadIdx.x == 0;
    if (loads && tiles > 0) {
        load_bytes(Q_smem, maps.Q, Br * D, 0, row0, head, Q_full);
        load_K(tiles - 1);
        load_V(tiles - 1);
    }
    if (p.scale <= 0.0f) unmasked = 0; // weights8() then applies the factor to all scores
    float Q_factor = p.scale * LOG2_E * Q_scales[head * scale_blocks(p.N_q) + row0 / SCALE_ROWS];
    K_scales += kv_head * scale_blocks(p.N_kv);
    V_scales += kv_head * scale_blocks(p.N_kv);

    float S_reg[Bc / 8][4], O_reg[D / 8][4] = {}, m_reg[2] = {NONE, NONE}, l_reg[2] = {}, rescale[2];
    uint32_t P_reg[Bc / 32][4];
    auto visit = [&](int tile, bool masked) {
        int parity = (tiles - 1 - tile) % 2;
        mbarrier_wait(K_full, parity);
        multiply_QK8<D, T>(S_reg, Q_smem, K_smem);
        wgmma_wait<0>();
        __syncthreads(); // all four warps have read K
        if (loads && tile > 0) load_K(tile - 1);

        weights8(S_reg, m_reg, l_reg, rescale, Q_factor * K_scales[tile], p, masked, tile * Bc + lane % 4 * 2, my_row);
        round_P8(P_reg, S_reg);

        mbarrier_wait(V_full, parity);
        float units =
            tile < tiles - 1 ? V_scales[tile + 1] / V_scales[tile] : 1.0f; // O is in those of this tile's scale
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) O_reg[n][e] *= rescale[e / 2] * units;
        add_PV8<D, T>(O_reg, P_reg, V_smem);
        wgmma_wait<0>();
        __syncthreads(); // all four warps have read V
        if (loads && tile > 0) load_V(tile - 1);
    };
    int tile = tiles - 1;
    if (tiles > 0) mbarrier_wait(Q_full, 0);
    for (; tile >= unmasked; tile--) visit(tile, true);
    for (; tile >= 0; tile--) visit(tile, false);

#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) O_reg[n][e] *= tiles > 0 ? V_scales[0] : 1.0f;
    for (int i = 0; i < 2; i++) m_reg[i] -= P_EXPONENT; // O and l have the same factor, and L has it from l
    size_t first = (size_t)head * p.N_q;
    store_rows(O + first * p.d, L + first, O_reg, m_reg, l_reg, my_row, p.N_q, p.d);
}

static cudaError_t forward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    int heads = p->batch * p->heads, kv = p->batch * kv_heads(p), N = padded(p->N_kv);
    cudaError_t error = transpose_before((const uint8_t *)t->V, (uint8_t *)workspace, kv, p->N_kv, p->d, stream);
    if (error != cudaSuccess) return error;
    return dispatch8(p, [&]<int D, class T>() {
        tensor_maps maps;
        error = make_bytes_map<D>(&maps.Q, t->Q, heads, p->N_q, p->d, Br);
        if (error == cudaSuccess) error = make_bytes_map<D>(&maps.K, t->K, kv, p->N_kv, p->d, Bc);
        if (error == cudaSuccess) error = make_bytes_map<Bc>(&maps.V, workspace, kv, p->d, N, D);
        if (error != cudaSuccess) return error;
        dim3 blocks(ceil_div(p->N_q, Br), heads);
        return launch(forward_kernel<D, T>, blocks, THREADS, BYTES<D>, stream, maps, t->Q_scales, t->K_scales,
                      t->V_scales, (__nv_bfloat16 *)t->O, t->L, p->heads / kv_heads(p), *p);
    });
}

static size_t workspace_bytes(const problem *p) { return (size_t)p->batch * kv_heads(p) * p->d * padded(p->N_kv); }

extern "C" const step step_16x_one_accumulator = {
    .name = "16x_one_accumulator",
    .idea = "O in one accumulator of the tensor core for all tiles",
    .beside = "wrong for long rows: the accumulator has 13 bits",
    .forward = forward,
    .workspace_bytes = workspace_bytes,
    .dtypes = 1 << FP8,
    .d_multiple = 16,
    .grouped_heads = true,
    .compute_capability = 90,
    .refuses = needs_shared_memory<BYTES<64>, BYTES<128>>,
};
