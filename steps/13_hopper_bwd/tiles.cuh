/* What all rungs of chapter 13 share: the kernels before and after the main one, tiles in shared memory, products. A tile (rows, WIDTH)
 * lies in WIDTH / 64 panels (rows, 64): a row of a panel is 128 bytes, in the TMA's 128-byte swizzle. Tiles begin at multiples of
 * 1024 bytes, where the swizzle repeats. */
#ifndef TILES_CUH
#define TILES_CUH

#include <math.h>

#include "attention.h"
#include "device.cuh"
#include "hopper.cuh"
#include "launch.h"
#include "tensor.cuh"

constexpr int ROW_PAD = 128; // dQ_sum, L2 and D have rows up to a multiple of this

/* The tensors as the TMA sees them, with boxes of 64 columns. */
struct tensor_maps {
    CUtensorMap Q, K, V, dO;
};

/* ---- tiles */

/* By an offset: of a pointer made from a number, the compiler would not know that it points into shared memory. */
template <class T> __device__ inline T *first_multiple_of_1024(void *p) {
    return (T *)((char *)p + -shared_address(p) % 1024);
}

/* One thread asks for rows [first, first + rows) of a head: a box for each panel; the bytes count at `full`. Rows past the last
 * one and columns past d arrive as zeros. */
template <int WIDTH, class T>
__device__ inline void load_tile(T *tile, const CUtensorMap &map, int rows, int first, int head, uint64_t *full) {
    for (int column = 0; column < WIDTH; column += 64) tma_load(tile + rows * column, &map, column, first, head, full);
}

/* The place of (row, column) in a tile of `rows` rows. */
__device__ inline int place(int rows, int row, int column) {
    return column / 64 * rows * 64 + row * 64 + (column % 64 ^ row % 8 * 8);
}

/* ---- products. Each starts one group of wgmma and commits it. */

/* C (64, 8 N) = A B^T over WIDTH columns: rows of tiles of A_ROWS and B_ROWS rows, from `A` and `B` on. */
template <int WIDTH, int A_ROWS, int B_ROWS, int N, class T>
__device__ __forceinline__ void multiply_rows(float (&C)[N][4], const T *A, const T *B) {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < WIDTH / 16; k++) { // 16 columns of both: 32 bytes further in their panels
        uint64_t A_piece = swizzled_tile(A + k / 4 * A_ROWS * 64 + k % 4 * 16, 0);
        wgmma<false>(T(), C, A_piece, swizzled_tile(B + k / 4 * B_ROWS * 64 + k % 4 * 16, 0), k > 0);
    }
    wgmma_commit();
}

/* C (64, WIDTH) += A B, where A (64, ROWS) is in registers and B a tile (ROWS, WIDTH). */
template <int WIDTH, int ROWS, class T>
__device__ __forceinline__ void multiply_registers(float (&C)[WIDTH / 8][4], const uint32_t (&A)[ROWS / 16][4],
                                                   const T *B) {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < ROWS / 16; k++) // 16 rows: 2048 bytes further in all panels
        wgmma<true>(T(), C, A[k], swizzled_tile(B + k * 16 * 64, ROWS * 128), true);
    wgmma_commit();
}

/* C (64, 8 N) = A B over ROWS rows of B: rows of a tile of A_ROWS rows from `A` on, and columns of a tile from `B` on. */
template <int A_ROWS, int ROWS, int N, class T>
__device__ __forceinline__ void multiply_tiles(float (&C)[N][4], const T *A, const T *B) {
    wgmma_fence(); // redundant: in all rungs S's product has a fence after the last access to C
#pragma unroll
    for (int k = 0; k < ROWS / 16; k++) {
        uint64_t A_piece = swizzled_tile(A + k / 4 * A_ROWS * 64 + k % 4 * 16, 0);
        wgmma<true>(T(), C, A_piece, swizzled_tile(B + k * 16 * 64, ROWS * 128), k > 0);
    }
    wgmma_commit();
}

/* ---- before the main kernel: D = rowsum(dO o O), and L2 = L log2(e), or +inf for a row that attends to no key, since its P is
 * 2^(S - inf) = 0. WIDTH / 8 threads per row, padded rows too; zeroes dQ_sum. */
template <class T, int WIDTH>
static __global__ void preprocess(const T *O, const T *dO, // (heads, N_q, d)
                                  const float *L,          // (heads, N_q)
                                  float *L2, float *D,     // (heads, padded)
                                  float *dQ_sum,           // (heads, padded, WIDTH)
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
    float4 *zero = (float4 *)(dQ_sum + out * WIDTH);
    zero[threadIdx.x] = zero[threadIdx.x + WIDTH / 8] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int bit = WIDTH / 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, bit);
    if (threadIdx.x != 0) return;
    D[out] = sum;
    L2[out] = row < p.N_q && L[in] != -INFINITY ? L[in] * LOG2_E : INFINITY;
}

/* ---- after it: dQ = scale dQ_sum. dQ_sum consists of parts of 64 rows and COLS columns, as one warpgroup's fragments hold them:
 * float4 number n * 128 + thread is C[n] of that thread. Parts follow each other along the columns of a row, then along the
 * rows. One thread: rows g and g + 8 of one warp, 8 columns. */
template <class T, int WIDTH, int COLS>
static __global__ void postprocess(const float *dQ_sum, T *dQ, int padded, problem p) {
    int g = threadIdx.x % 8, n = threadIdx.x / 8 % (COLS / 8), part = threadIdx.x / COLS; // of WIDTH / COLS in a row
    int warp = blockIdx.x % 4, row = blockIdx.x * 16 + g, col = part * COLS + n * 8;
    size_t head = blockIdx.y;
    if (row >= p.N_q || col >= p.d) return;
    const float4 *from = (const float4 *)(dQ_sum + (head * padded + row / 64 * 64) * WIDTH + part * 64 * COLS);
    from += n * WARPGROUP + warp * WARP + g * 4;
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

/* ---- the end of the main kernel: this lane's fragments of 64 rows, times `factor`, to a (rows, d) matrix. my_row: of C[0][0]. */
template <class T, int N>
__device__ __forceinline__ void store_fragments(T *matrix, const float (&C)[N][4], float factor, int my_row, int rows,
                                                int d) {
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = my_row + 8 * half, col = 8 * n + threadIdx.x % 4 * 2;
            const float *x = &C[n][2 * half];
            if (row < rows && col < d)
                *(uint32_t *)(matrix + (size_t)row * d + col) = pack<T>(x[0] * factor, x[1] * factor);
        }
}

/* ---- on the host */

inline int padded_rows(const problem *p) { return ceil_div(p->N_q, ROW_PAD) * ROW_PAD; }
inline int tile_width(const problem *p) { return p->d <= 64 ? 64 : 128; }

/* What lies in the workspace. */
struct intermediates {
    float *dQ_sum, *L2, *D; // (heads, padded, tile_width), (heads, padded) twice
    intermediates(void *workspace, const problem *p) : dQ_sum((float *)workspace) {
        size_t rows = (size_t)p->batch * p->heads * padded_rows(p);
        L2 = dQ_sum + rows * tile_width(p), D = L2 + rows;
    }
};
inline size_t intermediate_bytes(const problem *p) {
    return sizeof(float) * p->batch * p->heads * padded_rows(p) * (size_t)(tile_width(p) + 2);
}

/* preprocess(), main_kernel(maps, intermediates) and postprocess(). */
template <class T, int WIDTH, int COLS, class F>
cudaError_t around(const problem *p, const tensors *t, void *workspace, cudaStream_t stream, int Br, int Bc,
                   F main_kernel) {
    int heads = p->batch * p->heads, padded = padded_rows(p);
    intermediates between(workspace, p);
    dim3 threads(WIDTH / 8, 1024 / WIDTH);
    tensor_maps maps;
    cudaError_t error = make_tensor_map(&maps.Q, p->dtype, t->Q, heads, p->N_q, p->d, Br);
    if (error == cudaSuccess) error = make_tensor_map(&maps.dO, p->dtype, t->dO, heads, p->N_q, p->d, Br);
    if (error == cudaSuccess) error = make_tensor_map(&maps.K, p->dtype, t->K, heads, p->N_kv, p->d, Bc);
    if (error == cudaSuccess) error = make_tensor_map(&maps.V, p->dtype, t->V, heads, p->N_kv, p->d, Bc);
    if (error == cudaSuccess)
        error = launch(preprocess<T, WIDTH>, dim3(padded / threads.y, heads), threads, 0, stream, (const T *)t->O,
                       (const T *)t->dO, t->L, between.L2, between.D, between.dQ_sum, padded, *p);
    if (error == cudaSuccess) error = main_kernel(maps, between);
    if (error != cudaSuccess) return error;
    return launch(postprocess<T, WIDTH, COLS>, dim3(ceil_div(p->N_q, 16), heads), WIDTH, 0, stream,
                  (const float *)between.dQ_sum, (T *)t->dQ, padded, *p);
}

#endif
