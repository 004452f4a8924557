/* Kernels whose accesses lie many launches, barriers or blocks apart. */
#include "stamp_kernels.h"

#include <cooperative_groups.h>

__global__ void store(int *data) { data[threadIdx.x] = (int)threadIdx.x; }
__global__ void load(int *data, int *out) { out[threadIdx.x] = data[blockDim.x - 1 - threadIdx.x]; }
__global__ void nothing() {}

void run_store(int *data, int threads) { store<<<1, threads>>>(data); }
void run_load(int *data, int *out, int threads) { load<<<1, threads>>>(data, out); }
void run_nothing(void) { nothing<<<1, 1>>>(); }

/* Thread 0 stores, thread 63 loads; so many barriers lie between, then one or none before the next store. */
__global__ void far_apart(int *out, int barriers, bool ordered) {
    __shared__ int word;
    if (threadIdx.x == 0) word = 5;
    for (int i = 0; i < barriers; i++) __syncthreads();
    if (threadIdx.x == 63) *out = word;
    if (ordered) __syncthreads();
    if (threadIdx.x == 0) word = 6;
}
__global__ void far_apart_global(int *out, int barriers) {
    if (threadIdx.x == 0) out[1] = 5;
    for (int i = 0; i < barriers; i++) __syncthreads();
    if (threadIdx.x == 63) out[0] = out[1];
}

void run_far_apart(int *out, int barriers, int ordered) { far_apart<<<1, 64>>>(out, barriers, ordered != 0); }
void run_far_apart_global(int *out, int barriers) { far_apart_global<<<1, 64>>>(out, barriers); }

/* Every second block the other way round; a word is that of every 15th block. */
__global__ void alternating(int *out) {
    __shared__ int words[15];
    int &word = words[blockIdx.x % 15];
    unsigned writer = blockIdx.x % 2 * 40, reader = 40 - writer;
    if (threadIdx.x == writer) word = (int)blockIdx.x;
    __syncthreads();
    if (threadIdx.x == reader) out[blockIdx.x] = word;
}

void run_alternating(int *out, int blocks) { alternating<<<blocks, 64>>>(out); }

__global__ void every(int *out, unsigned distance) {
    if (blockIdx.x % distance == 0) *out = (int)blockIdx.x;
}

void run_every(int *out, unsigned distance, unsigned blocks) { every<<<blocks, 1>>>(out, distance); }
void run_grid(const unsigned grid[3]) { nothing<<<dim3(grid[0], grid[1], grid[2]), 1>>>(); }

__global__ void pass_on(int *data, int rounds) {
    for (int i = 0; i < rounds; i++) {
        data[8 * i + threadIdx.x + 4 * blockIdx.x] = i;
        cooperative_groups::this_grid().sync();
        if (data[8 * i + 7 - threadIdx.x - 4 * blockIdx.x] != i) __trap();
    }
}

cudaError_t run_grid_barriers(int *data, int rounds) {
    void *arguments[] = {&data, &rounds};
    return cudaLaunchCooperativeKernel(pass_on, dim3(2), dim3(4), arguments, 0, 0);
}
