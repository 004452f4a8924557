// 10_tensor_core_fwd: two row tiles per warp, and few instructions besides mma.sync.
//
// Idea      a piece of K or V in registers feeds four mma, because a warp owns 32 rows; masked tiles come first, so that the
//           long loop has no mask; the scale is part of the exponent's FMA; O is rescaled only when a maximum grows by more
//           than SLACK.
// Costs     O(N) memory, none beyond the outputs; nearly all registers of a multiprocessor.
// Limiter   the tensor cores as mma.sync drives them: 62% of what wgmma reaches on Hopper.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <cuda_pipeline.h>
#include <float.h>
#include <math.h>

#include "device.cuh"
#include "tensor.cuh"

constexpr int ROWS = 32;      // query rows of a warp: two mma of 16
constexpr int STAGES = 2;     // tiles of K and of V in shared memory
constexpr float SLACK = 8.0f; // a weight may grow to 2^8 before its row gets a new maximum
constexpr float NONE = -FLT_MAX / 4; // a masked score, and the maximum of no keys: finite, so that NONE - NONE is 0, not NaN

// D >= d: width of the tiles. Bc: keys in a tile. BLOCKS: on a multiprocessor at a time, which bounds the registers.
template <int D_, int Bc_, int WARPS_, int BLOCKS_, bool Q_STAYS_> struct tiling {
    static constexpr int D = D_, Bc = Bc_, WARPS = WARPS_, BLOCKS = BLOCKS_;
    static constexpr bool Q_STAYS = Q_STAYS_; // fragments of Q stay in registers from tile to tile
    static constexpr int THREADS = WARPS * WARP;
    static constexpr int Br = WARPS * ROWS;
    static constexpr int ELEMENTS = (Br + 2 * STAGES * Bc) * D; // Q, K, V
    static_assert(D % 64 == 0 && Bc % 16 == 0, "8 groups of columns to exchange; whole pieces of keys");
    static_assert(BLOCKS * (ELEMENTS * 2 + 1024) <= 228 * 1024, "shared memory of a multiprocessor, 9.0");
};

// The element of a tile's row and column. Columns 8 to a group; row r has group c at place c ^ r % 8.
template <int D> __device__ inline int place(int row, int col) { return row * D + (col ^ row % 8 * 8); }

// Start to copy rows [first, first + COUNT) of a (rows, d) matrix to a tile, 8 elements per cp.async. With FILL, all that lies
// past the ends becomes zeros; without, all rows exist and columns past d stay as they are. No commit, no wait.
template <class C, int COUNT, bool FILL, class T>
__device__ __forceinline__ void copy_rows(T *tile, const T *matrix, int first, int rows, int d) {
    constexpr int STEP = 8 * C::THREADS / C::D; // rows that all threads copy together
    static_assert(STEP % 8 == 0 && COUNT % STEP == 0, "a thread's places lie STEP rows apart");
    int row = threadIdx.x / (C::D / 8), col = threadIdx.x % (C::D / 8) * 8;
    T *to = tile + place<C::D>(row, col);
    const T *from = matrix + (size_t)first * d + (row * d + col);
    if (!FILL && col >= d) return;
#pragma unroll
    for (int r = 0; r < COUNT; r += STEP, from += STEP * d) {
        bool inside = !FILL || (first + row + r < rows && col < d);
        __pipeline_memcpy_async(to + r * C::D, inside ? from : matrix, 16, inside ? 0 : 16);
    }
}

// All keys of one tile for the 32 rows of a warp. Element e of the C fragments of row tile t lies in row i = 2 t + e / 2 of the
// lane's four. Q_lane, K_lane, V_lane: the element of `smem` that the lane names to ldmatrix for the first piece of a tile; the
// XOR of a column names it for another piece. Of the keys of the tile that the lane holds, row i
// attends to those before limit + 8 i, and there are none from `all` on. Weights of a row that has no key yet are 1, and
// become 0 with its first key.
template <class C, bool MASKED, class T, int QK>
__device__ __forceinline__ void visit(float (&O_reg)[2][C::D / 8][4], float (&m_reg)[4], float (&l_reg)[4],
                                      uint32_t (&Q_reg)[QK][2][4], const T *smem, int Q_lane, int K_lane,
                                      int V_lane, int limit, int all, float factor) {
    constexpr int D = C::D, Bc = C::Bc;
    float S_reg[2][Bc / 8][4] = {};
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        if (!C::Q_STAYS)
#pragma unroll
            for (int t = 0; t < 2; t++) ldmatrix_x4(Q_reg[0][t], smem + (Q_lane ^ 16 * k) + 16 * t * D);
#pragma unroll
        for (int n = 0; n < Bc / 16; n++) {
            uint32_t K_reg[4];
            ldmatrix_x4(K_reg, smem + (K_lane ^ 16 * k) + 16 * n * D);
#pragma unroll
            for (int t = 0; t < 2; t++) {
                mma_m16n8k16<T>(S_reg[t][2 * n], Q_reg[C::Q_STAYS ? k : 0][t], K_reg[0], K_reg[1]);
                mma_m16n8k16<T>(S_reg[t][2 * n + 1], Q_reg[C::Q_STAYS ? k : 0][t], K_reg[2], K_reg[3]);
            }
        }
    }

    // exp(scale s) = 2^(factor s): where there is a mask, the factor comes before it.
    float in_exponent = MASKED ? 1.0f : factor, high[4] = {NONE, NONE, NONE, NONE};
    bool grows = false;
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int n = 0; n < Bc / 8; n++)
#pragma unroll
            for (int e = i % 2 * 2; e < i % 2 * 2 + 2; e++) {
                float &s = S_reg[i / 2][n][e];
                if (MASKED) s = 8 * n + e % 2 < min(limit + 8 * i, all) ? s * factor : NONE;
                high[i] = fmaxf(high[i], s);
            }
        grows |= high[i] * in_exponent - m_reg[i] > SLACK;
    }
    if (__any_sync(FULL_WARP, grows)) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float m_new = fmaxf(m_reg[i], quad_max(high[i]) * in_exponent);
            float rescale = exp2_approx(m_reg[i] - m_new);
            m_reg[i] = m_new;
            l_reg[i] *= rescale;
#pragma unroll
            for (int n = 0; n < D / 8; n++) {
                O_reg[i / 2][n][i % 2 * 2] *= rescale;
                O_reg[i / 2][n][i % 2 * 2 + 1] *= rescale;
            }
        }
    }

#pragma unroll
    for (int k = 0; k < Bc / 16; k++) {
        uint32_t P_reg[2][4];
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float *s = S_reg[t][2 * k + i / 2] + i % 2 * 2;
                float low = exp2_approx(s[0] * in_exponent - m_reg[2 * t + i % 2]);
                float high = exp2_approx(s[1] * in_exponent - m_reg[2 * t + i % 2]);
                l_reg[2 * t + i % 2] += low + high;
                P_reg[t][i] = pack<T>(low, high);
            }
#pragma unroll
        for (int n = 0; n < D / 16; n++) {
            uint32_t V_reg[4];
            ldmatrix_x4_trans(V_reg, smem + (V_lane ^ 16 * n) + 16 * k * D);
#pragma unroll
            for (int t = 0; t < 2; t++) {
                mma_m16n8k16<T>(O_reg[t][2 * n], P_reg[t], V_reg[0], V_reg[1]);
                mma_m16n8k16<T>(O_reg[t][2 * n + 1], P_reg[t], V_reg[2], V_reg[3]);
            }
        }
    }
}

template <class C, class T>
static __global__ __launch_bounds__(C::THREADS, C::BLOCKS) void tensor_core_forward(const T *Q, // (heads, N_q, d)
                                                                                    const T *K, // (heads, N_kv, d)
                                                                                    const T *V, // (heads, N_kv, d)
                                                                                    T *O,       // (heads, N_q, d)
                                                                                    float *L,   // (heads, N_q)
                                                                                    problem p) {
    constexpr int D = C::D, Br = C::Br, Bc = C::Bc;
    extern __shared__ uint4 smem[];
    T *Q_smem = (T *)smem;                // (Br, D)
    T *K_smem = Q_smem + Br * D;          // (STAGES, Bc, D)
    T *V_smem = K_smem + STAGES * Bc * D; // (STAGES, Bc, D)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    size_t head = blockIdx.y;
    // Under a causal mask the last rows attend to the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br;
    int my_row = row0 + warp * ROWS + lane / 4; // and 8, 16 and 24 rows below
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;

    // Row `row` attends to the keys before row + shift + 1.
    int shift = p.causal ? p.N_kv - p.N_q : p.N_kv;
    int tiles = (max(0, min(p.N_kv, row0 + Br + shift)) + Bc - 1) / Bc; // with keys of the block's last row
    int unmasked = max(0, min(p.N_kv, row0 + shift + 1)) / Bc;          // tiles of which all keys belong to all rows
    if (p.scale <= 0.0f) unmasked = 0; // the largest s is the largest factor s only where factor > 0

    int last = max(tiles - 1, 0);
    copy_rows<C, Br, true>(Q_smem, Q, row0, p.N_q, p.d);
    copy_rows<C, Bc, true>(K_smem + last % STAGES * Bc * D, K, last * Bc, p.N_kv, p.d);
    copy_rows<C, Bc, true>(V_smem + last % STAGES * Bc * D, V, last * Bc, p.N_kv, p.d);
    if (p.d < D) { // zeros, once, in the columns past d of the other stage
        copy_rows<C, Bc, true>(K_smem + (last + 1) % STAGES * Bc * D, K, 0, 0, p.d);
        copy_rows<C, Bc, true>(V_smem + (last + 1) % STAGES * Bc * D, V, 0, 0, p.d);
    }
    __pipeline_commit();

    int Q_lane = place<D>(warp * ROWS + lane % 16, lane / 16 * 8);
    int K_lane = Br * D + place<D>(lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8);
    int V_lane = (Br + STAGES * Bc) * D + place<D>(lane % 16, lane / 16 * 8);
    uint32_t Q_reg[C::Q_STAYS ? D / 16 : 1][2][4];
    if (C::Q_STAYS) {
        __pipeline_wait_prior(0);
        __syncthreads(); // Q is complete before any warp reads its rows
#pragma unroll
        for (int k = 0; k < (C::Q_STAYS ? D / 16 : 0); k++)
#pragma unroll
            for (int t = 0; t < 2; t++) ldmatrix_x4(Q_reg[k][t], Q_smem + (Q_lane ^ 16 * k) + 16 * t * D);
    }

    // m in units of log 2, at most SLACK below the maximum; l of this lane's keys until the end.
    float O_reg[2][D / 8][4] = {}, m_reg[4] = {NONE, NONE, NONE, NONE}, l_reg[4] = {};
    int tile = tiles - 1;
    auto next_stage = [&] {
        __pipeline_wait_prior(0);
        __syncthreads(); // this stage's tiles are complete; no warp still reads the stage that is overwritten here
        if (tile == 0) return;
        int stage = (tile - 1) % STAGES;
        copy_rows<C, Bc, false>(K_smem + stage * Bc * D, K, (tile - 1) * Bc, p.N_kv, p.d);
        copy_rows<C, Bc, false>(V_smem + stage * Bc * D, V, (tile - 1) * Bc, p.N_kv, p.d);
        __pipeline_commit();
    };
    for (; tile >= unmasked; tile--) {
        next_stage();
        int my_key = tile * Bc + lane % 4 * 2;
        int stage = tile % STAGES * Bc * D;
        visit<C, true>(O_reg, m_reg, l_reg, Q_reg, Q_smem, Q_lane, K_lane + stage, V_lane + stage,
                       my_row + shift + 1 - my_key, p.N_kv - my_key, p.scale * LOG2_E);
    }
    for (; tile >= 0; tile--) {
        next_stage();
        int stage = tile % STAGES * Bc * D;
        visit<C, false>(O_reg, m_reg, l_reg, Q_reg, Q_smem, Q_lane, K_lane + stage, V_lane + stage, 0, 0,
                        p.scale * LOG2_E);
    }

#pragma unroll
    for (int i = 0; i < 4; i++) {
        float l = quad_sum(l_reg[i]);
        int row = my_row + 8 * i;
        if (row >= p.N_q) continue;
        bool any = m_reg[i] > NONE;
        float inverse = any ? 1.0f / l : 0.0f;
        T *O_row = O + (head * p.N_q + row) * p.d;
#pragma unroll
        for (int n = 0; n < D / 8; n++)
            if (8 * n < p.d)
                *(uint32_t *)(O_row + 8 * n + lane % 4 * 2) =
                    pack<T>(O_reg[i / 2][n][i % 2 * 2] * inverse, O_reg[i / 2][n][i % 2 * 2 + 1] * inverse);
        if (lane % 4 == 0) L[head * p.N_q + row] = any ? (m_reg[i] + log2f(l)) * LN_2 : -INFINITY;
    }
}

template <class C, class T>
static cudaError_t run(const problem &p, const void *Q, const void *K, const void *V, void *O, float *L,
                       cudaStream_t stream) {
    int shared_bytes = C::ELEMENTS * sizeof(T);
    cudaError_t error =
        cudaFuncSetAttribute(tensor_core_forward<C, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    dim3 blocks(ceil_div(p.N_q, C::Br), p.batch * p.heads);
    tensor_core_forward<C, T>
        <<<blocks, C::THREADS, shared_bytes, stream>>>((const T *)Q, (const T *)K, (const T *)V, (T *)O, L, p);
    return cudaGetLastError();
}

template <class T>
static cudaError_t dispatch(const problem &p, const void *Q, const void *K, const void *V, void *O, float *L,
                            cudaStream_t stream) {
    if (p.d <= 64) return run<tiling<64, 64, 4, 2, true>, T>(p, Q, K, V, O, L, stream);
    return run<tiling<128, 64, 4, 2, false>, T>(p, Q, K, V, O, L, stream);
}

extern "C" cudaError_t forward_tensor_core_fwd(int batch, int heads, int N_q, int N_kv, int d, int causal, float scale,
                                               int is_bf16, const void *Q, const void *K, const void *V, void *O, float *L,
                                               cudaStream_t stream) {
    problem p = {batch, heads, N_q, N_kv, d, causal != 0, scale};
    return is_bf16 ? dispatch<__nv_bfloat16>(p, Q, K, V, O, L, stream) : dispatch<__half>(p, Q, K, V, O, L, stream);
}
