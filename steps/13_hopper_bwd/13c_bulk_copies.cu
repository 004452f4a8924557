// 13c_bulk_copies.cu: L and D by the TMA, too.
//
// Idea      A row's L and D belong to its Q and dO: bulk copies bring them into the same stage, counted by the same barriers. A lane
//           reads them from shared memory, and no longer waits for global memory between two products.
// Costs     O(N) memory: per query row two floats and WIDTH floats of dQ. S and P are computed again from Q, K and L.
// Limiter   README.md beside this file has the counters.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "tensor.cuh"
#include "tiles.cuh"

constexpr int CONSUMERS = 2; // warpgroups, 64 keys each
constexpr int THREADS = (1 + CONSUMERS) * WARPGROUP;
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240; // per thread; all together start with 168 each
constexpr int Bc = 64 * CONSUMERS;                               // keys per block
constexpr int Br = 64;                                           // query rows per tile
constexpr int STAGES = 2;                                        // tiles of Q and of dO in shared memory, and of dS

// Shared memory: K, V (Bc, WIDTH); Q, dO (STAGES, Br, WIDTH); dS (STAGES, Br, Bc); L2, D (STAGES, Br); barriers;
// and what may lie before the first multiple of 1024 bytes.
template <int WIDTH>
constexpr size_t BYTES = 2 * (2 * Bc * WIDTH + STAGES * Br * (2 * WIDTH + Bc)) + 8 * (1 + 4 * STAGES) + 1024 +
                         4 * (2 * STAGES * Br);
static_assert(BYTES<64> <= LEAST_SHARED_BYTES_9_0 && BYTES<128> <= LEAST_SHARED_BYTES_9_0, "fits on a Hopper card");

constexpr int dS_STORED = 1; // a named barrier

template <int WIDTH, class T>
static __global__
__launch_bounds__(THREADS, 1) void backward_kernel(const __grid_constant__ tensor_maps maps, const float *L2,
                                                   const float *D, // (heads, padded)
                                                   float *dQ_sum,  // (heads, padded, WIDTH) in the order of fragments
                                                   T *dK, T *dV,   // (heads, N_kv, d)
                                                   int padded, problem p) {
    constexpr int TILE = Br * WIDTH;
    extern __shared__ uint4 smem[];
    T *K_smem = first_multiple_of_1024<T>(smem), *V_smem = K_smem + Bc * WIDTH; // (Bc, WIDTH)
    T *Q_smem = V_smem + Bc * WIDTH, *dO_smem = Q_smem + STAGES * TILE;         // (STAGES, Br, WIDTH)
    T *dS_smem = dO_smem + STAGES * TILE;                                       // (STAGES, Br, Bc)
    float *L2_smem = (float *)(dS_smem + STAGES * Br * Bc);                     // (STAGES, Br)
    float *D_smem = L2_smem + STAGES * Br;                                      // (STAGES, Br)
    uint64_t *KV_full = (uint64_t *)(D_smem + STAGES * Br), *Q_full = KV_full + 1, *dO_full = Q_full + STAGES;
    uint64_t *Q_empty = dO_full + STAGES, *dO_empty = Q_empty + STAGES; // one per stage
    int warp = threadIdx.x / WARP % 4, lane = threadIdx.x % WARP;
    int consumer = __shfl_sync(FULL_WARP, threadIdx.x / WARPGROUP, 0) - 1; // -1: the producer; known to be uniform
    // Under a causal mask the most queries attend to the first keys: the longest blocks start first.
    int head = blockIdx.y, key0 = blockIdx.x * Bc;
    int first_tile = first_attending_query(p, key0) / Br; // rows before it attend to none of these keys
    int tiles = max(0, ceil_div(p.N_q, Br) - first_tile);

    if (threadIdx.x == 0) {
        for (uint64_t *full = KV_full; full < Q_empty; full++) mbarrier_init(full, 1);
        for (int i = 0; i < 2 * STAGES; i++) mbarrier_init(Q_empty + i, 4 * CONSUMERS); // warps arrive
        fence_mbarrier_init();
    }
    __syncthreads(); // the barriers are ready
    if (consumer < 0) {
        registers_decrease<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0 && tiles > 0) {
            mbarrier_arrive_expect(KV_full, 2 * Bc * WIDTH * sizeof(T));
            load_tile<WIDTH>(K_smem, maps.K, Bc, key0, head, KV_full);
            load_tile<WIDTH>(V_smem, maps.V, Bc, key0, head, KV_full);
            for (int i = 0; i < tiles; i++) {
                int stage = i % STAGES, round = i / STAGES, row0 = (first_tile + i) * Br;
                size_t at = (size_t)head * padded + row0;
                if (round > 0) mbarrier_wait(dO_empty + stage, (round - 1) % 2);
                mbarrier_arrive_expect(dO_full + stage, TILE * sizeof(T) + Br * sizeof(float));
                load_tile<WIDTH>(dO_smem + stage * TILE, maps.dO, Br, row0, head, dO_full + stage);
                bulk_load(D_smem + stage * Br, D + at, Br * sizeof(float), dO_full + stage);
                if (round > 0) mbarrier_wait(Q_empty + stage, (round - 1) % 2); // redundant: dO is released after dK
                mbarrier_arrive_expect(Q_full + stage, TILE * sizeof(T) + Br * sizeof(float));
                load_tile<WIDTH>(Q_smem + stage * TILE, maps.Q, Br, row0, head, Q_full + stage);
                bulk_load(L2_smem + stage * Br, L2 + at, Br * sizeof(float), Q_full + stage);
            }
        }
        return;
    }
    registers_increase<CONSUMER_REGISTERS>();
    int my_key = consumer * 64 + warp * 16 + lane / 4; // of the block's, and 8 keys below
    float factor = p.scale * LOG2_E;
    float S_reg[Br / 8][4], dP_reg[Br / 8][4], dQ_reg[WIDTH / 8][4]; // S^T and dP^T: 64 keys, Br queries
    float dK_reg[WIDTH / 8][4] = {}, dV_reg[WIDTH / 8][4] = {};
    uint32_t P_reg[Br / 16][4], dS_reg[Br / 16][4]; // P^T and dS^T as A of dV and dK
    const T *my_K = K_smem + consumer * 64 * 64, *my_V = V_smem + consumer * 64 * 64;
    auto release = [&](uint64_t *empty) {
        __syncwarp(); // redundant: wgmma_wait() is the whole warp's; L2, D are read before dS_STORED
        if (lane == 0) mbarrier_arrive(empty);
    };
    auto visit = [&](int i, bool masked) {
        int stage = i % STAGES, row0 = (first_tile + i) * Br;
        const T *Q_tile = Q_smem + stage * TILE, *dO_tile = dO_smem + stage * TILE;
        T *dS_tile = dS_smem + stage * Br * Bc;
        const float *my_L2 = L2_smem + stage * Br + lane % 4 * 2, *my_D = D_smem + stage * Br + lane % 4 * 2;
        mbarrier_wait(Q_full + stage, i / STAGES % 2);
        multiply_rows<WIDTH, Bc, Br>(S_reg, my_K, Q_tile);
        mbarrier_wait(dO_full + stage, i / STAGES % 2);
        multiply_rows<WIDTH, Bc, Br>(dP_reg, my_V, dO_tile);
        wgmma_wait<1>(); // S is there
        // Query n attends to the keys before min(limit + n, all) of the block.
        int limit = row0 + lane % 4 * 2 + 1 + (p.causal ? p.N_kv - p.N_q : p.N_kv) - key0, all = p.N_kv - key0;
#pragma unroll
        for (int n = 0; n < Br / 8; n++) {
            float2 two_L2 = *(const float2 *)(my_L2 + 8 * n);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float &s = S_reg[n][e];
                s = exp2_approx(s * factor - (e % 2 ? two_L2.y : two_L2.x));
                if (masked) s = my_key + e / 2 * 8 < min(limit + 8 * n + e % 2, all) ? s : 0.0f;
            }
        }
#pragma unroll
        for (int k = 0; k < Br / 16; k++) pack_A<T>(P_reg[k], S_reg[2 * k], S_reg[2 * k + 1]);
        wgmma_wait<0>(); // dP is there
#pragma unroll
        for (int n = 0; n < Br / 8; n++) {
            float2 two_D = *(const float2 *)(my_D + 8 * n);
#pragma unroll
            for (int e = 0; e < 4; e++) dP_reg[n][e] = S_reg[n][e] * (dP_reg[n][e] - (e % 2 ? two_D.y : two_D.x));
        }
        // dS (Br, Bc) for dQ: two queries by two keys of a fragment go to two rows.
#pragma unroll
        for (int k = 0; k < Br / 16; k++) {
            pack_A<T>(dS_reg[k], dP_reg[2 * k], dP_reg[2 * k + 1]);
            int row = 16 * k + lane / 16 * 8 + lane % 8, key = consumer * 64 + warp * 16 + lane / 8 % 2 * 8;
            stmatrix_x4_trans(dS_tile + place(Br, row, key), dS_reg[k]);
        }
        multiply_registers<WIDTH, Br>(dV_reg, P_reg, dO_tile);
        fence_proxy_async();                                  // wgmma sees what this thread has stored
        named_barrier_sync(dS_STORED, CONSUMERS * WARPGROUP); // dS of both consumers
        multiply_registers<WIDTH, Br>(dK_reg, dS_reg, Q_tile);
        wgmma_wait<0>(); // dV and dK are there
        release(dO_empty + stage);
        release(Q_empty + stage);
        if (consumer == 0) {
            multiply_tiles<Br, Bc>(dQ_reg, dS_tile, K_smem);
            wgmma_wait<0>(); // dQ is there
            float *to = dQ_sum + ((size_t)head * padded + row0) * WIDTH + threadIdx.x % WARPGROUP * 4;
#pragma unroll
            for (int n = 0; n < WIDTH / 8; n++)
                reduce_add4(to + n * 4 * WARPGROUP,
                            make_float4(dQ_reg[n][0], dQ_reg[n][1], dQ_reg[n][2], dQ_reg[n][3]));
        }
    };
    if (tiles > 0) mbarrier_wait(KV_full, 0);
    int i = 0; // a tile's first row attends to the fewest keys
    for (; i < tiles && key0 + Bc > attended_keys(p, (first_tile + i) * Br); i++) visit(i, true);
    for (; i < tiles; i++) visit(i, false);
    size_t first = (size_t)head * p.N_kv * p.d;
    store_fragments(dV + first, dV_reg, 1.0f, key0 + my_key, p.N_kv, p.d);
    store_fragments(dK + first, dK_reg, p.scale, key0 + my_key, p.N_kv, p.d);
}

// ---- on the host

static cudaError_t backward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    return dispatch(p, [&]<int WIDTH, class T>() {
        return around<T, WIDTH, WIDTH>(
            p, t, workspace, stream, Br, Bc, [&](const tensor_maps &maps, const intermediates &x) {
                dim3 blocks(ceil_div(p->N_kv, Bc), p->batch * p->heads);
                return launch(backward_kernel<WIDTH, T>, blocks, THREADS, BYTES<WIDTH>, stream, maps, x.L2, x.D,
                              x.dQ_sum, (T *)t->dK, (T *)t->dV, padded_rows(p), *p);
            });
    });
}

static const char *refuses(const problem *p) {
    return shared_memory_fits(p->d <= 64 ? BYTES<64> : BYTES<128>) ? nullptr
                                                                   : "its tiles need more shared memory per block";
}

extern "C" const step step_13c_bulk_copies = {
    .name = "13c_bulk_copies",
    .idea = "L and D come by bulk copies, with Q and dO",
    .backward = backward,
    .workspace_bytes = intermediate_bytes,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 90,
    .refuses = refuses,
};
