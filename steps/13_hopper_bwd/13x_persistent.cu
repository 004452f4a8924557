// 13x_persistent: 13f_order with blocks that take one tile of keys after the other. Beside the chain: faster at d 64 and for short
// sequences, slower at d 128 for long ones, and without a fixed order of dQ.
//
// Idea      There are as many blocks as multiprocessors. A block takes tiles of keys from a counter until none is left. Its producer
//           copies K and V of the next tile while the consumers finish this one. S of the next tile runs while dK and dV are stored:
//           the consumers write dK and dV over K and V, which no product reads any more. A warp of the producer's warpgroup has the
//           TMA store both.
// Costs     O(N) memory: per query row two floats and WIDTH floats of dQ. S and P are computed again from Q, K and L.
// Limiter   README.md beside this file has the counters.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "order.cuh"
#include "tensor.cuh"
#include "tiles.cuh"

constexpr int CONSUMERS = 2; // warpgroups, 64 keys each
constexpr int THREADS = (1 + CONSUMERS) * WARPGROUP;
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240; // per thread; all together start with 168 each
constexpr int Bc = 64 * CONSUMERS;                               // keys per block
template <int WIDTH> constexpr int Br = WIDTH == 64 ? 128 : 64;  // query rows per tile
constexpr int dQ_COLS = 64; // one consumer's part of dQ has 64 rows and so many columns
constexpr int PART = 64 * dQ_COLS;
constexpr int STAGES = 2; // tiles of Q and of dO in shared memory, and of dS

constexpr size_t SECTION_BYTES = 40 << 20; // Q, dO and dQ_sum of the heads of a section: what stays in the L2 cache

// Shared memory: K, V (2, Bc, WIDTH); Q, dO (STAGES, Br, WIDTH); dS (STAGES, Br, Bc); L2, D (STAGES, Br); barriers and two ints; and
// what may lie before the first multiple of 1024 bytes.
template <int WIDTH>
constexpr size_t BYTES = 2 * (4 * Bc * WIDTH + STAGES * Br<WIDTH> * (2 * WIDTH + Bc)) + 8 * (5 + 4 * STAGES) + 1024 +
                         4 * (2 * STAGES * Br<WIDTH>);
static_assert(BYTES<64> <= LEAST_SHARED_BYTES_9_0 && BYTES<128> <= LEAST_SHARED_BYTES_9_0, "fits on a Hopper card");

enum { dS_STORED = 1, K_READ, dKV_STORED }; // named barriers

// This warpgroup's fragments of 64 rows, times `factor`, to a tile of ROWS rows, as the TMA will read it. 16 columns at a time: lanes 0
// to 15 name the rows of the first 8 columns, lanes 16 to 31 the rows of the second 8.
template <int ROWS, class T, int N>
__device__ __forceinline__ void stage_fragments(T *tile, const float (&C)[N][4], float factor) {
    int warp = threadIdx.x / WARP % 4, lane = threadIdx.x % WARP, row = warp * 16 + lane % 16;
#pragma unroll
    for (int n = 0; n < N; n += 2) {
        uint32_t pieces[4];
        for (int i = 0; i < 4; i++) {
            const float *pair = C[n + i / 2] + i % 2 * 2;
            pieces[i] = pack<T>(pair[0] * factor, pair[1] * factor);
        }
        int column = n * 8 % 64 + lane / 16 * 8;
        stmatrix_x4(tile + n / 8 * ROWS * 64 + row * 64 + (column ^ row % 8 * 8), pieces); // the 128-byte swizzle
    }
}

template <int WIDTH, class T>
static __global__ __launch_bounds__(THREADS, 1) void backward_kernel(const __grid_constant__ tensor_maps maps,
                                                                     const __grid_constant__ CUtensorMap dK_map,
                                                                     const __grid_constant__ CUtensorMap dV_map,
                                                                     const float *L2, const float *D, // (heads, padded)
                                                                     float *dQ_sum, // (heads, padded, WIDTH) in parts
                                                                     int padded, problem p, int key_tiles, int heads,
                                                                     int all_tiles, int section, unsigned *taken) {
    constexpr int Br = ::Br<WIDTH>, TILE = Br * WIDTH;
    extern __shared__ uint4 smem[];
    T *K_smem = first_multiple_of_1024<T>(smem), *V_smem = K_smem + 2 * Bc * WIDTH; // (2, Bc, WIDTH)
    T *Q_smem = V_smem + 2 * Bc * WIDTH, *dO_smem = Q_smem + STAGES * TILE;         // (STAGES, Br, WIDTH)
    T *dS_smem = dO_smem + STAGES * TILE;                                           // (STAGES, Br, Bc)
    float *L2_smem = (float *)(dS_smem + STAGES * Br * Bc);                         // (STAGES, Br)
    float *D_smem = L2_smem + STAGES * Br;                                          // (STAGES, Br)
    uint64_t *KV_full = (uint64_t *)(D_smem + STAGES * Br), *Q_full = KV_full + 2, *dO_full = Q_full + STAGES;
    uint64_t *KV_empty = dO_full + STAGES, *Q_empty = KV_empty + 2, *dO_empty = Q_empty + STAGES; // one per buffer
    int *at_smem = (int *)(dO_empty + STAGES); // whose keys are in the two buffers of K and V
    int warp = threadIdx.x / WARP % 4, lane = threadIdx.x % WARP;
    int consumer = threadIdx.x / WARPGROUP - 1; // -1: the producer
    // The order of the tiles of keys: section by section, in each the first keys of all its heads first, to which the most queries
    // attend. The last query attends to all keys: each tile of keys has a tile of queries.
    int row_tiles = ceil_div(p.N_q, Br);
    auto place_at = [&](int at) { return place_of_block(at % key_tiles, at / key_tiles, key_tiles, heads, section); };

    if (threadIdx.x == 0) {
        for (uint64_t *full = KV_full; full < KV_empty; full++) mbarrier_init(full, 1);
        for (int i = 0; i < 2; i++) mbarrier_init(KV_empty + i, 1);
        for (int i = 0; i < 2 * STAGES; i++) mbarrier_init(Q_empty + i, 4 * CONSUMERS); // warps arrive
        fence_mbarrier_init();
    }
    __syncthreads(); // the barriers are ready
    if (consumer < 0) {
        registers_decrease<PRODUCER_REGISTERS>();
        if (warp == 1) { // has the TMA store dK and dV, which lie in the place of K and V, and frees the place
            for (int k = 0;; k++) {
                mbarrier_wait(KV_full + k % 2, k / 2 % 2);
                int at = at_smem[k % 2];
                if (at >= all_tiles) return;
                auto [head, key_tile] = place_at(at);
                named_barrier_sync(dKV_STORED, CONSUMERS * WARPGROUP + WARP);
                if (lane == 0) {
                    for (int column = 0; column < WIDTH; column += 64) {
                        tma_store(&dV_map, column, key_tile * Bc, head, V_smem + (k % 2 * Bc * WIDTH + Bc * column));
                        tma_store(&dK_map, column, key_tile * Bc, head, K_smem + (k % 2 * Bc * WIDTH + Bc * column));
                    }
                    tma_commit();
                    tma_wait_read<0>(); // the TMA has read both
                    mbarrier_arrive(KV_empty + k % 2);
                }
                __syncwarp(); // redundant: all lanes meet at the barrier of the next keys
            }
        }
        if (threadIdx.x != 0) return;
        // The block's tiles of keys, and their tiles of queries, so far.
        for (int k = 0, i = 0, at = atomicAdd(taken, 1);; k++) {
            uint64_t *full = KV_full + k % 2;
            if (k > 1) mbarrier_wait(KV_empty + k % 2, (k / 2 - 1) % 2);
            at_smem[k % 2] = at; // the consumers read it when K and V are there
            if (at >= all_tiles) return mbarrier_arrive(full);
            auto [head, key_tile] = place_at(at);
            mbarrier_arrive_expect(full, 2 * Bc * WIDTH * sizeof(T));
            load_tile<WIDTH>(K_smem + k % 2 * Bc * WIDTH, maps.K, Bc, key_tile * Bc, head, full);
            load_tile<WIDTH>(V_smem + k % 2 * Bc * WIDTH, maps.V, Bc, key_tile * Bc, head, full);
            for (int tile = first_attending_query(p, key_tile * Bc) / Br; tile < row_tiles; tile++, i++) {
                int stage = i % STAGES, round = i / STAGES, row0 = tile * Br;
                size_t row = (size_t)head * padded + row0;
                if (round > 0) mbarrier_wait(dO_empty + stage, (round - 1) % 2);
                mbarrier_arrive_expect(dO_full + stage, TILE * sizeof(T) + Br * sizeof(float));
                load_tile<WIDTH>(dO_smem + stage * TILE, maps.dO, Br, row0, head, dO_full + stage);
                bulk_load(D_smem + stage * Br, D + row, Br * sizeof(float), dO_full + stage);
                if (round > 0) mbarrier_wait(Q_empty + stage, (round - 1) % 2);
                mbarrier_arrive_expect(Q_full + stage, TILE * sizeof(T) + Br * sizeof(float));
                load_tile<WIDTH>(Q_smem + stage * TILE, maps.Q, Br, row0, head, Q_full + stage);
                bulk_load(L2_smem + stage * Br, L2 + row, Br * sizeof(float), Q_full + stage);
            }
            at = atomicAdd(taken, 1);
        }
    }
    registers_increase<CONSUMER_REGISTERS>();
    int my_key = consumer * 64 + warp * 16 + lane / 4; // of the block's, and 8 keys below
    float factor = p.scale * LOG2_E;
    float S_reg[Br / 8][4], dP_reg[Br / 8][4], dQ_reg[dQ_COLS / 8][4]; // S^T and dP^T: 64 keys, Br queries
    float dK_reg[WIDTH / 8][4] = {}, dV_reg[WIDTH / 8][4] = {};
    uint32_t P_reg[Br / 16][4], dS_reg[Br / 16][4]; // P^T and dS^T as A of dV and dK
    // For descriptors: the shuffle tells nvcc that the number is the same in a warp, so they stay in uniform registers.
    int uniform_consumer = __shfl_sync(FULL_WARP, consumer, 0);
    int i = 0, item = 0, at, head, key0; // tiles of queries and of keys so far; this tile of keys
    auto next_keys = [&]() {
        mbarrier_wait(KV_full + item % 2, item / 2 % 2);
        at = __shfl_sync(FULL_WARP, lane == 0 ? at_smem[item % 2] : 0, 0); // known to be uniform
    };
    int dS_part = WIDTH == 64 ? uniform_consumer * 64 * 64 : 0;
    auto release = [&](uint64_t *empty) {
        __syncwarp(); // redundant: wgmma_wait() is the whole warp's; L2, D are read before dS_STORED
        if (lane == 0) mbarrier_arrive(empty);
    };
    auto start_S = [&](int keys, int i) {
        mbarrier_wait(Q_full + i % STAGES, i / STAGES % 2);
        multiply_rows<WIDTH, Bc, Br>(S_reg, K_smem + (keys % 2 * Bc * WIDTH + uniform_consumer * 64 * 64),
                                     Q_smem + i % STAGES * TILE);
    };
    auto visit = [&](int tile, bool masked) {
        // This consumer's part of dQ: at d 64 the rows from 64 consumer on, at d 128 the columns.
        const T *K_part = K_smem + (item % 2 * Bc * WIDTH + (WIDTH == 64 ? 0 : uniform_consumer * Bc * 64));
        const T *my_V = V_smem + (item % 2 * Bc * WIDTH + uniform_consumer * 64 * 64);
        int stage = i % STAGES, row0 = tile * Br;
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
        // S of the next queries; behind the last ones, of the next keys; behind all of them once more, so that all rounds are alike.
        int keys = item, next = i + 1;
        if (tile == row_tiles - 1) {
            item++;
            next_keys();
            at < all_tiles ? keys++ : next--;
        }
        start_S(keys, next);
        wgmma_wait<1>(); // dK is there
        release(Q_empty + stage);
        i++;
    };
    next_keys();
    if (at >= all_tiles) return; // the other blocks have taken all
    start_S(0, 0);
    while (at < all_tiles) {
        block_place own = place_at(at);
        head = own.head, key0 = own.tile * Bc;
        int tile = first_attending_query(p, key0) / Br; // a tile's first row attends to the fewest keys
        for (; tile < row_tiles && key0 + Bc > attended_keys(p, tile * Br); tile++) visit(tile, true);
        for (; tile < row_tiles; tile++) visit(tile, false);
        if (at >= all_tiles) wgmma_wait<0>(); // the S that was started once more reads K
        named_barrier_sync(K_READ, CONSUMERS * WARPGROUP);
        stage_fragments<Bc>(V_smem + ((item - 1) % 2 * Bc * WIDTH + uniform_consumer * 64 * 64), dV_reg, 1.0f);
        stage_fragments<Bc>(K_smem + ((item - 1) % 2 * Bc * WIDTH + uniform_consumer * 64 * 64), dK_reg, p.scale);
        fence_proxy_async();
        named_barrier_arrive(dKV_STORED, CONSUMERS * WARPGROUP + WARP);
        for (auto &x : dV_reg) x[0] = x[1] = x[2] = x[3] = 0.0f;
        for (auto &x : dK_reg) x[0] = x[1] = x[2] = x[3] = 0.0f;
    }
    wgmma_wait<0>(); // redundant: nothing touches the S that was started once more
}

// ---- on the host

static size_t workspace_bytes(const problem *p) { return intermediate_bytes(p) + sizeof(unsigned); } // a counter

static cudaError_t backward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    return dispatch(p, [&]<int WIDTH, class T>() {
        int heads = p->batch * p->heads, key_tiles = ceil_div(p->N_kv, Bc), all_tiles = key_tiles * heads;
        int device = 0, multiprocessors = 0;
        unsigned *taken = (unsigned *)((char *)workspace + intermediate_bytes(p));
        CUtensorMap dK, dV;
        cudaError_t error = make_tensor_map(&dK, p->dtype, t->dK, heads, p->N_kv, p->d, Bc);
        if (error == cudaSuccess) error = make_tensor_map(&dV, p->dtype, t->dV, heads, p->N_kv, p->d, Bc);
        if (error == cudaSuccess) error = cudaGetDevice(&device);
        if (error == cudaSuccess)
            error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
        if (error == cudaSuccess) error = cudaMemsetAsync(taken, 0, sizeof *taken, stream);
        if (error != cudaSuccess) return error;
        return around<T, WIDTH, dQ_COLS>(p, t, workspace, stream, Br<WIDTH>, Bc, [&](const tensor_maps &maps, auto &x) {
            size_t bytes = 8 * (size_t)p->N_q * p->d; // Q, dO and dQ_sum of a head
            int section = p->causal ? heads_of_section(SECTION_BYTES, bytes, heads, key_tiles) : 1;
            int blocks = all_tiles < multiprocessors ? all_tiles : multiprocessors;
            return launch(backward_kernel<WIDTH, T>, blocks, THREADS, BYTES<WIDTH>, stream, maps, dK, dV, x.L2, x.D,
                          x.dQ_sum, padded_rows(p), *p, key_tiles, heads, all_tiles, section, taken);
        });
    });
}

static const char *refuses(const problem *p) {
    return shared_memory_fits(p->d <= 64 ? BYTES<64> : BYTES<128>) ? nullptr
                                                                   : "its tiles need more shared memory per block";
}

extern "C" const step step_13x_persistent = {
    .name = "13x_persistent",
    .idea = "13 with persistent blocks: tiles of keys from a counter",
    .beside = "faster at d 64 and for short sequences",
    .backward = backward,
    .workspace_bytes = workspace_bytes,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 90,
    .refuses = refuses,
};
