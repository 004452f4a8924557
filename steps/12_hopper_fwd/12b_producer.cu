// 12b_producer: one warpgroup copies, the others compute.
//
// Idea      A producer asks for tiles ahead, into two stages, as fast as their readers release them; two or three consumer
//           warpgroups with 64 rows each share every tile. In place of __syncthreads() each stage has two
//           mbarriers: one says that it is full, one that it is empty. The producer gives most of its registers to the consumers.
// Costs     O(N) memory: the outputs only; one block per multiprocessor.
// Limiter   While a warpgroup computes its softmax, the tensor cores work only if another one happens to be at a product.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "softmax.cuh"
#include "tensor.cuh"
#include "tiles.cuh"

// At d 128 the registers of O and P leave room for two consumers only, when a product of the next tile runs beside them (12d).
template <int D> constexpr int CONSUMERS = D == 64 ? 3 : 2; // warpgroups, 64 query rows each
template <int D> constexpr int THREADS = (1 + CONSUMERS<D>)*WARPGROUP;
template <int D> constexpr int PRODUCER_REGISTERS = D == 64 ? 32 : 24;   // per thread. The sum over all threads
template <int D> constexpr int CONSUMER_REGISTERS = D == 64 ? 160 : 240; // is the same before setmaxnreg and after
template <int D> constexpr int Br = 64 * CONSUMERS<D>;                   // query rows per block
constexpr int Bc = 128;                                                  // keys per tile
constexpr int STAGES = 2;                                                // tiles of K and of V in shared memory

// Shared memory: Q (Br, D), K and V (STAGES, Bc, D), each in panels of 64 columns; the barriers; and what may lie before the
// first multiple of 1024 bytes, at which the swizzle repeats.
template <int D>
constexpr size_t BYTES = 2 * (Br<D> + 2 * STAGES * Bc) * D + (1 + 4 * STAGES) * sizeof(uint64_t) + 1024;
static_assert(BYTES<128> <= LEAST_SHARED_BYTES_9_0, "the tiles fit into the shared memory of a Hopper card");

template <int D, class T>
static __global__ __launch_bounds__(THREADS<D>, 1) void forward_kernel(const __grid_constant__ tensor_maps maps,
                                                                       T *O,     // (heads, N_q, d)
                                                                       float *L, // (heads, N_q)
                                                                       problem p) {
    extern __shared__ uint4 smem[];
    T *Q_smem = first_multiple_of_1024<T>(smem); // (D / 64, Br, 64)
    T *K_smem = Q_smem + Br<D> * D;              // (STAGES, D / 64, Bc, 64)
    T *V_smem = K_smem + STAGES * Bc * D;        // (STAGES, D / 64, Bc, 64)
    uint64_t *Q_full = (uint64_t *)(V_smem + STAGES * Bc * D), *K_full = Q_full + 1, *V_full = K_full + STAGES;
    uint64_t *K_empty = V_full + STAGES, *V_empty = K_empty + STAGES; // one per stage
    int warp = threadIdx.x / WARP % 4, lane = threadIdx.x % WARP;
    int consumer = __shfl_sync(FULL_WARP, threadIdx.x / WARPGROUP, 0) - 1; // -1: the producer; known to be uniform
    int head = blockIdx.y;
    // Under a causal mask the last rows attend to the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br<D>;
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
            load_tile<D>(Q_smem, maps.Q, Br<D>, row0, head, Q_full);
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
    auto visit = [&](int tile, bool masked) {
        int i = tiles - 1 - tile, stage = i % STAGES, parity = i / STAGES % 2;
        mbarrier_wait(K_full + stage, parity);
        multiply_QK<D, Br<D>, Bc>(S_reg, Q_tile, K_smem + stage * Bc * D);
        wgmma_wait<0>();
        release(K_empty + stage);

        if (new_maxima(S_reg, m_reg, l_reg, rescale, p, masked, tile * Bc + lane % 4 * 2, my_row))
            rescale_rows(O_reg, rescale);
        weights(S_reg, m_reg, l_reg, p, masked);
        round_P<T>(P_reg, S_reg);

        mbarrier_wait(V_full + stage, parity);
        multiply_PV<D, Bc>(O_reg, P_reg, V_smem + stage * Bc * D);
        wgmma_wait<0>();
        release(V_empty + stage);
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
        cudaError_t error = make_tensor_maps(&maps, p, t, Br<D>, Bc);
        if (error != cudaSuccess) return error;
        dim3 blocks(ceil_div(p->N_q, Br<D>), p->batch * p->heads);
        return launch(forward_kernel<D, T>, blocks, THREADS<D>, BYTES<D>, stream, maps, (T *)t->O, t->L, *p);
    });
}

extern "C" const step step_12b_producer = {
    .name = "12b_producer",
    .idea = "one warpgroup copies, the others compute",
    .forward = forward,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 90,
    .refuses = needs_shared_memory<BYTES<64>, BYTES<128>>,
};
