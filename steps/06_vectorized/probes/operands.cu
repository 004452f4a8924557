// How long does a multiply-add take whose operands come from the register file, and how long one that finds some of them
// still at hand from the multiply-add before? For a card only; prints one JSON line.

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

constexpr int SUMS = 32, TURNS = 16, ROUNDS = 400;
constexpr int THREADS = 256; // two warps for each of an SM's four schedulers, as in chapters 06 and 09
constexpr double FFMA_OF_A_SCHEDULER = (double)ROUNDS * TURNS * SUMS * THREADS / 32 / 4;

// KEPT: how many of a multiply-add's factors are those of the one before. 32 sums are far more than it takes to hide how
// long one multiply-add waits for another.
template <int KEPT> static __global__ void multiply_adds(const float *factors, float *out, long long *cycles) {
    float sum[SUMS] = {}, a[SUMS], b[SUMS];
    for (int i = 0; i < SUMS; i++) {
        a[i] = factors[i + threadIdx.x];
        b[i] = factors[SUMS + i + threadIdx.x];
    }
    __syncthreads();
    long long start = clock64();
#pragma unroll 1
    for (int round = 0; round < ROUNDS; round++)
#pragma unroll
        for (int turn = 0; turn < TURNS; turn++)
#pragma unroll
            for (int i = 0; i < SUMS; i++) sum[i] = __fmaf_rn(a[KEPT > 0 ? 0 : i], b[KEPT > 1 ? 0 : i], sum[i]);
    __syncthreads();
    long long stop = clock64();
    float total = 0.0f; // so that every sum is needed
    for (int i = 0; i < SUMS; i++) total += sum[i] + a[i] + b[i];
    out[blockIdx.x * THREADS + threadIdx.x] = total;
    if (threadIdx.x == 0) cycles[blockIdx.x] = stop - start;
}

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "operands: %s\n", cudaGetErrorString(error));
    exit(1);
}

template <int KEPT> static double cycles_of_one(const float *factors, float *out, long long *cycles, int blocks) {
    long long first = 0;
    for (int run = 0; run < 2; run++) // the first one warms up
        multiply_adds<KEPT><<<blocks, THREADS>>>(factors, out, cycles);
    check(cudaGetLastError());
    check(cudaMemcpy(&first, cycles, sizeof first, cudaMemcpyDeviceToHost));
    return first / FFMA_OF_A_SCHEDULER;
}

int main() {
    cudaDeviceProp card;
    check(cudaGetDeviceProperties(&card, 0));
    int blocks = card.multiProcessorCount;
    float *factors, *out;
    long long *cycles;
    check(cudaMalloc(&factors, (2 * SUMS + THREADS) * sizeof *factors));
    check(cudaMalloc(&out, blocks * THREADS * sizeof *out));
    check(cudaMalloc(&cycles, blocks * sizeof *cycles));
    check(cudaMemset(factors, 0, (2 * SUMS + THREADS) * sizeof *factors));
    double none = cycles_of_one<0>(factors, out, cycles, blocks);
    double one = cycles_of_one<1>(factors, out, cycles, blocks);
    double both = cycles_of_one<2>(factors, out, cycles, blocks);
    printf("{\"device\": \"%s\", \"cycles\": {\"none\": %.3f, \"one\": %.3f, \"both\": %.3f}}\n", card.name, none, one,
           both);
    return 0;
}
