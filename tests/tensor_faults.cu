// Planted faults with tensor-core instructions, and their correct twins: as those of race_faults.cu. For cards of
// compute_capability = 80 and later.
#include "faults.h"

#include <cuda_pipeline.h>
#include <mma.h>

#include "ptx.cuh"

using namespace nvcuda;

enum { LANES = 32, ROW = 8 }; // elements of 16 bits in a row of a matrix

// Numbers of 15 bits, so that pairs of them are positive ints.
__device__ static uint16_t element(const int *in, int i) { return (uint16_t)(in[i] & 0x7fff); }
// What lane i's register of an 8 x 8 matrix holds whose elements are in[first], in[first + 1] ...
static int pair(const int *in, int first, int i) {
    first += i / 4 * ROW + i % 4 * 2;
    return (in[first] & 0x7fff) | (in[first + 1] & 0x7fff) << 16;
}
// The lanes fill 8 rows, two elements each.
__device__ static void fill(uint16_t *tile, const int *in) {
    int at = threadIdx.x % LANES * 2;
    *(uint32_t *)(tile + at) = element(in, at) | (uint32_t)element(in, at + 1) << 16;
}

// The second row of the matrix begins 2 bytes too far.
template <bool CORRECT> __global__ void ldmatrix_misaligned_row(const int *in, int *out) {
    __shared__ uint4 tile[ROW + 1];
    uint16_t *elements = (uint16_t *)tile;
    int lane = threadIdx.x;
    fill(elements, in);
    if (lane < 4) ((uint32_t *)(tile + ROW))[lane] = 0;
    __syncwarp();
    uint32_t matrix[1];
    ldmatrix_x1(matrix, elements + lane % ROW * ROW + (!CORRECT && lane == 1)); // here
    out[lane] = (int)matrix[0];
}
FAULT(ldmatrix_misaligned_row, cudaErrorMisalignedAddress, "does not begin at a multiple of 16 bytes",
      FIRST(LANES, pair(in, 0, i)), ldmatrix_misaligned_row<CORRECT><<<1, LANES>>>(in, out))

// One warp fills the tile, both read it.
template <bool CORRECT> __global__ void ldmatrix_before_barrier(const int *in, int *out) {
    __shared__ uint4 tile[ROW];
    int t = threadIdx.x, lane = t % LANES;
    if (t < LANES) fill((uint16_t *)tile, in);
    if (CORRECT) __syncthreads();
    uint32_t matrix[1];
    ldmatrix_x1(matrix, tile + lane % ROW); // here
    out[t] = (int)matrix[0];
}
FAULT(ldmatrix_before_barrier, cudaErrorLaunchFailure, "race on tile[", FIRST(2 * LANES, pair(in, 0, i % LANES)),
      ldmatrix_before_barrier<CORRECT><<<1, 2 * LANES>>>(in, out))

// A lane's row was written by another lane, two bytes at a time.
template <bool CORRECT> __global__ void ldmatrix_of_lanes_halves(const int *in, int *out) {
    __shared__ __align__(16) uint16_t tile[ROW * ROW];
    int lane = threadIdx.x;
    for (int i = lane; i < ROW * ROW; i += LANES) tile[ROW * ROW - 1 - i] = element(in, ROW * ROW - 1 - i); // here
    if (CORRECT) __syncwarp();
    uint32_t matrix[1];
    ldmatrix_x1(matrix, tile + lane % ROW * ROW); // here
    out[lane] = (int)matrix[0];
}
FAULT(ldmatrix_of_lanes_halves, cudaErrorLaunchFailure, "race on tile[", FIRST(LANES, pair(in, 0, i)),
      ldmatrix_of_lanes_halves<CORRECT><<<1, LANES>>>(in, out))

// One warp overwrites what the other one may still have to load.
template <bool CORRECT> __global__ void ldmatrix_then_overwrite(const int *in, int *out) {
    __shared__ uint4 tile[ROW];
    int t = threadIdx.x, lane = t % LANES;
    if (t < LANES) fill((uint16_t *)tile, in);
    __syncthreads();
    uint32_t matrix[1];
    ldmatrix_x1(matrix, tile + lane % ROW); // here
    if (CORRECT) __syncthreads();
    if (t < ROW) tile[t] = make_uint4(0, 0, 0, 0); // here
    out[t] = (int)matrix[0];
}
FAULT(ldmatrix_then_overwrite, cudaErrorLaunchFailure, "race on tile[", FIRST(2 * LANES, pair(in, 0, i % LANES)),
      ldmatrix_then_overwrite<CORRECT><<<1, 2 * LANES>>>(in, out))

// The last row was never filled.
template <bool CORRECT> __global__ void ldmatrix_of_unwritten_row(const int *in, int *out) {
    __shared__ uint4 tile[2 * ROW];
    int lane = threadIdx.x;
    fill((uint16_t *)tile, in);
    if (lane < (CORRECT ? ROW : ROW - 1)) tile[ROW + lane] = make_uint4(lane, 0, 0, 0);
    __syncwarp();
    uint32_t matrix[2];
    ldmatrix_x2(matrix, tile + lane % 16); // here
    out[lane] = (int)(matrix[0] + matrix[1]);
}
FAULT(ldmatrix_of_unwritten_row, cudaErrorLaunchFailure, "which nobody has written",
      FIRST(LANES, pair(in, 0, i) + (i % 4 == 0 ? i / 4 : 0)), ldmatrix_of_unwritten_row<CORRECT><<<1, LANES>>>(in, out))

// The copy into the tile is still under way.
template <bool CORRECT> __global__ void ldmatrix_under_copy(const int *in, int *out) {
    __shared__ uint4 tile[ROW];
    int lane = threadIdx.x;
    __pipeline_memcpy_async((int *)tile + lane, in + lane, 4); // here
    __pipeline_commit();
    if (CORRECT) __pipeline_wait_prior(0);
    __syncwarp();
    uint32_t matrix[1];
    ldmatrix_x1(matrix, tile + lane % ROW); // here
    out[lane] = (int)matrix[0];
}
FAULT(ldmatrix_under_copy, cudaErrorLaunchFailure, "is under way", FIRST(LANES, in[i]),
      ldmatrix_under_copy<CORRECT><<<1, LANES>>>(in, out))

// Four matrices are named where there are two.
template <bool CORRECT> __global__ void ldmatrix_out_of_bounds(const int *in, int *out) {
    __shared__ uint4 tile[2 * ROW];
    int lane = threadIdx.x;
    fill((uint16_t *)tile, in);
    fill((uint16_t *)(tile + ROW), in);
    __syncwarp();
    uint32_t matrix[4];
    ldmatrix_x4(matrix, tile + (CORRECT ? lane % 16 : lane)); // here
    out[lane] = (int)matrix[3];
}
FAULT(ldmatrix_out_of_bounds, cudaErrorIllegalAddress, "past the end of the __shared__ array tile[16]", FIRST(LANES, pair(in, 0, i)),
      ldmatrix_out_of_bounds<CORRECT><<<1, LANES>>>(in, out))

// The rows lie in global memory.
template <bool CORRECT> __global__ void ldmatrix_from_global(const int *in, int *out) {
    __shared__ uint4 tile[ROW];
    int lane = threadIdx.x;
    ((int *)tile)[lane] = in[lane];
    __syncwarp();
    uint32_t matrix[1];
    ldmatrix_x1(matrix, (CORRECT ? tile : (const uint4 *)in) + lane % ROW); // here
    out[lane] = (int)matrix[0];
}
FAULT(ldmatrix_from_global, cudaErrorIllegalAddress, "is not in shared memory", FIRST(LANES, in[i]),
      ldmatrix_from_global<CORRECT><<<1, LANES>>>(in, out))

// A lane has returned.
template <bool CORRECT> __global__ void ldmatrix_without_a_lane(const int *in, int *out) {
    __shared__ uint4 tile[ROW];
    int lane = threadIdx.x;
    ((int *)tile)[lane] = in[lane];
    __syncwarp();
    if (!CORRECT && lane == 31) return;
    uint32_t matrix[1];
    ldmatrix_x1(matrix, tile + lane % ROW); // here
    out[lane] = (int)matrix[0];
}
FAULT(ldmatrix_without_a_lane, cudaErrorLaunchFailure, "all 32 lanes must", FIRST(LANES, in[i]),
      ldmatrix_without_a_lane<CORRECT><<<1, LANES>>>(in, out))

// A product of ones: every element of C is 16.
__device__ static float product() {
    float C[4] = {};
    uint32_t A[4] = {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
    mma_m16n8k16<__half>(C, A, A[0], A[1]);
    return C[3];
}

// A block that is not a multiple of 32 threads.
template <bool CORRECT> __global__ void mma_of_half_a_warp(const int *in, int *out) {
    float C[4] = {};
    uint32_t A[4] = {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
    mma_m16n8k16<__half>(C, A, A[0], A[1]); // here
    if (threadIdx.x < 16) out[threadIdx.x] = (int)C[0] + in[threadIdx.x];
}
FAULT(mma_of_half_a_warp, cudaErrorLaunchFailure, "all 32 lanes must", FIRST(16, 16 + in[i]),
      mma_of_half_a_warp<CORRECT><<<1, CORRECT ? 32 : 16>>>(in, out))

// A branch that some lanes do not take.
template <bool CORRECT> __global__ void mma_in_branch(const int *in, int *out) {
    int lane = threadIdx.x;
    float C[4] = {};
    uint32_t A[4] = {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
    if (CORRECT || in[lane] > 0) mma_m16n8k16<__half>(C, A, A[0], A[1]); // here
    __syncwarp();
    out[lane] = (int)C[0];
}
FAULT(mma_in_branch, cudaErrorLaunchFailure, "divergent barrier", FIRST(LANES, 16),
      mma_in_branch<CORRECT><<<1, LANES>>>(in, out))

// mma.sync orders no accesses to memory.
template <bool CORRECT> __global__ void mma_orders_nothing(const int *in, int *out) {
    __shared__ uint4 tile[ROW];
    int lane = threadIdx.x;
    ((int *)tile)[lane] = in[lane]; // here
    float sum = product();
    if (CORRECT) __syncwarp();
    uint32_t matrix[1];
    ldmatrix_x1(matrix, tile + lane % ROW); // here
    out[lane] = (int)matrix[0] + (int)sum;
}
FAULT(mma_orders_nothing, cudaErrorLaunchFailure, "race on tile[", FIRST(LANES, in[i] + 16),
      mma_orders_nothing<CORRECT><<<1, LANES>>>(in, out))

// stmatrix needs compute capability 9.0: its kernels are for the simulated device and for such cards.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define STMATRIX stmatrix_x4
#else
#define STMATRIX(row, matrix) ((void)(row), (void)(matrix))
#endif

// A lane reads a row that other lanes' registers and one lane's address have made.
template <bool CORRECT> __global__ void stmatrix_then_read(const int *in, int *out) {
    __shared__ uint4 tile[4 * ROW];
    int lane = threadIdx.x;
    uint32_t matrix[4] = {(uint32_t)in[lane], 0, 0, 0};
    STMATRIX(tile + lane, matrix); // here
    if (CORRECT) __syncwarp();
    out[lane] = ((int *)tile)[lane]; // here
}
FAULT(stmatrix_then_read, cudaErrorLaunchFailure, "race on tile[", FIRST(LANES, in[i]),
      stmatrix_then_read<CORRECT><<<1, LANES>>>(in, out))

// Two rows of the matrices share an address.
template <bool CORRECT> __global__ void stmatrix_rows_collide(const int *in, int *out) {
    __shared__ uint4 tile[4 * ROW];
    int lane = threadIdx.x;
    uint32_t matrix[4] = {(uint32_t)in[lane], 0, 0, 0};
    STMATRIX(tile + (CORRECT ? lane : lane % 31), matrix); // here
    __syncwarp();
    out[lane] = ((int *)tile)[lane];
}
FAULT(stmatrix_rows_collide, cudaErrorLaunchFailure, "race on tile[", FIRST(LANES, in[i]),
      stmatrix_rows_collide<CORRECT><<<1, LANES>>>(in, out))

template <bool CORRECT> __global__ void stmatrix_out_of_bounds(const int *in, int *out) {
    __shared__ uint4 tile[4 * ROW];
    int lane = threadIdx.x;
    uint32_t matrix[4] = {(uint32_t)in[lane], 0, 0, 0};
    STMATRIX(tile + lane + !CORRECT, matrix); // here
    __syncwarp();
    out[lane] = ((int *)tile)[lane];
}
FAULT(stmatrix_out_of_bounds, cudaErrorIllegalAddress, "write of 16 bytes out of bounds: 1 element past the end of the __shared__ array tile[32]", FIRST(LANES, in[i]),
      stmatrix_out_of_bounds<CORRECT><<<1, LANES>>>(in, out))

// ---- WMMA: a matrix of ones times a matrix of ones

__device__ static void wmma_ones(float *sums, const __half *ones, int stride) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    wmma::fill_fragment(c, 0.0f);
    wmma::load_matrix_sync(a, ones, stride);
    wmma::load_matrix_sync(b, ones, stride);
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(sums, c, 16, wmma::mem_row_major);
}

template <bool CORRECT> __global__ void wmma_load_before_stores(const int *in, int *out) {
    __shared__ __align__(32) __half ones[256];
    __shared__ __align__(32) float sums[256];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += LANES) ones[i] = (__half)1.0f; // here
    if (CORRECT) __syncwarp();
    wmma_ones(sums, ones, 16);
    __syncwarp();
    out[lane] = in[lane] + (int)sums[lane * 8];
}
FAULT(wmma_load_before_stores, cudaErrorLaunchFailure, "race on ones[", FIRST(LANES, in[i] + 16),
      wmma_load_before_stores<CORRECT><<<1, LANES>>>(in, out))

template <bool CORRECT> __global__ void wmma_store_then_read(const int *in, int *out) {
    __shared__ __align__(32) __half ones[256];
    __shared__ __align__(32) float sums[256];
    int lane = threadIdx.x;
    for (int i = lane; i < 256; i += LANES) ones[i] = (__half)1.0f;
    __syncwarp();
    wmma_ones(sums, ones, 16);
    if (CORRECT) __syncwarp();
    out[lane] = in[lane] + (int)sums[lane * 8]; // here
}
FAULT(wmma_store_then_read, cudaErrorLaunchFailure, "race on sums[", FIRST(LANES, in[i] + 16),
      wmma_store_then_read<CORRECT><<<1, LANES>>>(in, out))

template <bool CORRECT> __global__ void wmma_misaligned(const int *in, int *out) {
    __shared__ __align__(32) __half ones[264];
    __shared__ __align__(32) float sums[256];
    int lane = threadIdx.x;
    for (int i = lane; i < 264; i += LANES) ones[i] = (__half)1.0f;
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::load_matrix_sync(a, ones + (CORRECT ? 0 : 8), 16); // here
    wmma_ones(sums, ones, 16);
    __syncwarp();
    out[lane] = in[lane] + (int)sums[lane * 8];
}
FAULT(wmma_misaligned, cudaErrorMisalignedAddress, "must begin at a multiple of 32 bytes", FIRST(LANES, in[i] + 16),
      wmma_misaligned<CORRECT><<<1, LANES>>>(in, out))

template <bool CORRECT> __global__ void wmma_odd_stride(const int *in, int *out) {
    __shared__ __align__(32) __half ones[16 * 24];
    __shared__ __align__(32) float sums[256];
    int lane = threadIdx.x;
    for (int i = lane; i < 16 * 24; i += LANES) ones[i] = (__half)1.0f;
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::load_matrix_sync(a, ones, CORRECT ? 24 : 18); // here
    wmma_ones(sums, ones, 24);
    __syncwarp();
    out[lane] = in[lane] + (int)sums[lane * 8];
}
FAULT(wmma_odd_stride, cudaErrorMisalignedAddress, "must be a multiple of 16 bytes apart", FIRST(LANES, in[i] + 16),
      wmma_odd_stride<CORRECT><<<1, LANES>>>(in, out))

// ---- correct, though it looks suspicious

// Rows that several lanes name, and names of lanes that ldmatrix does not read.
__global__ static void ldmatrix_shared_rows(const int *in, int *out) {
    __shared__ uint4 tile[ROW];
    int lane = threadIdx.x;
    ((int *)tile)[lane] = in[lane];
    __syncwarp();
    uint32_t matrix[2];
    ldmatrix_x2(matrix, lane < 16 ? (const void *)(tile + lane % 2) : (const void *)1);
    out[lane] = (int)matrix[1];
}
PATTERN(ldmatrix_shared_rows, FIRST(LANES, in[i / 4 % 2 * 4 + i % 4]), ldmatrix_shared_rows<<<1, LANES>>>(in, out))

// All rows are in the registers before any lane goes on: the next tile may take their place.
__global__ static void ldmatrix_then_reuse(const int *in, int *out) {
    __shared__ uint4 tile[ROW];
    int lane = threadIdx.x, sum = 0;
    for (int round = 0; round < 4; round++) {
        ((int *)tile)[31 - lane] = in[round * LANES + 31 - lane];
        __syncwarp();
        uint32_t matrix[1];
        ldmatrix_x1(matrix, tile + lane % ROW);
        sum += (int)matrix[0];
    }
    out[lane] = sum;
}
PATTERN(ldmatrix_then_reuse, FIRST(LANES, in[i] + in[LANES + i] + in[2 * LANES + i] + in[3 * LANES + i]),
        ldmatrix_then_reuse<<<1, LANES>>>(in, out))

// Warps without lanes in common run their own instructions, in their own branches.
__global__ static void mma_by_one_warp(const int *in, int *out) {
    int t = threadIdx.x;
    float sum = 0.0f;
    if (t / LANES == 1) sum = product();
    out[t] = in[t] + (int)sum;
}
PATTERN(mma_by_one_warp, FIRST(3 * LANES, in[i] + (i / LANES == 1 ? 16 : 0)), mma_by_one_warp<<<1, 3 * LANES>>>(in, out))
