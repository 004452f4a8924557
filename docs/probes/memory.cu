// How long does a load take from each level of the memory hierarchy, and how many bytes per second does a level deliver?
// For a card only; prints one JSON line.
//
//     nvcc -std=c++20 -O3 -arch=native -o memory docs/probes/memory.cu && ./memory

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

constexpr size_t KIB = 1024, MIB = 1024 * KIB;
constexpr int STRIDE = 64;      // bytes from one load of a chain to the next: another sector each time
constexpr int LOADS = 20000;    // in a timed chain
constexpr int THREADS = 512;    // in a block that streams
constexpr int BLOCKS_OF_SM = 4; // 64 warps

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "memory: %s\n", cudaGetErrorString(error));
    exit(1);
}

// One thread follows a chain of indices: each load needs the result of the load before.
template <bool PAST_L1>
static __global__ void follow_global(const unsigned *chain, int loads, unsigned *end, long long *cycles) {
    unsigned at = 0;
    for (int i = 0; i < loads; i++) at = PAST_L1 ? __ldcg(chain + at) : chain[at]; // fills the caches
    long long start = clock64();
    for (int i = 0; i < loads; i++) at = PAST_L1 ? __ldcg(chain + at) : chain[at];
    *cycles = clock64() - start;
    *end = at;
}

static __global__ void follow_shared(int loads, unsigned *end, long long *cycles) {
    __shared__ unsigned chain[4096];
    for (unsigned i = 0; i < 4096; i++) chain[i] = (i + 16) % 4096;
    unsigned at = 0;
    long long start = clock64();
    for (int i = 0; i < loads; i++) at = chain[at];
    *cycles = clock64() - start;
    *end = at;
}

// All threads together read `count` float4, `rounds` times. The sum keeps the loads alive.
static __global__ void stream(const float4 *data, size_t count, int rounds, float *out) {
    float sum = 0.0f;
    size_t threads = (size_t)gridDim.x * THREADS;
    for (int round = 0; round < rounds; round++)
        for (size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x; i < count; i += threads) {
            float4 x = __ldcg(data + i); // past the L1 cache
            sum += x.x + x.y + x.z + x.w;
        }
    if (sum == 1.0f) *out = sum;
}

template <bool PAST_L1> static double latency_of(size_t bytes, unsigned *end, long long *cycles) {
    size_t count = bytes / sizeof(unsigned), step = STRIDE / sizeof(unsigned), places = bytes / STRIDE;
    unsigned *host = (unsigned *)malloc(bytes), *chain;
    size_t *order = (size_t *)malloc(places * sizeof *order);
    if (host == nullptr || order == nullptr) exit(1);
    for (size_t i = 0; i < places; i++) order[i] = i;
    srand(1);
    for (size_t i = places - 1; i > 0; i--) { // a random order, so that no prefetcher helps
        size_t j = ((size_t)rand() * ((size_t)RAND_MAX + 1) + (size_t)rand()) % (i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (size_t i = 0; i < count; i++) host[i] = 0;
    for (size_t i = 0; i < places; i++) host[order[i] * step] = (unsigned)(order[(i + 1) % places] * step);
    check(cudaMalloc(&chain, bytes));
    check(cudaMemcpy(chain, host, bytes, cudaMemcpyHostToDevice));
    follow_global<PAST_L1><<<1, 1>>>(chain, LOADS, end, cycles);
    check(cudaGetLastError());
    long long taken = 0;
    check(cudaMemcpy(&taken, cycles, sizeof taken, cudaMemcpyDeviceToHost));
    check(cudaFree(chain));
    free(host);
    free(order);
    return (double)taken / LOADS;
}

template <class Launch> static double seconds_of(Launch launch) {
    cudaEvent_t start, stop;
    check(cudaEventCreate(&start));
    check(cudaEventCreate(&stop));
    launch(); // warms up
    check(cudaEventRecord(start));
    launch();
    check(cudaEventRecord(stop));
    check(cudaEventSynchronize(stop));
    check(cudaGetLastError());
    float ms = 0.0f;
    check(cudaEventElapsedTime(&ms, start, stop));
    return ms * 1e-3;
}

int main() {
    cudaDeviceProp card;
    check(cudaGetDeviceProperties(&card, 0));
    int blocks = card.multiProcessorCount * BLOCKS_OF_SM;
    unsigned *end;
    long long *cycles, taken = 0;
    float *out;
    check(cudaMalloc(&end, sizeof *end));
    check(cudaMalloc(&cycles, sizeof *cycles));
    check(cudaMalloc(&out, sizeof *out));

    follow_shared<<<1, 1>>>(LOADS, end, cycles);
    check(cudaMemcpy(&taken, cycles, sizeof taken, cudaMemcpyDeviceToHost));
    double shared = (double)taken / LOADS;
    // 256 MiB fit into no cache, and the 40000 loads of that chain all touch different sectors.
    double l1 = latency_of<false>(32 * KIB, end, cycles), l2 = latency_of<true>(MIB, end, cycles);
    double dram = latency_of<true>(256 * MIB, end, cycles);

    size_t small = 16 * MIB, large = 2048 * MIB;
    float4 *data;
    check(cudaMalloc(&data, large));
    check(cudaMemset(data, 0, large));
    double l2_rate = small * 200.0 / seconds_of([&] { stream<<<blocks, THREADS>>>(data, small / 16, 200, out); });
    double dram_rate = large * 4.0 / seconds_of([&] { stream<<<blocks, THREADS>>>(data, large / 16, 4, out); });
    printf("{\"device\": \"%s\", \"latency_cycles\": {\"shared\": %.1f, \"l1\": %.1f, \"l2\": %.1f, \"dram\": %.1f}, "
           "\"bytes_per_second\": {\"l2\": %.4g, \"dram\": %.4g}}\n",
           card.name, shared, l1, l2, dram, l2_rate, dram_rate);
    return 0;
}
