// 16y_hadamard: 16_fp8_fwd for Q and K in bf16, multiplied by signs and a Hadamard matrix before they are rounded to eight bits.
//
// Idea      A row times an orthogonal matrix keeps its products with other rows; what was large in one column is spread over all.
// Costs     O(N) memory: the outputs, and Q and K in eight bits. Q and K are read twice, in bf16, and written once.
// Limiter   Not measured.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "order.cuh"
#include "softmax8.cuh"
#include "tiles8.cuh"
#include "transpose8.cuh"

// A row of Q or K: a lane has columns 64 i + 2 lane + j. It multiplies them by signs and Hadamard matrices of n columns (attention.h).
__device__ static void multiply_hadamard(float (&x)[2][2], int n) {
    int lane = threadIdx.x % WARP;
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int j = 0; j < 2; j++) {
            unsigned y = (64 * i + 2 * lane + j + 1) * 0x9e3779b1u;
            if ((y ^ y >> 15) * 0x85ebca77u >> 31 != 0) x[i][j] = -x[i][j];
        }
        float left = x[i][0], right = x[i][1];
        x[i][0] = left + right, x[i][1] = left - right;
        for (int distance = 2; distance < n && distance < 64; distance *= 2) // between columns
#pragma unroll
            for (int j = 0; j < 2; j++) {
                float other = __shfl_xor_sync(FULL_WARP, x[i][j], distance / 2);
                x[i][j] = (lane & distance / 2) != 0 ? other - x[i][j] : x[i][j] + other;
            }
    }
#pragma unroll
    for (int j = 0; j < 2 && n == 128; j++) {
        float left = x[0][j], right = x[1][j];
        x[0][j] = left + right, x[1][j] = left - right;
    }
}

// The first launch finds the largest size among the rows that share a scale, the second one rounds. A block has SCALE_ROWS rows of a head.
template <bool ROUND>
static __global__
__launch_bounds__(WARPGROUP) void hadamard_kernel(const uint32_t *X, // (heads, N, d / 2), pairs of bf16
                                                  uint16_t *X8,      // the same in pairs of bytes
                                                  float *scales,     // (heads, scale_blocks(N))
                                                  unsigned *largest, // one per scale: the bits of a float
                                                  int N, float factor, problem p) {
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, head = blockIdx.y;
    size_t at = (size_t)head * gridDim.x + blockIdx.x;
    unsigned *shared = largest + (p.scales == OF_BLOCK ? at : p.scales == OF_HEAD ? (size_t)head : 0);
    float most = ROUND ? __uint_as_float(*shared) : 0.0f;
    float scale = most == 0.0f ? 1.0f : fmaxf(most / (p.fp8 == E4M3 ? 448.0f : 57344.0f), 0x1p-126f);
    if (ROUND && threadIdx.x == 0) scales[at] = scale;
    int end = min(N, (int)(blockIdx.x + 1) * SCALE_ROWS);
    for (int row = blockIdx.x * SCALE_ROWS + warp; row < end; row += WARPGROUP / WARP) {
        size_t first = ((size_t)head * N + row) * (p.d / 2) + lane;
        float x[2][2] = {};
        for (int i = 0; i < 2; i++) {
            uint32_t pair = 64 * i + 2 * lane < p.d ? X[first + 32 * i] : 0;
            x[i][0] = __uint_as_float(pair << 16), x[i][1] = __uint_as_float(pair & 0xffff0000);
        }
        multiply_hadamard(x, p.d & -p.d);
        for (int i = 0; i < 2; i++) {
            float a = x[i][0] * factor, b = x[i][1] * factor;
            if constexpr (ROUND) {
                if (64 * i + 2 * lane < p.d)
                    X8[first + 32 * i] = __nv_cvt_float2_to_fp8x2(make_float2(a / scale, b / scale), __NV_SATFINITE,
                                                                  p.fp8 == E4M3 ? __NV_E4M3 : __NV_E5M2);
            } else {
                most = fmaxf(most, fmaxf(isfinite(a) ? fabsf(a) : 0.0f, isfinite(b) ? fabsf(b) : 0.0f));
            }
        }
    }
    if (!ROUND) atomicMax(shared, __float_as_uint(most)); // in this order as numbers are: none is below 0
}

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

// The workspace: Q and K in 8 bits, then the scales of both, then the largest size behind each scale.
static size_t numbers(const problem *p, int heads, int N) { return (size_t)p->batch * heads * N * p->d; }
static size_t scales(const problem *p, int heads, int N) { return (size_t)p->batch * heads * scale_blocks(N); }
static size_t workspace_bytes(const problem *p) {
    return numbers(p, p->heads, p->N_q) + numbers(p, kv_heads(p), p->N_kv) +
           2 * sizeof(float) * (scales(p, p->heads, p->N_q) + scales(p, kv_heads(p), p->N_kv));
}

static cudaError_t multiply_and_round(const problem *p, const void *X, uint8_t *X8, float *X_scales, unsigned *largest,
                                      int heads, int N, float factor, cudaStream_t stream) {
    dim3 blocks(scale_blocks(N), heads);
    auto kernels = {hadamard_kernel<false>, hadamard_kernel<true>};
    cudaError_t error = cudaSuccess;
    for (auto kernel : kernels)
        if (error == cudaSuccess)
            error = launch(kernel, blocks, WARPGROUP, 0, stream, (const uint32_t *)X, (uint16_t *)X8, X_scales, largest,
                           N, factor, *p);
    return error;
}

static cudaError_t forward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    int heads = p->batch * p->heads, kv = p->batch * kv_heads(p), group = p->heads / kv_heads(p);
    size_t of_Q = scales(p, p->heads, p->N_q), of_K = scales(p, kv_heads(p), p->N_kv);
    uint8_t *Q = (uint8_t *)workspace, *K = Q + numbers(p, p->heads, p->N_q);
    float *Q_scales = (float *)(K + numbers(p, kv_heads(p), p->N_kv)), *K_scales = Q_scales + of_Q;
    unsigned *largest = (unsigned *)(K_scales + of_K);
    cudaError_t before = cudaMemsetAsync(largest, 0, (of_Q + of_K) * sizeof *largest, stream);
    if (before == cudaSuccess)
        before = multiply_and_round(p, t->Q, Q, Q_scales, largest, heads, p->N_q, 1.0f / (p->d & -p->d), stream);
    if (before == cudaSuccess)
        before = multiply_and_round(p, t->K, K, K_scales, largest + of_Q, kv, p->N_kv, 1.0f, stream);
    if (before != cudaSuccess) return before;
    return dispatch8(p, [&]<int D, class T>() {
        constexpr int Br = ROWS<D>;
        tensor_maps maps;
        cudaError_t error = make_bytes_map<D>(&maps.Q, Q, heads, p->N_q, p->d, Br);
        if (error == cudaSuccess) error = make_bytes_map<D>(&maps.K, K, kv, p->N_kv, p->d, Bc);
        if (error == cudaSuccess) error = make_bytes_map<D>(&maps.V, t->V, kv, p->N_kv, p->d, Bc);
        if (error != cudaSuccess) return error;
        dim3 blocks(ceil_div(p->N_q, Br), heads);
        size_t bytes = 2 * (size_t)p->N_kv * p->d / group + 1; // K and V of a head, of which a group has one
        int section = p->causal ? heads_of_section(SECTION_BYTES, bytes, blocks.y, blocks.x) : 1;
        auto kernel = p->scales == OF_BLOCK ? forward_kernel<D, T, true> : forward_kernel<D, T, false>;
        return launch(kernel, blocks, THREADS<D>, BYTES<D>, stream, maps, Q_scales, K_scales, t->V_scales,
                      (__nv_bfloat16 *)t->O, t->L, group, *p, section);
    });
}

extern "C" const step step_16y_hadamard = {
    .name = "16y_hadamard",
    .idea = "Q and K multiplied by signs and a Hadamard matrix before they are rounded",
    .beside = "Q and K come in bf16",
    .forward = forward,
    .workspace_bytes = workspace_bytes,
    .dtypes = 1 << FP8,
    .d_multiple = 16,
    .grouped_heads = true,
    .hadamard = true,
    .compute_capability = 90,
    .refuses = needs_shared_memory<BYTES<64>, BYTES<128>>,
};
