// 11d_vector_reductions: dQ added up in the order of fragments.
//
// Idea      nobody but the postprocess kernel reads dQ_sum, so its order is free: each lane adds its four numbers of a fragment
//           by one vector reduction of 16 bytes, 512 contiguous bytes per warp, and postprocess puts them back in rows.
// Costs     O(N) memory: per query row two floats and D floats of dQ. S and P are computed again from Q, K and L.
// Limiter   not known: the largest waits are for the instruction before, a queue and global memory (d 64).
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <math.h>

#include "launch.h"
#include "mask.cuh"
#include "ptx.cuh"
#include "tensor.cuh"

constexpr int ROW_PAD = 128; // dQ_sum, L2 and D have rows up to a multiple of this

// D >= d: width of the tiles. Br query rows and Bc keys in a tile. The warps of a block divide each product into rows of
// warps: S_WARPS of them for S and dP (query rows), K_WARPS for dV and dK (keys), Q_WARPS for dQ (query rows).
template <int D_, int Br_, int Bc_, int WARPS_, int S_WARPS, int K_WARPS, int Q_WARPS> struct tiling {
    static constexpr int D = D_, Br = Br_, Bc = Bc_, WARPS = WARPS_, THREADS = WARPS * WARP;
    static constexpr int S_ROWS = Br / S_WARPS, S_KEYS = Bc / (WARPS / S_WARPS); // of one warp in S and dP
    static constexpr int K_KEYS = Bc / K_WARPS, K_COLS = D / (WARPS / K_WARPS);  // of one warp in dV and dK
    static constexpr int Q_ROWS = Br / Q_WARPS, Q_COLS = D / (WARPS / Q_WARPS);  // of one warp in dQ
    // K, V (Bc, D); Q, dO (Br, D); P, dS (Br, Bc); L2, D (Br).
    static constexpr size_t BYTES = 2 * (2 * Bc * D + 2 * Br * D + 2 * Br * Bc) + 4 * 2 * Br;
    static_assert(WARPS % S_WARPS == 0 && WARPS % K_WARPS == 0 && WARPS % Q_WARPS == 0, "rows of warps are whole");
    static_assert(S_ROWS % 16 == 0 && K_KEYS % 16 == 0 && Q_ROWS % 16 == 0, "a fragment has 16 rows");
    static_assert(S_KEYS % 16 == 0 && K_COLS % 16 == 0 && Q_COLS % 16 == 0, "one piece fills two fragments of B");
    static_assert(ROW_PAD % Br == 0 && Br <= THREADS, "one thread loads L2 and D of one query row");
};

// D = rowsum(dO o O) and L2 = L log2(e), +inf for a row that attends to no key: its P is 2^(S - inf) = 0. D_MAX / 8 threads
// per row, padded rows too; zeroes dQ_sum.
template <class T, int D_MAX>
static __global__ void preprocess(const T *O, const T *dO, // (heads, N_q, d)
                                  const float *L,          // (heads, N_q)
                                  float *L2, float *D,     // (heads, padded)
                                  float *dQ_sum,           // (heads, padded, D_MAX)
                                  int padded, problem p) {
    int row = blockIdx.x * blockDim.y + threadIdx.y, col = threadIdx.x * 8;
    size_t head = blockIdx.y, in = head * p.N_q + row, out = head * padded + row;
    float sum = 0.0f;
    if (row < p.N_q && col < p.d) {
        uint4 x = *(const uint4 *)(O + in * p.d + col), y = *(const uint4 *)(dO + in * p.d + col);
        const T *a = (const T *)&x, *b = (const T *)&y;
#pragma unroll
        for (int i = 0; i < 8; i++) sum += (float)a[i] * (float)b[i];
    }
    float4 *zero = (float4 *)(dQ_sum + out * D_MAX);
    zero[threadIdx.x] = zero[threadIdx.x + D_MAX / 8] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int bit = D_MAX / 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, bit);
    if (threadIdx.x != 0) return;
    D[out] = sum;
    L2[out] = row < p.N_q && L[in] != -INFINITY ? L[in] * LOG2_E : INFINITY;
}

// dQ = scale dQ_sum, from the order of fragments to rows. One thread: rows g and g + 8 of a fragment, 8 columns.
template <class T, int D> static __global__ void postprocess(const float *dQ_sum, T *dQ, int padded, problem p) {
    int pair = blockIdx.x * blockDim.y + threadIdx.y, col = threadIdx.x * 8;
    int row = pair / 8 * 16 + pair % 8;
    size_t head = blockIdx.y;
    if (row >= p.N_q || col >= p.d) return;
    const float4 *from =
        (const float4 *)(dQ_sum + (head * padded + row / 16 * 16) * D + threadIdx.x * 128) + pair % 8 * 4;
    uint32_t upper[4], lower[4];
#pragma unroll
    for (int t = 0; t < 4; t++) {
        float4 c = from[t];
        upper[t] = pack<T>(c.x * p.scale, c.y * p.scale);
        lower[t] = pack<T>(c.z * p.scale, c.w * p.scale);
    }
    T *to = dQ + (head * p.N_q + row) * p.d + col;
    *(uint4 *)to = make_uint4(upper[0], upper[1], upper[2], upper[3]);
    if (row + 8 < p.N_q) *(uint4 *)(to + (size_t)8 * p.d) = make_uint4(lower[0], lower[1], lower[2], lower[3]);
}

// The place of element (row, col) in a tile of COLS columns. The XOR with the row number permutes the chunks of 8 elements
// (16 bytes) of a row, so that one chunk of 8 neighbouring rows lies in 32 different banks. From the place of a column that
// is a multiple of n, n a power of 2, an XOR with less than n moves as many columns to the right.
template <int COLS> __device__ inline int place(int row, int col) {
    static_assert(COLS % 64 == 0, "a row is 8 chunks or a multiple");
    return row * COLS + (col ^ row % 8 * 8);
}

// Copy rows [first, first + ROWS) of a (rows, d) matrix to a swizzled tile (ROWS, D); past the ends, zeros. No barrier.
template <int ROWS, int D, int THREADS, class T>
__device__ __forceinline__ void copy_rows(T *tile, const T *matrix, int first, int rows, int d) {
    constexpr int STEP = THREADS / (D / 8);
    static_assert(ROWS % STEP == 0 && STEP % 8 == 0,
                  "the chunks of one thread lie in one column and are swizzled alike");
    int row = threadIdx.x / (D / 8), col = threadIdx.x % (D / 8) * 8;
    const T *from = matrix + (size_t)(first + row) * d + col;
    T *to = tile + place<D>(row, col);
#pragma unroll
    for (int r = 0; r < ROWS; r += STEP) {
        bool inside = first + row + r < rows && col < d;
        *(uint4 *)(to + r * D) = inside ? *(const uint4 *)(from + (size_t)r * d) : make_uint4(0, 0, 0, 0);
    }
}

// Where this lane points for ldmatrix in a 16 x 16 piece at (row, col) of a tile. ACROSS: quadrants 0 and 1 are neighbours in
// a row, else in a column.
template <int COLS, bool ACROSS> __device__ __forceinline__ int lane_place(int row, int col) {
    int lane = threadIdx.x % WARP, low = lane % 8, first = lane / 8 % 2 * 8, second = lane / 16 * 8;
    return ACROSS ? place<COLS>(row + low + second, col + first) : place<COLS>(row + low + first, col + second);
}

// C (16 MT x 8 NT elements of one warp) += A B over K columns of A. A is stored (m, k), or with A_T (k, m), in rows of A_COLS
// elements; B is stored (n, k), or with B_T (k, n). The warp's part begins at row m0 of A and column n0 of B. The four
// registers of a piece are one A, or two B, in the order in which mma takes them (tensor.cuh).
template <bool A_T, int A_COLS, bool B_T, int B_COLS, int K, int MT, int NT, class T>
__device__ __forceinline__ void multiply(float (&C)[MT][NT][4], const T *A, int m0, const T *B, int n0) {
    int A_at = A_T ? lane_place<A_COLS, true>(0, m0) : lane_place<A_COLS, false>(m0, 0);
    int B_at = B_T ? lane_place<B_COLS, false>(0, n0) : lane_place<B_COLS, true>(n0, 0);
#pragma unroll
    for (int k = 0; k < K; k += 16) {
        uint32_t A_reg[MT][4];
#pragma unroll
        for (int i = 0; i < MT; i++) {
            if constexpr (A_T)
                ldmatrix_x4_trans(A_reg[i], A + (A_at ^ 16 * i) + k * A_COLS);
            else
                ldmatrix_x4(A_reg[i], A + (A_at ^ k) + 16 * i * A_COLS);
        }
#pragma unroll
        for (int j = 0; j < NT; j += 2) {
            uint32_t B_reg[4];
            if constexpr (B_T)
                ldmatrix_x4_trans(B_reg, B + (B_at ^ 8 * j) + k * B_COLS);
            else
                ldmatrix_x4(B_reg, B + (B_at ^ k) + 8 * j * B_COLS);
#pragma unroll
            for (int i = 0; i < MT; i++) {
                mma_m16n8k16<T>(C[i][j], A_reg[i], B_reg[0], B_reg[1]);
                mma_m16n8k16<T>(C[i][j + 1], A_reg[i], B_reg[2], B_reg[3]);
            }
        }
    }
}

// dQ_sum += the fragments of one warp, whose first row and column these are.
template <int D, int MT, int NT>
__device__ __forceinline__ void add_dQ(float *dQ_sum, const float (&dQ_reg)[MT][NT][4], int row, int col) {
    float *to = dQ_sum + (size_t)row * D + col * 16 + threadIdx.x % WARP * 4;
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < NT; j++) {
            const float(&x)[4] = dQ_reg[i][j];
            reduce_add4(to + i * 16 * D + j * 128, make_float4(x[0], x[1], x[2], x[3]));
        }
}

// The fragments of one warp, times `factor`, to rows of a (rows, d) matrix.
template <class T, int MT, int NT>
__device__ __forceinline__ void store_fragments(T *matrix, const float (&C)[MT][NT][4], float factor, int row, int col,
                                                int rows, int d) {
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int j = 0; j < NT; j++) {
                int r = row + 16 * i + 8 * half + g, c = col + 8 * j + 2 * t;
                const float *x = &C[i][j][2 * half];
                if (r < rows && c < d)
                    *(uint32_t *)(matrix + (size_t)r * d + c) = pack<T>(x[0] * factor, x[1] * factor);
            }
}

// dK and dV of one tile of keys; adds to dQ_sum.
template <class T, class C>
static __global__ __launch_bounds__(C::THREADS) void backward_keys(
    const T *Q, const T *K, const T *V, const T *dO, // (heads, N_q, d), (heads, N_kv, d) twice, (heads, N_q, d)
    const float *L2, const float *D,                 // (heads, padded)
    float *dQ_sum,                                   // (heads, padded, C::D) in the order of fragments
    T *dK, T *dV,                                    // (heads, N_kv, d)
    int padded, problem p) {
    constexpr int Br = C::Br, Bc = C::Bc;
    extern __shared__ uint4 smem[];
    T *K_smem = (T *)smem, *V_smem = K_smem + Bc * C::D;                   // (Bc, D)
    T *Q_smem = V_smem + Bc * C::D, *dO_smem = Q_smem + Br * C::D;         // (Br, D)
    T *P_smem = dO_smem + Br * C::D, *dS_smem = P_smem + Br * Bc;          // (Br, Bc)
    float *L2_smem = (float *)(dS_smem + Br * Bc), *D_smem = L2_smem + Br; // (Br)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
    // The first row and column of this warp in S and dP, in dV and dK, and in dQ.
    int s_row = warp / (Bc / C::S_KEYS) * C::S_ROWS, s_key = warp % (Bc / C::S_KEYS) * C::S_KEYS;
    int k_key = warp / (C::D / C::K_COLS) * C::K_KEYS, k_col = warp % (C::D / C::K_COLS) * C::K_COLS;
    int q_row = warp / (C::D / C::Q_COLS) * C::Q_ROWS, q_col = warp % (C::D / C::Q_COLS) * C::Q_COLS;
    size_t head = blockIdx.y;
    int key0 = blockIdx.x * Bc;
    Q += head * p.N_q * p.d, dO += head * p.N_q * p.d, K += head * p.N_kv * p.d, V += head * p.N_kv * p.d;
    dK += head * p.N_kv * p.d, dV += head * p.N_kv * p.d;
    L2 += head * padded, D += head * padded, dQ_sum += head * padded * C::D;
    float factor = p.scale * LOG2_E;

    float dV_reg[C::K_KEYS / 16][C::K_COLS / 8][4] = {}, dK_reg[C::K_KEYS / 16][C::K_COLS / 8][4] = {};
    int first_row = first_attending_query(p, key0) / Br * Br; // rows before it attend to none of these keys
    copy_rows<Bc, C::D, C::THREADS>(K_smem, K, key0, p.N_kv, p.d);
    copy_rows<Bc, C::D, C::THREADS>(V_smem, V, key0, p.N_kv, p.d);
    for (int row0 = first_row; row0 < p.N_q; row0 += Br) {
        __syncthreads(); // no thread still reads the previous tile of rows, P or dS
        copy_rows<Br, C::D, C::THREADS>(Q_smem, Q, row0, p.N_q, p.d);
        copy_rows<Br, C::D, C::THREADS>(dO_smem, dO, row0, p.N_q, p.d);
        if (threadIdx.x < Br) {
            L2_smem[threadIdx.x] = L2[row0 + threadIdx.x];
            D_smem[threadIdx.x] = D[row0 + threadIdx.x];
        }
        __syncthreads(); // the tiles (at first K and V too), L2 and D are complete
        const T *Q_tile = Q_smem, *dO_tile = dO_smem;
        const float *L2_tile = L2_smem, *D_tile = D_smem;

        float S[C::S_ROWS / 16][C::S_KEYS / 8][4] = {}, dP[C::S_ROWS / 16][C::S_KEYS / 8][4] = {};
        multiply<false, C::D, false, C::D, C::D>(S, Q_tile, s_row, K_smem, s_key);
        multiply<false, C::D, false, C::D, C::D>(dP, dO_tile, s_row, V_smem, s_key);
        bool masked = key0 + Bc > attended_keys(p, row0); // the tile's first row attends to the fewest keys
#pragma unroll
        for (int i = 0; i < C::S_ROWS / 16; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int row = s_row + 16 * i + 8 * half + g;
                float row_L2 = L2_tile[row], row_D = D_tile[row];
                int attended = masked ? attended_keys(p, row0 + row) - key0 : Bc;
#pragma unroll
                for (int j = 0; j < C::S_KEYS / 8; j++) {
                    const float *s = &S[i][j][2 * half], *dp = &dP[i][j][2 * half];
                    int key = s_key + 8 * j + 2 * t;
                    float P0 = exp2_approx(s[0] * factor - row_L2), P1 = exp2_approx(s[1] * factor - row_L2);
                    if (masked) {
                        P0 = key < attended ? P0 : 0.0f;
                        P1 = key + 1 < attended ? P1 : 0.0f;
                    }
                    int at = place<Bc>(row, key);
                    *(uint32_t *)(P_smem + at) = pack<T>(P0, P1);
                    *(uint32_t *)(dS_smem + at) = pack<T>(P0 * (dp[0] - row_D), P1 * (dp[1] - row_D));
                }
            }
        __syncthreads(); // P and dS are complete

        multiply<true, Bc, true, C::D, Br>(dV_reg, P_smem, k_key, dO_tile, k_col);
        multiply<true, Bc, true, C::D, Br>(dK_reg, dS_smem, k_key, Q_tile, k_col);
        float dQ_reg[C::Q_ROWS / 16][C::Q_COLS / 8][4] = {};
        multiply<false, Bc, true, C::D, Bc>(dQ_reg, dS_smem, q_row, K_smem, q_col);
        add_dQ<C::D>(dQ_sum, dQ_reg, row0 + q_row, q_col);
    }
    store_fragments(dV, dV_reg, 1.0f, key0 + k_key, k_col, p.N_kv, p.d);
    store_fragments(dK, dK_reg, p.scale, key0 + k_key, k_col, p.N_kv, p.d);
}

// ---- on the host -------------------------------------------------------------------------------------------------------

static int padded_rows(const problem *p) { return ceil_div(p->N_q, ROW_PAD) * ROW_PAD; }
static size_t workspace_bytes(const problem *p) { // dQ_sum, L2 and D
    return sizeof(float) * p->batch * p->heads * padded_rows(p) * (size_t)((p->d <= 64 ? 64 : 128) + 2);
}

template <class T, class C>
static cudaError_t run(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    int heads = p->batch * p->heads, padded = padded_rows(p);
    float *dQ_sum = (float *)workspace, *L2 = dQ_sum + (size_t)heads * padded * C::D, *D = L2 + (size_t)heads * padded;
    const T *Q = (const T *)t->Q, *K = (const T *)t->K, *V = (const T *)t->V, *dO = (const T *)t->dO;
    dim3 threads(C::D / 8, 2048 / C::D), blocks(padded / threads.y, heads), key_blocks(ceil_div(p->N_kv, C::Bc), heads);
    cudaError_t error =
        launch(preprocess<T, C::D>, blocks, threads, 0, stream, (const T *)t->O, dO, t->L, L2, D, dQ_sum, padded, *p);
    if (error == cudaSuccess)
        error = launch(backward_keys<T, C>, key_blocks, C::THREADS, C::BYTES, stream, Q, K, V, dO, L2, D, dQ_sum,
                       (T *)t->dK, (T *)t->dV, padded, *p);
    blocks.x /= 2; // one thread: two rows
    if (error == cudaSuccess)
        error = launch(postprocess<T, C::D>, blocks, threads, 0, stream, (const float *)dQ_sum, (T *)t->dQ, padded, *p);
    return error;
}

// The larger tiles where a block may have that much shared memory.
template <int D, class T> struct tilings {
    using large = std::conditional_t<D == 64, tiling<64, 128, 128, 8, 4, 4, 4>, tiling<128, 64, 128, 8, 4, 2, 4>>;
    using small = std::conditional_t<D == 64, tiling<64, 64, 64, 4, 2, 2, 2>, tiling<128, 32, 64, 4, 2, 2, 2>>;
    static_assert(small::BYTES <= LEAST_SHARED_BYTES_8_0, "fits on every card since 8.0");
    static attention_pass *fitting() { return shared_memory_fits(large::BYTES) ? run<T, large> : run<T, small>; }
};

static cudaError_t backward(const problem *p, const tensors *t, void *workspace, cudaStream_t stream) {
    return dispatch(p, [&]<int D, class T>() { return tilings<D, T>::fitting()(p, t, workspace, stream); });
}

extern "C" const step step_11d_vector_reductions = {
    .name = "11d_vector_reductions",
    .idea = "vector reductions of dQ in the order of fragments",
    .backward = backward,
    .workspace_bytes = workspace_bytes,
    .dtypes = 1 << BF16 | 1 << FP16,
    .d_multiple = 8,
    .compute_capability = 80,
};
