/* The device itself: what kernels and host code rely on (simt_features), with exact expectations, which hold for the simulated
 * device and for a card alike; what the simulated device must refuse stands in simt_errors.cu.
 * Here: the numbers of threads and blocks, the sizes of grids, and barriers of a block. */
#include "device_test.h"

static void capture_on_device() {
    need_device();
    capture_stderr();
}
TestSuite(simt_features, .init = capture_on_device, .timeout = 60);

static const int BLOCK_SIZES[] = {1, 31, 32, 33, 64, 100, 256, 1024};

/* ---- indices: what thread number i of the grid saw; blocks x fastest, and threads within a block likewise -------- */

struct seen {
    dim3 thread, block, block_size, grid_size;
    unsigned times; /* this element was written */
};

__global__ static void indices(seen *out) {
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    seen *mine = out + (size_t)block * blockDim.x * blockDim.y * blockDim.z + thread;
    mine->thread = dim3(threadIdx.x, threadIdx.y, threadIdx.z);
    mine->block = dim3(blockIdx.x, blockIdx.y, blockIdx.z);
    mine->block_size = blockDim;
    mine->grid_size = gridDim;
    atomicAdd(&mine->times, 1u);
}

static bool same(dim3 a, dim3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

void check_indices(dim3 grid, dim3 block) {
    size_t threads = (size_t)block.x * block.y * block.z, count = (size_t)grid.x * grid.y * grid.z * threads;
    seen *out = filled_on_device<seen>(0, count);
    indices<<<grid, block>>>(out);
    auto got = take_back(out, count);
    for (size_t i = 0; i < count; i++) {
        unsigned thread = (unsigned)(i % threads), number = (unsigned)(i / threads);
        dim3 own(thread % block.x, thread / block.x % block.y, thread / block.x / block.y);
        dim3 of(number % grid.x, number / grid.x % grid.y, number / grid.x / grid.y);
        cr_assert_eq(got[i].times, 1, "element %zu was written %u times", i, got[i].times);
        cr_assert(same(got[i].thread, own) && same(got[i].block, of), "element %zu", i);
        cr_assert(same(got[i].block_size, block) && same(got[i].grid_size, grid), "element %zu", i);
    }
}

Test(simt_features, indices_of_1d_blocks) {
    for (int size : BLOCK_SIZES) check_indices(dim3(7), dim3(size));
}

Test(simt_features, indices_of_2d_blocks) {
    check_indices(dim3(5, 3), dim3(16, 16));
    check_indices(dim3(1, 4), dim3(1, 33));
    check_indices(dim3(3, 1), dim3(3, 5));
}

Test(simt_features, indices_of_3d_blocks_and_grids) {
    check_indices(dim3(2, 3, 4), dim3(5, 4, 3));
    check_indices(dim3(1, 1, 9), dim3(2, 2, 64));
    check_indices(dim3(4, 3, 2), dim3(1, 1, 31));
}

Test(simt_features, many_small_blocks) { check_indices(dim3(20011, 2), dim3(1)); }

/* ---- sizes of grids ---------------------------------------------------------------------------------------------- */

__global__ static void empty() {}

static void check_bad_launch(dim3 grid, dim3 block) {
    empty<<<grid, block>>>();
    cudaError_t expected = cudaErrorInvalidConfiguration;
    if (!simulated() && cudaPeekAtLastError() == cudaErrorInvalidValue) expected = cudaErrorInvalidValue; /* CUDA 13 */
    EXPECT_ERROR(cudaPeekAtLastError(), expected);
    EXPECT_ERROR(cudaGetLastError(), expected);
    EXPECT_OK(cudaDeviceSynchronize());
    check_indices(dim3(2), dim3(32));
}

Test(simt_features, launches_that_cannot_be) {
    dim3 one(1);
    check_bad_launch(one, dim3(0, 1, 1));
    check_bad_launch(one, dim3(1, 0, 1));
    check_bad_launch(one, dim3(1025, 1, 1));
    check_bad_launch(one, dim3(32, 33, 1));
    check_bad_launch(one, dim3(1, 1, 65));
    check_bad_launch(one, dim3(65536, 65536, 1)); /* 2^32 threads */
    check_bad_launch(dim3(0, 1, 1), one);
    check_bad_launch(dim3(1, 65536, 1), one);
    check_bad_launch(dim3(1, 1, 65536), one);
    check_bad_launch(dim3(0x80000000u, 1, 1), one);
}

Test(simt_features, launches_at_the_limits) {
    empty<<<dim3(1, 65535), 1>>>();
    EXPECT_OK(cudaGetLastError());
    empty<<<1, dim3(1, 1024)>>>();
    EXPECT_OK(cudaGetLastError());
    empty<<<3, dim3(4, 4, 64)>>>();
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaDeviceSynchronize());
}

Test(simt_features, part_of_a_grid) {
    need_simulated_device();
    seen got[8], *memory = filled_on_device<seen>(0, 8);
    simt_run_part(3, 2);
    indices<<<8, 1>>>(memory);
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_OK(cudaMemcpy(got, memory, sizeof got, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < 8; i++) cr_assert_eq(got[i].times, i >= 5, "block %u", i);
    for (unsigned part = 0; part < 2; part++) {
        simt_run_part(3, part);
        indices<<<8, 1>>>(memory);
    }
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_OK(cudaMemcpy(got, memory, sizeof got, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < 8; i++) cr_assert_eq(got[i].times, 1, "block %u", i);
    simt_run_part(0, 0);
    indices<<<8, 1>>>(nullptr);
    EXPECT_OK(cudaGetLastError());
    empty<<<dim3(8, 65536), 1>>>(); /* judged, if not run */
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidConfiguration);
    EXPECT_OK(cudaDeviceSynchronize());
}

/* ---- block-wide barriers ----------------------------------------------------------------------------------------- */

__global__ static void reverse(int *data) {
    __shared__ int copy[1024];
    int t = (int)threadIdx.x, n = (int)blockDim.x;
    copy[t] = data[t];
    __syncthreads();
    data[t] = copy[n - 1 - t];
}

Test(simt_features, syncthreads_reverses_a_block) {
    for (int n : BLOCK_SIZES) {
        int in[1024], expected[1024];
        for (int i = 0; i < n; i++) in[i] = expected[n - 1 - i] = scrambled(i);
        int *data = on_device(in, n);
        reverse<<<1, n>>>(data);
        expect_values(data, expected, n, "reversed");
    }
}

__global__ static void block_sum(const int *in, int *out) {
    __shared__ int sums[1024];
    int t = (int)threadIdx.x, n = (int)blockDim.x;
    sums[t] = in[t];
    __syncthreads();
    for (int stride = 512; stride > 0; stride /= 2) {
        if (t < stride && t + stride < n) sums[t] += sums[t + stride];
        __syncthreads();
    }
    if (t == 0) *out = sums[0];
}

Test(simt_features, syncthreads_tree_reduction) {
    for (int n : BLOCK_SIZES) {
        int in[1024], sum = 0;
        for (int i = 0; i < n; i++) sum += in[i] = scrambled(i + n);
        int *data = on_device(in, n), *out = filled_on_device<int>(0xff, 1);
        block_sum<<<1, n>>>(data, out);
        expect_values(out, &sum, 1, "sum");
        EXPECT_OK(cudaFree(data));
    }
}

__global__ static void rotate(int *data, int rounds) {
    __shared__ int ring[1024];
    int t = (int)threadIdx.x, n = (int)blockDim.x;
    ring[t] = data[t];
    for (int round = 0; round < rounds; round++) {
        __syncthreads();
        int next = ring[(t + 1) % n];
        __syncthreads();
        ring[t] = next;
    }
    data[t] = ring[t];
}

Test(simt_features, syncthreads_in_a_loop) {
    for (int n : BLOCK_SIZES) {
        int rounds = 37, in[1024], expected[1024];
        for (int i = 0; i < n; i++) in[i] = scrambled(i);
        for (int i = 0; i < n; i++) expected[i] = in[(i + rounds) % n];
        int *data = on_device(in, n);
        rotate<<<1, n>>>(data, rounds);
        expect_values(data, expected, n, "rotated");
    }
}

__global__ static void block_votes(const int *predicates, int *out) {
    int t = (int)threadIdx.x, predicate = predicates[t];
    out[3 * t] = __syncthreads_count(predicate);
    out[3 * t + 1] = __syncthreads_or(predicate) != 0;
    out[3 * t + 2] = __syncthreads_and(predicate) != 0;
}

Test(simt_features, syncthreads_count_or_and) {
    for (int n : BLOCK_SIZES) {
        for (int pattern = 0; pattern < 4; pattern++) { /* none, the last thread, some with odd values, all */
            int in[1024], expected[3 * 1024], count = 0;
            for (int i = 0; i < n; i++) {
                in[i] = pattern == 0 ? 0 : pattern == 1 ? i == n - 1 : pattern == 2 ? -4 * (i % 3 == 0) : 256;
                count += in[i] != 0;
            }
            for (int i = 0; i < n; i++)
                expected[3 * i] = count, expected[3 * i + 1] = count > 0, expected[3 * i + 2] = count == n;
            int *data = on_device(in, n), *out = filled_on_device<int>(0xff, 3 * n);
            block_votes<<<1, n>>>(data, out);
            expect_values(out, expected, 3 * n, "count, or, and");
            EXPECT_OK(cudaFree(data));
        }
    }
}
