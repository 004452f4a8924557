// 10x_tf32: fp32 accuracy from tensor cores, by three TF32 products. Beside the chain of rungs, which is for 16 bits.
//
// Idea      TF32 keeps 11 significant bits of a float's 24. Each operand becomes big + small, two TF32 numbers, and A
//           B = big big + big small + small big: the missing small small is about 2^-22 of the product. A tensor core
//           truncates when it adds, so a long chain of mma drifts towards zero: each short chain starts from zero,
//           and an ordinary addition, which rounds, adds it to the sum.
// Costs     O(N) memory, none beyond the outputs; three mma per product, two or three instructions to split an
//           element of a fragment.
// Limiter   Not known: no counters of its units are recorded.
// Measured  README.md beside this file has the numbers.

#include "attention.h"

#include "device.cuh"
#include "launch.h"
#include "mask.cuh"
#include "tensor.cuh"

constexpr int STAGES = 2; // tiles of K and of V in shared memory

// D >= d columns and Bc keys per tile; row tiles per warp; blocks per multiprocessor; mma steps of 8 per chain.
template <int D_, int Bc_, int WARPS_, int TILES_, int BLOCKS_, int CHAIN_> struct tiling {
    static constexpr int D = D_, Bc = Bc_, WARPS = WARPS_, TILES = TILES_, BLOCKS = BLOCKS_, CHAIN = CHAIN_;
    static constexpr int THREADS = WARPS * WARP, Br = WARPS * TILES * 16;
    static constexpr size_t BYTES = sizeof(float) * (Br + 2 * STAGES * Bc) * D; // Q (Br, D), K and V (STAGES, Bc, D)
    static_assert(D % 32 == 0 && Bc % 16 == 0, "a row has whole sets of 8 groups; pieces of 16 keys");
    static_assert(D % (8 * CHAIN) == 0 && Bc % (8 * CHAIN) == 0, "whole chains");
    static_assert(BYTES <= LEAST_SHARED_BYTES_8_0, "the tiles fit into the shared memory of every card since 8.0");
};
using tiling_64 = tiling<64, 32, 4, 1, 3, 2>;
using tiling_128 = tiling<128, 32, 4, 1, 2, 4>;

// The index of (row, col) in a tile. A group is 4 floats, 16 bytes; row r keeps group c at place c XOR r % 8.
template <int D> __device__ inline int place(int row, int col) { return row * D + (col ^ row % 8 * 4); }

// Start to copy rows [first, first + COUNT) of a (rows, d) matrix to a (COUNT, D) tile, 4 floats per cp.async. With
// FILL, elements past the last row or the last column become zeros; without, all rows exist, and columns past d stay
// as they are. No commit, no wait.
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

constexpr uint32_t TF32_BITS = 0xffffe000u; // what TF32 keeps of a float

// Each float as big + small. big: the float in TF32, rounded to nearest or truncated. small: the exact rest, of which the
// tensor core drops the bits below TF32. Rounding makes the rest smaller and its sign random, at the cost of one addition.
// Q and P are rounded; K and V, which every warp splits for itself, are truncated. A tensor core ignores the
// lower bits: where `bits` is a constant, the compiler probably uses x as big in the product, without the AND.
template <int N> struct split { uint32_t big[N], small[N]; };

template <bool ROUNDED, int N>
__device__ __forceinline__ split<N> split_floats(const uint32_t (&x)[N], uint32_t bits = TF32_BITS) {
    split<N> s;
#pragma unroll
    for (int i = 0; i < N; i++) {
        s.big[i] = (ROUNDED ? x[i] + 0x1000u : x[i]) & bits; // 0x1000: half of the last bit that remains
        s.small[i] = __float_as_uint(__uint_as_float(x[i]) - __uint_as_float(s.big[i]));
    }
    return s;
}

// m16n8k8 in TF32, with g = lane / 4 and t = lane % 4; C as for 16 bits (tensor.cuh):
//
//       A: 4 registers, 1 float each       B: 2 registers, 1 float each
//                k                                    n
//                t     t+4                            g
//         g  [  A0  |  A2  ]                   t   [ B0 ]
//       g+8  [  A1  |  A3  ]                 t+4   [ B1 ]
//
// C += A B over CHAIN steps of mma, for each of TILES matrices A. The chain starts from zero with its small products,
// so that only the CHAIN large ones are truncated in places that matter. B: its registers b0 and b1.
template <int TILES, int N, int CHAIN>
__device__ __forceinline__ void multiply(float (&C)[TILES][4], const split<4> (&A)[CHAIN][TILES],
                                         const split<N> (&B)[CHAIN], int b0, int b1) {
    float sum[TILES][4] = {};
#pragma unroll
    for (int c = 0; c < CHAIN; c++) {
#pragma unroll
        for (int t = 0; t < TILES; t++) mma_m16n8k8_tf32(sum[t], A[c][t].small, B[c].big[b0], B[c].big[b1]);
#pragma unroll
        for (int t = 0; t < TILES; t++) mma_m16n8k8_tf32(sum[t], A[c][t].big, B[c].small[b0], B[c].small[b1]);
    }
#pragma unroll
    for (int c = 0; c < CHAIN; c++)
#pragma unroll
        for (int t = 0; t < TILES; t++) mma_m16n8k8_tf32(sum[t], A[c][t].big, B[c].big[b0], B[c].big[b1]);
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int e = 0; e < 4; e++) C[t][e] += sum[t][e];
}

template <class C>
static __global__ __launch_bounds__(C::THREADS, C::BLOCKS) void forward_kernel(const float *Q, // (heads, N_q, d)
                                                                               const float *K, // (heads, N_kv, d)
                                                                               const float *V, // (heads, N_kv, d)
                                                                               float *O,       // (heads, N_q, d)
                                                                               float *L,       // (heads, N_q)
                                                                               problem p) {
    constexpr int D = C::D, Br = C::Br, Bc = C::Bc, TILES = C::TILES, CHAIN = C::CHAIN;
    extern __shared__ float4 smem[];
    float *Q_smem = (float *)smem;            // (Br, D)
    float *K_smem = Q_smem + Br * D;          // (STAGES, Bc, D)
    float *V_smem = K_smem + STAGES * Bc * D; // (STAGES, Bc, D)
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    size_t head = blockIdx.y;
    uint32_t bits = TF32_BITS | blockDim.y >> 16; // TF32_BITS, but the compiler does not know that blockDim.y is 1
    // Under a causal mask the last rows attend to the most keys: the longest blocks start first.
    int row0 = (gridDim.x - 1 - blockIdx.x) * Br;
    int my_row = row0 + warp * TILES * 16 + lane / 4; // and every eighth row below, TILES * 2 in all
    Q += head * p.N_q * p.d;
    K += head * p.N_kv * p.d;
    V += head * p.N_kv * p.d;

    int tiles = (attended_keys(p, row0 + Br - 1) + Bc - 1) / Bc; // with keys that the block's last row attends to
    int unmasked = attended_keys(p, row0) / Bc; // tiles of which all rows of the block attend to all keys

    int last = max(tiles - 1, 0), other = (last + 1) % STAGES;
    copy_rows<C, Br, true>(Q_smem, Q, row0, p.N_q, p.d);
    copy_rows<C, Bc, true>(K_smem + last % STAGES * Bc * D, K, last * Bc, p.N_kv, p.d);
    copy_rows<C, Bc, true>(V_smem + last % STAGES * Bc * D, V, last * Bc, p.N_kv, p.d);
    if (p.d < D) { // zeros in the columns past d of the other stage: unchecked copies leave them alone
        copy_rows<C, Bc, true>(K_smem + other * Bc * D, K, 0, 0, p.d);
        copy_rows<C, Bc, true>(V_smem + other * Bc * D, V, 0, 0, p.d);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0); // this thread's part of Q has arrived
    __syncthreads();          // every thread's part of Q has arrived
    // exp(scale q.k) = 2^(scale log2(e) q.k): Q is multiplied by the factor once.
    float factor = p.scale * LOG2_E;
    for (int i = threadIdx.x; i < Br * D; i += C::THREADS) Q_smem[i] *= factor;

    // ldmatrix moves 8 rows of 16 bytes, here 4 floats: lane l of a quadrant's register gets element l % 4 of row l /
    // 4, which is what the fragments of m16n8k8 hold. Each lane names one row, as for 16 bits.
    int Q_lane = place<D>(warp * TILES * 16 + lane % 16, lane / 16 * 4);
    int K_lane = place<D>(lane / 16 * 8 + lane % 8, lane / 8 % 2 * 4);
    // m in units of log 2; l of this lane's keys only, until the epilogue.
    float O_reg[D / 8][TILES][4] = {}, m_reg[2 * TILES], l_reg[2 * TILES] = {};
    for (int i = 0; i < 2 * TILES; i++) m_reg[i] = NONE;
    for (int tile = tiles - 1; tile >= 0; tile--) {
        int key0 = tile * Bc, stage = tile % STAGES * Bc * D, next = Bc * D - stage;
        __pipeline_wait_prior(0); // this thread's part of this stage has arrived
        __syncthreads(); // every thread's part has arrived, Q is multiplied; no warp still reads the other stage
        if (tile > 0) {
            copy_rows<C, Bc, false>(K_smem + next, K, key0 - Bc, p.N_kv, p.d);
            copy_rows<C, Bc, false>(V_smem + next, V, key0 - Bc, p.N_kv, p.d);
        }
        __pipeline_commit();

        float S_reg[Bc / 8][TILES][4] = {};
#pragma unroll 2
        for (int k = 0; k < D / 8; k += CHAIN) {
            split<4> Q_part[CHAIN][TILES];
#pragma unroll
            for (int c = 0; c < CHAIN; c++)
#pragma unroll
                for (int t = 0; t < TILES; t++) {
                    uint32_t x[4];
                    ldmatrix_x4(x, Q_smem + (Q_lane ^ 8 * (k + c)) + 16 * t * D);
                    Q_part[c][t] = split_floats<true>(x);
                }
#pragma unroll
            for (int n = 0; n < Bc / 16; n++) {
                split<4> K_part[CHAIN];
#pragma unroll
                for (int c = 0; c < CHAIN; c++) {
                    uint32_t x[4];
                    ldmatrix_x4(x, K_smem + ((stage + K_lane) ^ 8 * (k + c)) + 16 * n * D);
                    K_part[c] = split_floats<false>(x);
                }
                multiply(S_reg[2 * n], Q_part, K_part, 0, 1);
                multiply(S_reg[2 * n + 1], Q_part, K_part, 2, 3);
            }
        }

        // The online softmax (docs/math.md, eq. 15). Elements e of the C fragments of row tile t lie in row i = 2 t +
        // e / 2 of this lane's rows.
        if (tile >= unmasked) {
#pragma unroll
            for (int i = 0; i < 2 * TILES; i++)
#pragma unroll
                for (int n = 0; n < Bc / 8; n++)
#pragma unroll
                    for (int e = i % 2 * 2; e < i % 2 * 2 + 2; e++)
                        if (key0 + 8 * n + lane % 4 * 2 + e % 2 >= attended_keys(p, my_row + 8 * i))
                            S_reg[n][i / 2][e] = NONE;
        }
#pragma unroll
        for (int i = 0; i < 2 * TILES; i++) {
            float m_new = m_reg[i];
#pragma unroll
            for (int n = 0; n < Bc / 8; n++)
#pragma unroll
                for (int e = i % 2 * 2; e < i % 2 * 2 + 2; e++) m_new = fmaxf(m_new, S_reg[n][i / 2][e]);
            m_new = quad_max(m_new);
            float rescale = exp2_approx(m_reg[i] - m_new), sum = 0.0f;
            m_reg[i] = m_new;
#pragma unroll
            for (int n = 0; n < Bc / 8; n++)
#pragma unroll
                for (int e = i % 2 * 2; e < i % 2 * 2 + 2; e++) {
                    S_reg[n][i / 2][e] = exp2_approx(S_reg[n][i / 2][e] - m_new); // now P
                    sum += S_reg[n][i / 2][e];
                }
            l_reg[i] = l_reg[i] * rescale + sum; // a weight added to l itself would be rounded at l's size
#pragma unroll
            for (int n = 0; n < D / 8; n++)
#pragma unroll
                for (int e = i % 2 * 2; e < i % 2 * 2 + 2; e++) O_reg[n][i / 2][e] *= rescale;
        }

        // O += P V, 8 CHAIN keys at a time. A C fragment holds keys 2 t and 2 t + 1 where an A fragment has k = t and
        // t + 4: so k means these keys, in P and in V. A lane loads 4 columns of V at a time: column 4 g + j is
        // column g of the j-th mma. B must lie in neighbouring registers, and the loads bring its two keys apart. The
        // AND can put big there, if the compiler does not drop it and move V: `bits` is no constant.
#pragma unroll
        for (int k = 0; k < Bc / 8; k += CHAIN) {
            split<4> P_part[CHAIN][TILES];
#pragma unroll
            for (int c = 0; c < CHAIN; c++)
#pragma unroll
                for (int t = 0; t < TILES; t++) {
                    float *s = S_reg[k + c][t];
                    uint32_t x[] = {__float_as_uint(s[0]), __float_as_uint(s[2]), __float_as_uint(s[1]),
                                    __float_as_uint(s[3])};
                    P_part[c][t] = split_floats<true>(x);
                }
#pragma unroll
            for (int n = 0; n < D / 32; n++) {
                split<8> V_part[CHAIN];
#pragma unroll
                for (int c = 0; c < CHAIN; c++) {
                    int row = 8 * (k + c) + lane % 4 * 2, col = 32 * n + lane / 4 * 4;
                    uint4 even = *(uint4 *)(V_smem + stage + place<D>(row, col));
                    uint4 odd = *(uint4 *)(V_smem + stage + place<D>(row + 1, col));
                    uint32_t x[] = {even.x, even.y, even.z, even.w, odd.x, odd.y, odd.z, odd.w};
                    V_part[c] = split_floats<false>(x, bits);
                }
#pragma unroll
                for (int j = 0; j < 4; j++) multiply(O_reg[4 * n + j], P_part, V_part, j, j + 4);
            }
        }
    }

#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) {
        float l = quad_sum(l_reg[i]);
        int row = my_row + 8 * i;
        if (row >= p.N_q) continue;
        bool any = m_reg[i] > NONE || isnan(l); // the row attends to at least one key
        float inverse = any ? 1.0f / l : 0.0f;
#pragma unroll
        for (int c = 0; c < D / 32; c++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float4 o = make_float4(
                    O_reg[4 * c][i / 2][i % 2 * 2 + e] * inverse, O_reg[4 * c + 1][i / 2][i % 2 * 2 + e] * inverse,
                    O_reg[4 * c + 2][i / 2][i % 2 * 2 + e] * inverse, O_reg[4 * c + 3][i / 2][i % 2 * 2 + e] * inverse);
                int col = 32 * c + 8 * (lane % 4) + 4 * e;
                if (col < p.d) *(float4 *)(O + (head * p.N_q + row) * p.d + col) = o;
            }
        if (lane % 4 == 0) L[head * p.N_q + row] = any ? (m_reg[i] + log2f(l)) * LN_2 : -INFINITY;
    }
}

template <class C> static cudaError_t run(const problem *p, const tensors *t, cudaStream_t stream) {
    dim3 blocks(ceil_div(p->N_q, C::Br), p->batch * p->heads);
    return launch(forward_kernel<C>, blocks, C::THREADS, C::BYTES, stream, t->Q, t->K, t->V, t->O, t->L, *p);
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    return p->d <= 64 ? run<tiling_64>(p, t, stream) : run<tiling_128>(p, t, stream);
}

extern "C" const step step_10x_tf32 = {
    .name = "10x_tf32",
    .idea = "fp32 by three TF32 products",
    .beside = "another data type",
    .forward = forward,
    .d_multiple = 4,
    .compute_capability = 80,
};
