/* The kernel of the backward pass of this chapter: rung 13f of chapter 13, with one change. It leaves dK and dV of these rows in fp32, since
 * other rows add to them: some on this device, some on others. dQ_sum collects the sums of all calls as it is. */
#ifndef BACKWARD_CUH
#define BACKWARD_CUH

#include "attention.h"

#include "../13_hopper_bwd/tiles.cuh"
#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "order.cuh"
#include "tensor.cuh"

constexpr int CONSUMERS = 2; // warpgroups, 64 keys each
constexpr int THREADS = (1 + CONSUMERS) * WARPGROUP;
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240; // per thread; all together start with 168 each
constexpr int Bc = 64 * CONSUMERS;                               // keys per block
template <int WIDTH> constexpr int Br = WIDTH == 64 ? 128 : 64;  // query rows per tile
constexpr int dQ_COLS = 64; // one consumer's part of dQ has 64 rows and so many columns
constexpr int PART = 64 * dQ_COLS;
constexpr int STAGES = 2; // tiles of Q and of dO in shared memory, and of dS

constexpr size_t SECTION_BYTES = 40 << 20; // Q, dO and dQ_sum of the heads of a section: what stays in the L2 cache

// Shared memory: K, V (Bc, WIDTH); Q, dO (STAGES, Br, WIDTH); dS (STAGES, Br, Bc); L2, D (STAGES, Br); barriers;
// and what may lie before the first multiple of 1024 bytes.
template <int WIDTH>
constexpr size_t BYTES = 2 * (2 * Bc * WIDTH + STAGES * Br<WIDTH> * (2 * WIDTH + Bc)) + 8 * (1 + 4 * STAGES) + 1024 +
                         4 * (2 * STAGES * Br<WIDTH>);
static_assert(BYTES<64> <= LEAST_SHARED_BYTES_9_0 && BYTES<128> <= LEAST_SHARED_BYTES_9_0, "fits on a Hopper card");

constexpr int dS_STORED = 1; // a named barrier

// Where a call leaves dK and dV of its keys.
struct key_gradients {
    float *dK, *dV; // (heads, rows, d)
    int rows;       // per head in memory
    int covered;    // keys before this one already have a part of these gradients, which is added to
};

// This lane's fragments of 64 keys, times `factor`, to a (.., d) matrix of `rows` keys, as store_fragments() of chapter 13.
template <int N>
__device__ __forceinline__ void add_fragments(float *matrix, const float (&C)[N][4], float factor, int my_row, int rows,
                                              int d, int covered) {
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = my_row + 8 * half, col = 8 * n + threadIdx.x % 4 * 2;
            if (row >= rows || col >= d) continue;
            float2 *to = (float2 *)(matrix + (size_t)row * d + col), before = {0.0f, 0.0f};
            if (row < covered) before = *to;
            *to = {before.x + C[n][2 * half] * factor, before.y + C[n][2 * half + 1] * factor};
        }
}

template <int WIDTH, class T>
static __global__ __launch_bounds__(THREADS, 1) void backward_kernel(const __grid_constant__ tensor_maps maps,
                                                                     const float *L2, const float *D, // (heads, padded)
                                                                     float *dQ_sum, // (heads, padded, WIDTH) in parts
                                                                     key_gradients of, int padded, problem p,
                                                                     int section) {
    constexpr int Br = ::Br<WIDTH>, TILE = Br * WIDTH;
    extern __shared__ uint4 smem[];
    T *K_smem = first_multiple_of_1024<T>(smem), *V_smem = K_smem + Bc * WIDTH; // (Bc, WIDTH)
    T *Q_smem = V_smem + Bc * WIDTH, *dO_smem = Q_smem + STAGES * TILE;         // (STAGES, Br, WIDTH)
    T *dS_smem = dO_smem + STAGES * TILE;                                       // (STAGES, Br, Bc)
    float *L2_smem = (float *)(dS_smem + STAGES * Br * Bc);                     // (STAGES, Br)
    float *D_smem = L2_smem + STAGES * Br;                                      // (STAGES, Br)
    uint64_t *KV_full = (uint64_t *)(D_smem + STAGES * Br), *Q_full = KV_full + 1, *dO_full = Q_full + STAGES;
    uint64_t *Q_empty = dO_full + STAGES, *dO_empty = Q_empty + STAGES; // one per stage
    int warp = threadIdx.x / WARP % 4, lane = threadIdx.x % WARP;
    int consumer = threadIdx.x / WARPGROUP - 1; // -1: the producer
    // Blocks start in the order of their index: section by section, in each the first keys of all its heads first, to which the
    // most queries attend.
    block_place own = place_of_block(blockIdx.x, blockIdx.y, gridDim.x, gridDim.y, section);
    int head = own.head, key_tile = own.tile;
    int key0 = key_tile * Bc, row_tiles = ceil_div(p.N_q, Br), first_tile = first_attending_query(p, key0) / Br;
    int tiles = max(0, row_tiles - first_tile); // with queries that attend to the block's first key

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
                if (round > 0) mbarrier_wait(Q_empty + stage, (round - 1) % 2);
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
    float S_reg[Br / 8][4], dP_reg[Br / 8][4], dQ_reg[dQ_COLS / 8][4]; // S^T and dP^T: 64 keys, Br queries
    float dK_reg[WIDTH / 8][4] = {}, dV_reg[WIDTH / 8][4] = {};
    uint32_t P_reg[Br / 16][4], dS_reg[Br / 16][4]; // P^T and dS^T as A of dV and dK
    // For descriptors: the shuffle tells nvcc that the number is the same in a warp, so they stay in uniform registers.
    int uniform_consumer = __shfl_sync(FULL_WARP, consumer, 0);
    const T *my_K = K_smem + uniform_consumer * 64 * 64, *my_V = V_smem + uniform_consumer * 64 * 64;
    // This consumer's part of dQ: at d 64 the rows from 64 consumer on, at d 128 the columns.
    const T *K_part = K_smem + (WIDTH == 64 ? 0 : uniform_consumer * Bc * 64);
    int dS_part = WIDTH == 64 ? uniform_consumer * 64 * 64 : 0;
    auto release = [&](uint64_t *empty) {
        __syncwarp(); // redundant: wgmma_wait() is the whole warp's; L2, D are read before dS_STORED
        if (lane == 0) mbarrier_arrive(empty);
    };
    auto start_S = [&](int i) {
        mbarrier_wait(Q_full + i % STAGES, i / STAGES % 2);
        multiply_rows<WIDTH, Bc, Br>(S_reg, my_K, Q_smem + i % STAGES * TILE);
    };
    auto visit = [&](int i, bool masked) {
        int stage = i % STAGES, row0 = (first_tile + i) * Br;
        const T *Q_tile = Q_smem + stage * TILE, *dO_tile = dO_smem + stage * TILE;
        T *dS_tile = dS_smem + stage * Br * Bc;
        const float *my_L2 = L2_smem + stage * Br + lane % 4 * 2, *my_D = D_smem + stage * Br + lane % 4 * 2;
        mbarrier_wait(dO_full + stage, i / STAGES % 2);
        wgmma_wait<0>(); // S is there
        multiply_rows<WIDTH, Bc, Br>(dP_reg, my_V, dO_tile);
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
        multiply_tiles<Br, Bc>(dQ_reg, dS_tile + dS_part, K_part);
        multiply_registers<WIDTH, Br>(dK_reg, dS_reg, Q_tile);
        wgmma_wait<2>(); // dV is there
        release(dO_empty + stage);
        wgmma_wait<1>(); // dQ is there
        float *to =
            dQ_sum + (((size_t)head * padded + row0) * WIDTH / PART + consumer) * PART + threadIdx.x % WARPGROUP * 4;
#pragma unroll
        for (int n = 0; n < dQ_COLS / 8; n++)
            reduce_add4(to + n * 4 * WARPGROUP, make_float4(dQ_reg[n][0], dQ_reg[n][1], dQ_reg[n][2], dQ_reg[n][3]));
        start_S(min(i + 1, tiles - 1)); // after the last tile once more, so that all rounds are alike
        wgmma_wait<1>();                // dK is there
        release(Q_empty + stage);
    };
    if (tiles > 0) {
        mbarrier_wait(KV_full, 0);
        start_S(0);
        int i = 0; // a tile's first row attends to the fewest keys
        for (; i < tiles && key0 + Bc > attended_keys(p, (first_tile + i) * Br); i++) visit(i, true);
        for (; i < tiles; i++) visit(i, false);
        wgmma_wait<0>(); // redundant: nothing touches the S that was started once more
    }
    size_t first = (size_t)head * of.rows * p.d;
    add_fragments(of.dV + first, dV_reg, 1.0f, key0 + my_key, p.N_kv, p.d, of.covered);
    add_fragments(of.dK + first, dK_reg, p.scale, key0 + my_key, p.N_kv, p.d, of.covered);
}

// ---- on the host

/* The rows of a chunk, all heads of it, one after the other. */
struct chunk {
    int rows;
    void *Q, *O, *dO, *dQ; // (heads, rows, d)
    float *L;              // (heads, rows)
    void *between;         // intermediate_bytes() for these rows
};
inline problem with_rows(const problem *p, int rows) {
    problem of = *p;
    of.N_q = rows;
    return of;
}

/* D and L2 of a chunk, and dQ_sum = 0: before the first of its calls. */
inline cudaError_t begin_rows(const problem *whole, const chunk &c, cudaStream_t stream) {
    problem p = with_rows(whole, c.rows);
    if (c.rows == 0) return cudaSuccess;
    return dispatch(&p, [&]<int WIDTH, class T>() {
        intermediates between(c.between, &p);
        dim3 threads(WIDTH / 8, 1024 / WIDTH);
        return launch(preprocess<T, WIDTH>, dim3(padded_rows(&p) / threads.y, whole->batch * whole->heads), threads, 0,
                      stream, (const T *)c.O, (const T *)c.dO, c.L, between.L2, between.D, between.dQ_sum,
                      padded_rows(&p), p);
    });
}

/* dQ from its sums: after the last call. */
inline cudaError_t end_rows(const problem *whole, const chunk &c, cudaStream_t stream) {
    problem p = with_rows(whole, c.rows);
    if (c.rows == 0) return cudaSuccess;
    return dispatch(&p, [&]<int WIDTH, class T>() {
        intermediates between(c.between, &p);
        return launch(postprocess<T, WIDTH, dQ_COLS>, dim3(ceil_div(p.N_q, 16), whole->batch * whole->heads), WIDTH, 0,
                      stream, (const float *)between.dQ_sum, (T *)c.dQ, padded_rows(&p), p);
    });
}

/* The five products of a chunk's rows with the first `keys` keys of K and V (heads, of.rows, d). */
inline cudaError_t products(const problem *whole, const chunk &c, const void *K, const void *V, int keys, bool causal,
                            const key_gradients &of, cudaStream_t stream) {
    problem p = with_rows(whole, c.rows);
    p.N_kv = keys, p.causal = causal;
    return dispatch(&p, [&]<int WIDTH, class T>() {
        int heads = whole->batch * whole->heads;
        intermediates between(c.between, &p);
        tensor_maps maps;
        cudaError_t error = make_tensor_map(&maps.Q, p.dtype, c.Q, heads, c.rows, p.d, Br<WIDTH>);
        if (error == cudaSuccess) error = make_tensor_map(&maps.dO, p.dtype, c.dO, heads, c.rows, p.d, Br<WIDTH>);
        if (error == cudaSuccess) error = make_tensor_map(&maps.K, p.dtype, K, heads, of.rows, p.d, Bc);
        if (error == cudaSuccess) error = make_tensor_map(&maps.V, p.dtype, V, heads, of.rows, p.d, Bc);
        if (error != cudaSuccess) return error;
        dim3 blocks(ceil_div(keys, Bc), heads);
        size_t bytes = 8 * (size_t)p.N_q * p.d; // Q, dO and dQ_sum of a head
        int section = p.causal ? heads_of_section(SECTION_BYTES, bytes, blocks.y, blocks.x) : 1;
        return launch(backward_kernel<WIDTH, T>, blocks, THREADS, BYTES<WIDTH>, stream, maps, between.L2, between.D,
                      between.dQ_sum, of, padded_rows(&p), p, section);
    });
}

/* ---- sums of dK and dV: two matrices, (heads, rows, d) each, one behind the other */

/* to = from, or to += from, of the first `covered` rows of each head. d is a multiple of 8. */
static __global__ void add_gradients(float4 *to, const float4 *from, bool add, int covered, int rows, int d,
                                     size_t count) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; // four floats each
    if (i >= count || (int)(i / (d / 4) % rows) >= covered) return;
    float4 x = from[i], before = add ? to[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    to[i] = make_float4(before.x + x.x, before.y + x.y, before.z + x.z, before.w + x.w);
}

template <class T> static __global__ void round_gradients(uint2 *dK, uint2 *dV, const float4 *sum, size_t count) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; // of dK, and of dV
    if (i >= count) return;
    float4 k = sum[i], v = sum[count + i];
    dK[i] = make_uint2(pack<T>(k.x, k.y), pack<T>(k.z, k.w));
    dV[i] = make_uint2(pack<T>(v.x, v.y), pack<T>(v.z, v.w));
}

constexpr int SUM_THREADS = 256;

inline cudaError_t add_sums(const problem *p, float *to, const float *from, bool add, int covered, int rows,
                            cudaStream_t stream) {
    size_t count = (size_t)rows * p->d / 4 * p->batch * p->heads * 2;
    if (covered == 0) return cudaSuccess;
    return launch(add_gradients, dim3((unsigned)((count + SUM_THREADS - 1) / SUM_THREADS)), SUM_THREADS, 0, stream,
                  (float4 *)to, (const float4 *)from, add, covered, rows, p->d, count);
}

inline cudaError_t round_sums(const problem *p, void *dK, void *dV, const float *sum, int rows, cudaStream_t stream) {
    size_t count = (size_t)rows * p->d / 4 * p->batch * p->heads;
    if (rows == 0) return cudaSuccess;
    return dispatch(p, [&]<int WIDTH, class T>() {
        return launch(round_gradients<T>, dim3((unsigned)((count + SUM_THREADS - 1) / SUM_THREADS)), SUM_THREADS, 0,
                      stream, (uint2 *)dK, (uint2 *)dV, (const float4 *)sum, count);
    });
}

#endif
