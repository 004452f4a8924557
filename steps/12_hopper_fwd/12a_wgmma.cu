// 12a_wgmma: tiles by TMA, products by wgmma.
//
// Idea      The tensor memory accelerator copies whole tiles: one thread asks for them, and a barrier in shared memory counts
//           their bytes. A warpgroup, 4 warps, multiplies 64 rows by wgmma, which reads K and V from shared memory itself.
// Costs     O(N) memory: the outputs only.
// Limiter   A warpgroup waits for each product before the softmax, and for the softmax before the next product.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "softmax.cuh"
#include "tensor.cuh"
#include "tiles.cuh"

constexpr int THREADS = WARPGROUP; // per block
constexpr int Br = 64;             // query rows per block: those of one wgmma
constexpr int Bc = 128;            // keys per tile

// Shared memory: Q (Br, D), K and V (Bc, D), each in panels of 64 columns; three barriers; and what may lie before the first
// multiple of 1024 bytes, at which the swizzle repeats.
template <int D> constexpr size_t BYTES = 2 * (Br + 2 * Bc) * D + 3 * sizeof(uint64_t) + 1024;
static_assert(BYTES<128> <= LEAST_SHARED_BYTES_9_0, "the tiles fit into the shared memory of a Hopper card");

template <int D, class T>
static __global__ __launch_bounds__(THREADS) void forward_kernel(const __grid_constant__ tensor_maps maps,
                                                                 T *O,     // (heads, N_q, d)
                                                                 float *L, // (heads, N_q)
                                                                 problem p) {
    extern __shared__ uint4 smem[];
    T *Q_smem = first_multiple_of_1024<T>(smem); // (D / 64, Br, 64)
    T *K_smem = Q_smem + Br * D;                 // (D / 64, Bc, 64)
    T *V_smem = K_smem + Bc * D;                 // (D / 64, Bc, 64)
    uint64_t *Q_full = (uint64_t *)(V_smem + Bc * D), *K_full = Q_full + 1, *V_full = Q_full + 2;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    int head = blockIdx.y;
    // Under a causal mask the last rows attend to the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br;
    int my_row = row0 + warp * 16 + lane / 4;                    // and 8 rows below
    int tiles = (attended_keys(p, row0 + Br - 1) + Bc - 1) / Bc; // with keys that the block's last row attends to
    int unmasked = attended_keys(p, row0) / Bc; // tiles of which all rows of the block attend to all keys
    if (p.scale <= 0.0f) unmasked = 0;          // new_maxima() then applies the factor to all scores

    if (threadIdx.x == 0) {
        for (int i = 0; i < 3; i++) mbarrier_init(Q_full + i, 1);
        fence_mbarrier_init();
    }
    __syncthreads(); // the barriers are ready
    bool loads = threadIdx.x == 0;
    if (loads && tiles > 0) {
        load_tile<D>(Q_smem, maps.Q, Br, row0, head, Q_full);
        load_tile<D>(K_smem, maps.K, Bc, (tiles - 1) * Bc, head, K_full);
        load_tile<D>(V_smem, maps.V, Bc, (tiles - 1) * Bc, head, V_full);
    }

    float S_reg[Bc / 8][4], O_reg[D / 8][4] = {}, m_reg[2] = {NONE, NONE}, l_reg[2] = {}, rescale[2];
    uint32_t P_reg[Bc / 16][4];
    auto visit = [&](int tile, bool masked) {
        int parity = (tiles - 1 - tile) % 2;
        mbarrier_wait(K_full, parity);
        multiply_QK<D, Br, Bc>(S_reg, Q_smem, K_smem);
        wgmma_wait<0>();
        __syncthreads(); // all four warps have read K
        if (loads && tile > 0) load_tile<D>(K_smem, maps.K, Bc, (tile - 1) * Bc, head, K_full);

        if (new_maxima(S_reg, m_reg, l_reg, rescale, p, masked, tile * Bc + lane % 4 * 2, my_row))
            rescale_rows(O_reg, rescale);
        weights(S_reg, m_reg, l_reg, p, masked);
        round_P<T>(P_reg, S_reg);

        mbarrier_wait(V_full, parity);
        multiply_PV<D, Bc>(O_reg, P_reg, V_smem);
        wgmma_wait<0>();
        __syncthreads(); // all four warps have read V
        if (loads && tile > 0) load_tile<D>(V_smem, maps.V, Bc, (tile - 1) * Bc, head, V_full);
    };
    int tile = tiles - 1;
    if (tiles > 0) mbarrier_wait(Q_full, 0);
    for (; tile >= unmasked; tile--) visit(tile, true);
    for (; tile >= 0; tile--) visit(tile, false);

    size_t first = (size_t)head * p.N_q;
    store_rows(O + first * p.d, L + first, O_reg, m_reg, l_reg, my_row, p.N_q, p.d);
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    return dispatch(p, [&]<int D, class T>() {
        tensor_maps maps;
        cudaError_t error = make_tensor_maps(&maps, p, t, Br, Bc);
        if (error != cudaSuccess) return error;
        dim3 blocks(ceil_div(p->N_q, Br), p->batch * p->heads);
        return launch(forward_kernel<D, T>, blocks, THREADS, BYTES<D>, stream, maps, (T *)t->O, t->L, *p);
    });
}

extern "C" const step step_12a_wgmma = {
    .name = "12a_wgmma",
    .idea = "tiles by TMA, products by wgmma",
    .forward = forward,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 90,
    .refuses = needs_shared_memory<BYTES<64>, BYTES<128>>,
};
