/* test_meter.c finds the lines by the comments that end them. */
#include "meter_kernels.h"

#include <cuda_pipeline.h>

#include "ptx.cuh"

/* ---- the transpose of a 512 x 512 matrix ------------------------------------------------------------------------- */

static constexpr int TILE = 32, ROWS = 8, BLOCKS = MATRIX / TILE;

__global__ void transpose_naive(const float *in, float *out) {
    int x = (int)blockIdx.x * TILE + (int)threadIdx.x, y = (int)blockIdx.y * TILE + (int)threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS) {
        float value = in[(y + j) * MATRIX + x]; // naive load
        out[x * MATRIX + y + j] = value;        // naive store
    }
}

template <int COLUMNS, bool BARRIER> __device__ static void transpose_by_tile(const float *in, float *out) {
    __shared__ float tile[TILE][COLUMNS];
    int x = (int)threadIdx.x, left = (int)blockIdx.x * TILE, top = (int)blockIdx.y * TILE;
    for (int y = (int)threadIdx.y; y < TILE; y += ROWS) tile[y][x] = in[(top + y) * MATRIX + left + x]; // tile store
    if (BARRIER) __syncthreads();
    for (int y = (int)threadIdx.y; y < TILE; y += ROWS) {
        float value = tile[x][y]; // tile load
        out[(left + y) * MATRIX + top + x] = value;
    }
}

__global__ void transpose_tile_32(const float *in, float *out) { transpose_by_tile<32, true>(in, out); }
__global__ void transpose_tile_33(const float *in, float *out) { transpose_by_tile<33, true>(in, out); }
__global__ void transpose_without_barrier(const float *in, float *out) { transpose_by_tile<33, false>(in, out); }

void run_transpose_of(enum transpose kind, const float *in, float *out) {
    dim3 grid(BLOCKS, BLOCKS), block(TILE, ROWS);
    switch (kind) {
    case TRANSPOSE_NAIVE: transpose_naive<<<grid, block>>>(in, out); break;
    case TRANSPOSE_TILE_32: transpose_tile_32<<<grid, block>>>(in, out); break;
    case TRANSPOSE_TILE_33: transpose_tile_33<<<grid, block>>>(in, out); break;
    case TRANSPOSE_WITHOUT_BARRIER: transpose_without_barrier<<<grid, block>>>(in, out); break;
    }
}

/* ---- banks ------------------------------------------------------------------------------------------------------- */

__global__ void shared_stride(int *out, int stride) {
    __shared__ int words[1024];
    int lane = (int)threadIdx.x;
    words[lane * stride] = lane; // stride store
    __syncwarp();
    out[lane] = words[lane * stride]; // stride load
}
void run_shared_stride(int *out, int stride) { shared_stride<<<1, 32>>>(out, stride); }

__global__ void shared_pick(const int *pick, int *out) {
    __shared__ int words[1024];
    int lane = (int)threadIdx.x, mine = pick[lane];
    for (int i = lane; i < 1024; i += 32) words[i] = i;
    __syncwarp();
    out[lane] = words[mine];
}
void run_shared_pick(const int *pick, int *out) { shared_pick<<<1, 32>>>(pick, out); }

__global__ void shared_wide(float *out, int stride) {
    __shared__ float2 pairs[256];
    int lane = (int)threadIdx.x;
    pairs[lane * stride] = make_float2((float)lane, 0.5f);
    __syncwarp();
    float2 pair = pairs[lane * stride];
    out[lane] = pair.x + pair.y;
}
void run_shared_wide(float *out, int stride) { shared_wide<<<1, 32>>>(out, stride); }

__global__ void shared_float2(const int *pick, float *out) {
    __shared__ float2 pairs[64];
    int lane = (int)threadIdx.x, mine = pick[lane];
    for (int i = lane; i < 64; i += 32) pairs[i] = make_float2((float)i, 1.0f);
    __syncwarp();
    float2 pair = pairs[mine];
    out[lane] = pair.x + pair.y;
}
void run_shared_float2(const int *pick, float *out) { shared_float2<<<1, 32>>>(pick, out); }

__global__ void shared_float4(const int *pick, float *out) {
    __shared__ float4 fours[560];
    int lane = (int)threadIdx.x, mine = pick[lane];
    for (int i = lane; i < 560; i += 32) fours[i] = make_float4((float)i, 0.0f, 0.0f, 1.0f);
    __syncwarp();
    float4 four = fours[mine];
    out[lane] = four.x + four.w;
}
void run_shared_float4(const int *pick, float *out) { shared_float4<<<1, 32>>>(pick, out); }

/* ---- sectors ----------------------------------------------------------------------------------------------------- */

__global__ void global_load(const int *in, int *out, int stride, int offset) {
    int lane = (int)threadIdx.x;
    out[lane] = in[lane * stride + offset];
}
void run_global_load(const int *in, int *out, int stride, int offset) {
    global_load<<<1, 32>>>(in, out, stride, offset);
}

__global__ void global_store(const int *in, int *out, int stride, int offset) {
    int lane = (int)threadIdx.x;
    out[lane * stride + offset] = in[lane];
}
void run_global_store(const int *in, int *out, int stride, int offset) {
    global_store<<<1, 32>>>(in, out, stride, offset);
}

__global__ void global_float4(const float4 *in, float4 *out) { out[threadIdx.x] = in[threadIdx.x]; }
void run_global_float4(const float *in, float *out) { global_float4<<<1, 32>>>((const float4 *)in, (float4 *)out); }

__global__ void global_float4_pick(const int *pick, const float4 *in, float *out) {
    int lane = (int)threadIdx.x, mine = pick[lane];
    float4 four = in[mine]; // picked
    out[lane] = four.x + four.w;
}
void run_global_float4_pick(const int *pick, const float *in, float *out) {
    global_float4_pick<<<1, 32>>>(pick, (const float4 *)in, out);
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

__global__ void atomics_on(int *global, bool same) {
    __shared__ int bins[32];
    int lane = (int)threadIdx.x;
    bins[lane] = 0;
    __syncwarp();
    atomicAdd(&bins[same ? 0 : lane], lane);
    atomicAdd(&global[same ? 0 : lane], lane);
}
// A warp adds four floats a lane to 128 floats that lie side by side.
__global__ void vector_atomics(float *sums) {
    reduce_add4(sums + 4 * threadIdx.x, make_float4(1.0f, 2.0f, 3.0f, 4.0f));
}
void run_vector_atomics(float *sums) { vector_atomics<<<2, 32>>>(sums); }

void run_atomics_on(int *global, int same) { atomics_on<<<1, 32>>>(global, same != 0); }

__global__ void events(int *out) {
    int sum = (int)threadIdx.x;
    for (int k = 0; k < 3; k++) __syncthreads(); // event barrier
    for (int bit = 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bit); // event shuffle
    out[blockIdx.x * 64 + threadIdx.x] = sum;
}
void run_events(int *out) { events<<<2, 64>>>(out); }

__global__ void divergence(const int *in, int *out) {
    int t = (int)threadIdx.x, value = in[t]; // whole
    if (t % 2 == 0) {
        out[t] = value; // evens
    } else {
        out[t] = -value; // odds
    }
    for (int k = 1; k <= t % 4; k++) out[64 * k + t] = k; // loop
    out[256 + t] = value;                                 // together again
}
void run_divergence(const int *in, int *out) { divergence<<<1, 64>>>(in, out); }

__global__ void ragged_rows(const int *in, int *out, int rows, int columns) {
    int lane = (int)threadIdx.x;
    for (int r = 0; r < rows; r++)
        for (int c = lane; c < columns; c += 32) out[64 * r + c] = in[64 * r + c]; // ragged
    out[64 * rows + lane] = lane;                                                  // after the rows
}
void run_ragged_rows(const int *in, int *out, int rows, int columns) { ragged_rows<<<1, 32>>>(in, out, rows, columns); }

__global__ void trailing_branch(const int *in, int *out, int rounds) {
    int lane = (int)threadIdx.x, sum = 0;
    for (int k = 0; k < rounds; k++) {
        sum += in[32 * k + lane];    // loop body
        if (lane == 0) out[k] = sum; // trailing branch
    }
    out[32 + lane] = sum; // after the loop
}
void run_trailing_branch(const int *in, int *out, int rounds) { trailing_branch<<<1, 32>>>(in, out, rounds); }

__device__ static void leave_16(int *values) { (void)values; }
__device__ static void reverse_16(int *values) {
    for (int i = 0; i < 8; i++) {
        int kept = values[i];
        values[i] = values[15 - i];
        values[15 - i] = kept;
    }
}

__global__ void local_array(const int *in, int *out) {
    int values[16], t = (int)threadIdx.x;
    for (int i = 0; i < 16; i++) values[i] = in[i] + t;
    (t >= 0 ? reverse_16 : leave_16)(values); /* a call that is not inlined: the array has an address */
    out[t] = values[t % 16];
}
void run_local_array(const int *in, int *out) { local_array<<<1, 64>>>(in, out); }

__global__ void async(const float *in, float *out) {
    __shared__ __align__(16) float fours[128];
    __shared__ float ones[32];
    int lane = (int)threadIdx.x;
    __pipeline_memcpy_async(&fours[4 * lane], &in[4 * lane], 16); // async 16
    __pipeline_memcpy_async(&ones[lane], &in[lane], 4);           // async 4
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[lane] = fours[4 * lane] + ones[lane];
}
void run_async(const float *in, float *out) { async<<<1, 32>>>(in, out); }

__global__ void async_overlapped(const float *in, float *out, int at_once) {
    __shared__ float ones[32];
    int lane = (int)threadIdx.x;
    __pipeline_memcpy_async(&ones[lane], &in[lane], 4);
    __pipeline_commit();
    if (at_once) __pipeline_wait_prior(0);
    out[lane] = in[32 + lane];
    __pipeline_wait_prior(0);
    out[32 + lane] = ones[lane];
}
void run_async_overlapped(const float *in, float *out, int at_once) { async_overlapped<<<1, 32>>>(in, out, at_once); }

__global__ void async_rows(const float *in, float *out, int stride) {
    __shared__ __align__(128) float tile[144];
    int lane = (int)threadIdx.x, row = lane / 16, col = lane % 16 * 4;
    __pipeline_memcpy_async(&tile[row * stride + col], &in[row * 64 + col], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[lane] = tile[row * stride + col];
}
void run_async_rows(const float *in, float *out, int stride) { async_rows<<<1, 32>>>(in, out, stride); }

__global__ void async_words(const float *in, float *out, int shift) {
    __shared__ __align__(128) float tile[64];
    int lane = (int)threadIdx.x;
    __pipeline_memcpy_async(&tile[shift + lane], &in[lane], 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[lane] = tile[shift + lane];
}
void run_async_words(const float *in, float *out, int shift) { async_words<<<1, 32>>>(in, out, shift); }

template <int BYTES> __global__ void async_strided(const char *in, char *out, int stride) {
    extern __shared__ __align__(128) char rows[];
    int lane = (int)threadIdx.x;
    __pipeline_memcpy_async(rows + lane * stride, in + lane * BYTES, BYTES);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[lane] = rows[lane * stride];
}
void run_async_strided(const char *in, char *out, int bytes, int stride) {
    auto kernel = bytes == 4 ? async_strided<4> : bytes == 8 ? async_strided<8> : async_strided<16>;
    kernel<<<1, 32, 32 * 132>>>(in, out, stride);
}

__global__ void load_or_zeros(const float4 *in, float4 *out, int count) {
    int lane = (int)threadIdx.x;
    float4 zeros = {};
    out[lane] = lane < count ? in[lane] : zeros;
}
void run_load_or_zeros(const float *in, float *out, int count) {
    load_or_zeros<<<1, 32>>>((const float4 *)in, (float4 *)out, count);
}

__global__ void async_words_or_zeros(const float *in, float *out, int count) {
    __shared__ float tile[32];
    int lane = (int)threadIdx.x;
    __pipeline_memcpy_async(&tile[lane], &in[lane], 4, lane < count ? 0 : 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[lane] = tile[lane];
}
void run_async_words_or_zeros(const float *in, float *out, int count) { async_words_or_zeros<<<1, 32>>>(in, out, count); }

__global__ void add(const int *in, int *out) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    out[i] += in[i];
}
void run_add(const int *in, int *out, int blocks) { add<<<blocks, 64>>>(in, out); }

__global__ void warp_of_ten(const int *in, int *out) { out[threadIdx.x] = in[threadIdx.x]; }
void run_warp_of_ten(const int *in, int *out) { warp_of_ten<<<1, 10>>>(in, out); }
