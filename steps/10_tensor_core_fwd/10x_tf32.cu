// 10x_tf32: fp32 accuracy from tensor cores, by three TF32 products. Beside the chain of rungs, which is for 16 bits.
//
// Idea      TF32 keeps 11 bits of a float's 24. Each operand becomes the sum of two TF32 numbers, big + small, and
//           A B = big big + big small + small big; what is left out, small small, is below 2^-20 of the product.
// Costs     O(N) memory, none beyond the outputs; three mma per product, and four integer or fp32 instructions per element of
//           a fragment.
// Limiter   the tensor cores: a third of TF32, which has half the speed of 16 bits.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include <cuda_pipeline.h>
#include <float.h>
#include <math.h>

#include "device.cuh"
#include "tensor.cuh"

constexpr int STAGES = 2;            // tiles of K and of V in shared memory
constexpr float NONE = -FLT_MAX / 4; // a masked score, and the maximum of no keys: finite, so that NONE - NONE is 0, not NaN

// D >= d: width of the tiles. Bc: keys in a tile. TILES: of 16 query rows, per warp. BLOCKS: on a multiprocessor at a time.
template <int D_, int Bc_, int WARPS_, int TILES_, int BLOCKS_> struct tiling {
    static constexpr int D = D_, Bc = Bc_, WARPS = WARPS_, TILES = TILES_, BLOCKS = BLOCKS_;
    static constexpr int THREADS = WARPS * WARP;
    static constexpr int Br = WARPS * TILES * 16;
    static constexpr int FLOATS = (Br + 2 * STAGES * Bc) * D; // Q, K, V
    static_assert(D % 32 == 0 && Bc % 16 == 0, "8 groups of columns to exchange; whole pieces of keys");
    static_assert(BLOCKS * (FLOATS * 4 + 1024) <= 228 * 1024, "shared memory of a multiprocessor, 9.0");
};

// The element of a tile's row and column. Columns 4 to a group; row r has group c at place c ^ r % 8.
template <int D> __device__ inline int place(int row, int col) { return row * D + (col ^ row % 8 * 4); }

// Start to copy rows [first, first + COUNT) of a (rows, d) matrix to a tile, 4 floats per cp.async. With FILL, all that lies
// past the ends becomes zeros; without, all rows exist and columns past d stay as they are. No commit, no wait.
template <class C, int COUNT, bool FILL>
__device__ __forceinline__ void copy_rows(float *tile, const float *matrix, int first, int rows, int d) {
    constexpr int STEP = 4 * C::THREADS / C::D; // rows that all threads copy together
    static_assert(COUNT % STEP == 0, "all threads copy the same number of rows");
    int row = threadIdx.x / (C::D / 4), col = threadIdx.x % (C::D / 4) * 4;
    const float *from = matrix + (size_t)first * d + (row * d + col);
    if (!FILL && col >= d) return;
#pragma unroll
    for (int r = 0; r < COUNT; r += STEP, from += STEP * d) {
        bool inside = !FILL || (first + row + r < rows && col < d);
        __pipeline_memcpy_async(tile + place<C::D>(row + r, col), inside ? from : matrix, 16, inside ? 0 : 16);
    }
}

// Each float as big + small: big is the float without its last 13 bits; small, the exact rest, is rounded to TF32 by adding
// half of what the tensor core drops.
template <int N> struct split {
    uint32_t big[N], small[N];
};

template <int N> __device__ __forceinline__ split<N> split_floats(const uint32_t (&x)[N]) {
    split<N> s;
#pragma unroll
    for (int i = 0; i < N; i++) {
        s.big[i] = x[i] & 0xffffe000u;
        s.small[i] = __float_as_uint(__uint_as_float(x[i]) - __uint_as_float(s.big[i]));
    }
    return s;
}

// C += A B by three mma for each of TILES matrices A; the smaller products come first. B: its registers b0 and b1.
template <int TILES, int N>
__device__ __forceinline__ void multiply(float (&C)[TILES][4], const split<4> (&A)[TILES], const split<N> &B, int b0,
                                         int b1) {
#pragma unroll
    for (int t = 0; t < TILES; t++) mma_m16n8k8_tf32(C[t], A[t].small, B.big[b0], B.big[b1]);
#pragma unroll
    for (int t = 0; t < TILES; t++) mma_m16n8k8_tf32(C[t], A[t].big, B.small[b0], B.small[b1]);
#pragma unroll
    for (int t = 0; t < TILES; t++) mma_m16n8k8_tf32(C[t], A[t].big, B.big[b0], B.big[b1]);
}

template <class C>
static __global__ __launch_bounds__(C::THREADS, C::BLOCKS) void tf32_forward(const float *Q, // (heads, N_q, d)
                                                                             const float *K, // (heads, N_kv, d)
                                                                             const float *V, // (heads, N_kv, d)
                                                                             float *O,       // (heads, N_q, d)
                                                                             float *L,       // (heads, N_q)
                                                                             problem p) {
    constexpr int D = C::D, Br = C::Br, Bc = C::Bc, TILES = C::TILES;
    extern __shared__ float4 smem[];
    float *Q_smem = (float *)smem;            // (Br, D)
    float *K_smem = Q_smem + Br * D;          // (STAGES, Bc, D)
    float *V_smem = K_smem + STAGES * Bc * D; // (STAGES, Bc, D)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    size_t head = blockIdx.y;
    // Under a causal mask the last rows attend to the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br;
    int my_row = row0 + warp * TILES * 16 + lane / 4; // and every eighth row below, TILES * 2 in all
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;

    // Row `row` attends to the keys before row + shift + 1.
    int shift = p.causal ? p.N_kv - p.N_q : p.N_kv;
    int tiles = (max(0, min(p.N_kv, row0 + Br + shift)) + Bc - 1) / Bc; // with keys of the block's last row
    int unmasked = max(0, min(p.N_kv, row0 + shift + 1)) / Bc;          // tiles of which all keys belong to all rows

    int last = max(tiles - 1, 0), other = (last + 1) % STAGES;
    copy_rows<C, Br, true>(Q_smem, Q, row0, p.N_q, p.d);
    copy_rows<C, Bc, true>(K_smem + last % STAGES * Bc * D, K, last * Bc, p.N_kv, p.d);
    copy_rows<C, Bc, true>(V_smem + last % STAGES * Bc * D, V, last * Bc, p.N_kv, p.d);
    if (p.d < D) { // zeros, once, in the columns past d of the other stage
        copy_rows<C, Bc, true>(K_smem + other * Bc * D, K, 0, 0, p.d);
        copy_rows<C, Bc, true>(V_smem + other * Bc * D, V, 0, 0, p.d);
    }
    __pipeline_commit();

    // The lane's row for ldmatrix, of which a quadrant here is 8 rows of 4 floats.
    int Q_lane = place<D>(warp * TILES * 16 + lane % 16, lane / 16 * 4);
    int K_lane = place<D>(lane / 16 * 8 + lane % 8, lane / 8 % 2 * 4);
    // Element e of a C fragment of S: row tile t, row my_row + 16 t + e / 2 * 8, key 2 (lane % 4) + e % 2. m in units of log 2;
    // l of this lane's keys until the end.
    float O_reg[D / 8][TILES][4] = {}, m_reg[2 * TILES], l_reg[2 * TILES] = {};
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) m_reg[i] = NONE;
    float factor = p.scale * LOG2_E; // exp(scale s) = 2^(factor s)
    for (int tile = tiles - 1; tile >= 0; tile--) {
        int key0 = tile * Bc, stage = tile % STAGES * Bc * D, next = Bc * D - stage;
        __pipeline_wait_prior(0);
        __syncthreads(); // the tiles of this stage are complete; no warp still reads the stage that is overwritten here
        if (tile > 0) {
            copy_rows<C, Bc, false>(K_smem + next, K, key0 - Bc, p.N_kv, p.d);
            copy_rows<C, Bc, false>(V_smem + next, V, key0 - Bc, p.N_kv, p.d);
        }
        __pipeline_commit();

        float S_reg[Bc / 8][TILES][4] = {};
#pragma unroll
        for (int k = 0; k < D / 8; k++) {
            split<4> Q_part[TILES];
#pragma unroll
            for (int t = 0; t < TILES; t++) {
                uint32_t x[4];
                ldmatrix_x4(x, Q_smem + (Q_lane ^ 8 * k) + 16 * t * D);
                Q_part[t] = split_floats(x);
            }
#pragma unroll
            for (int n = 0; n < Bc / 16; n++) {
                uint32_t x[4];
                ldmatrix_x4(x, K_smem + ((stage + K_lane) ^ 8 * k) + 16 * n * D);
                split<4> K_part = split_floats(x);
                multiply(S_reg[2 * n], Q_part, K_part, 0, 1);
                multiply(S_reg[2 * n + 1], Q_part, K_part, 2, 3);
            }
        }

        bool masked = tile >= unmasked;
        // The online softmax (docs/math.md, eq. 15) of the lane's rows.
#pragma unroll
        for (int i = 0; i < 2 * TILES; i++) {
            float m_new = m_reg[i];
#pragma unroll
            for (int n = 0; n < Bc / 8; n++)
#pragma unroll
                for (int e = i % 2 * 2; e < i % 2 * 2 + 2; e++) {
                    float &s = S_reg[n][i / 2][e];
                    s *= factor;
                    int key = key0 + 8 * n + lane % 4 * 2 + e % 2;
                    if (masked && key >= min(p.N_kv, my_row + 8 * i + shift + 1)) s = NONE;
                    m_new = fmaxf(m_new, s);
                }
            m_new = quad_max(m_new);
            float rescale = exp2_approx(m_reg[i] - m_new);
            m_reg[i] = m_new;
            l_reg[i] *= rescale;
#pragma unroll
            for (int n = 0; n < Bc / 8; n++)
#pragma unroll
                for (int e = i % 2 * 2; e < i % 2 * 2 + 2; e++) {
                    S_reg[n][i / 2][e] = exp2_approx(S_reg[n][i / 2][e] - m_new); // now P
                    l_reg[i] += S_reg[n][i / 2][e];
                }
#pragma unroll
            for (int n = 0; n < D / 8; n++)
#pragma unroll
                for (int e = i % 2 * 2; e < i % 2 * 2 + 2; e++) O_reg[n][i / 2][e] *= rescale;
        }

        // O += P V, 8 keys at a time. A C fragment holds keys 2t and 2t + 1 where an A fragment has k = t and k = t + 4: so k
        // means these keys, in P and in V. A lane takes its rows of V 4 columns per load: column 4 g + j is column g of the
        // j-th mma.
#pragma unroll
        for (int k = 0; k < Bc / 8; k++) {
            split<4> P_part[TILES];
#pragma unroll
            for (int t = 0; t < TILES; t++) {
                float *s = S_reg[k][t];
                uint32_t x[4] = {__float_as_uint(s[0]), __float_as_uint(s[2]), __float_as_uint(s[1]), __float_as_uint(s[3])};
                P_part[t] = split_floats(x);
            }
#pragma unroll
            for (int c = 0; c < D / 32; c++) {
                int row = 8 * k + lane % 4 * 2, col = 32 * c + lane / 4 * 4;
                float4 even = *(float4 *)(V_smem + stage + place<D>(row, col));
                float4 odd = *(float4 *)(V_smem + stage + place<D>(row + 1, col));
                uint32_t x[8] = {__float_as_uint(even.x), __float_as_uint(even.y), __float_as_uint(even.z),
                                 __float_as_uint(even.w), __float_as_uint(odd.x),  __float_as_uint(odd.y),
                                 __float_as_uint(odd.z),  __float_as_uint(odd.w)};
                split<8> V_part = split_floats(x);
#pragma unroll
                for (int j = 0; j < 4; j++) multiply(O_reg[4 * c + j], P_part, V_part, j, j + 4);
            }
        }
    }

#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
        float l = quad_sum(l_reg[i]);
        int row = my_row + 8 * i;
        if (row >= p.N_q) continue;
        bool any = m_reg[i] > NONE;
        float inverse = any ? 1.0f / l : 0.0f;
#pragma unroll
        for (int c = 0; c < D / 32; c++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float4 o = make_float4(O_reg[4 * c][i / 2][i % 2 * 2 + e] * inverse,
                                       O_reg[4 * c + 1][i / 2][i % 2 * 2 + e] * inverse,
                                       O_reg[4 * c + 2][i / 2][i % 2 * 2 + e] * inverse,
                                       O_reg[4 * c + 3][i / 2][i % 2 * 2 + e] * inverse);
                int col = 32 * c + 8 * (lane % 4) + 4 * e;
                if (col < p.d) *(float4 *)(O + (head * p.N_q + row) * p.d + col) = o;
            }
        if (lane % 4 == 0) L[head * p.N_q + row] = any ? (m_reg[i] + log2f(l)) * LN_2 : -INFINITY;
    }
}

template <class C>
static cudaError_t run(const problem &p, const float *Q, const float *K, const float *V, float *O, float *L,
                       cudaStream_t stream) {
    int shared_bytes = C::FLOATS * sizeof(float);
    cudaError_t error = cudaFuncSetAttribute(tf32_forward<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    if (error != cudaSuccess) return error;
    dim3 blocks(ceil_div(p.N_q, C::Br), p.batch * p.heads);
    tf32_forward<C><<<blocks, C::THREADS, shared_bytes, stream>>>(Q, K, V, O, L, p);
    return cudaGetLastError();
}

extern "C" cudaError_t forward_10x_tf32(int batch, int heads, int N_q, int N_kv, int d, int causal, float scale, int,
                                        const float *Q, const float *K, const float *V, float *O, float *L,
                                        cudaStream_t stream) {
    problem p = {batch, heads, N_q, N_kv, d, causal != 0, scale};
    if (d <= 64) return run<tiling<64, 32, 4, 2, 2>>(p, Q, K, V, O, L, stream);
    return run<tiling<128, 32, 4, 1, 2>>(p, Q, K, V, O, L, stream);
}
