// How fast are the units of a card when nothing else limits them? FMAs, mma.sync with and without exponentials, a copy and
// additions in device memory; each with the clock of the SMs while it runs. For a card only; prints one JSON line.
// compute_capability = 80
//
//     nvcc -std=c++20 -O3 -arch=native -o rates docs/probes/rates.cu && ./rates

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

constexpr int THREADS = 256; // two warps for each of an SM's four schedulers, as in the last rungs of 06, 09, 10 and 11
constexpr int SUMS = 32;     // of a thread that multiplies: many more than it takes to hide the latency of an FMA
constexpr int TILES = 8;     // of C that a warp of the mma loop holds, for the same reason
constexpr int GROUP = 64;    // mma.sync of a warp, after which the exponentials come
constexpr int RUNS = 20;     // of which the quickest counts
constexpr size_t COPIED = 1 << 30,
                 ADDED = 1 << 24; // bytes: the second fit into the L2 cache, as dQ of a few heads does

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "rates: %s\n", cudaGetErrorString(error));
    exit(1);
}

struct moment {
    long long cycles, ns;
};

static __device__ moment now() {
    moment m;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(m.ns));
    m.cycles = clock64();
    return m;
}

// The span of the block's slowest warp; `taken` has one entry per block.
static __device__ void finish(moment start, moment *taken) {
    __syncthreads();
    moment end = now();
    if (threadIdx.x == 0) taken[blockIdx.x] = {end.cycles - start.cycles, end.ns - start.ns};
}

// A number of unit variance, another one for each thread and each `which`. Zeros would not do: a unit that multiplies them may
// need less power than in a kernel and keep a higher clock. Sums of these numbers' products stay far from the largest float.
static __device__ float drawn(uint32_t which) {
    uint32_t bits = (which * THREADS + threadIdx.x + 1) * 0x9E3779B9u;
    bits = (bits ^ bits >> 16) * 0x85EBCA6Bu;
    bits = (bits ^ bits >> 13) * 0xC2B2AE35u;
    return ((bits >> 8) * 0x1p-23f - 1.0f) * 1.7320508f; // uniform between -sqrt(3) and sqrt(3)
}

// Two of them, each cut to bf16.
static __device__ uint32_t drawn_pair(uint32_t which) {
    return __float_as_uint(drawn(2 * which)) >> 16 | (__float_as_uint(drawn(2 * which + 1)) & 0xFFFF0000u);
}

// FMAs that share one factor with the FMA before, as those of a register tile do.
static __global__ void multiply_adds(int rounds, float *out, moment *taken) {
    float sum[SUMS] = {}, b[SUMS];
    for (int i = 0; i < SUMS; i++) b[i] = drawn(i);
    float a = drawn(SUMS);
    moment start = now();
#pragma unroll 1
    for (int round = 0; round < rounds; round++)
#pragma unroll
        for (int i = 0; i < SUMS; i++) sum[i] = __fmaf_rn(a, b[i], sum[i]);
    finish(start, taken);
    float total = 0.0f;
    for (float x : sum) total += x;
    out[blockIdx.x * THREADS + threadIdx.x] = total;
}

// GROUP mma.sync.m16n8k16 of bf16 on TILES independent C, two rows of them as in a kernel's register tile; then EX2 independent
// exponentials of each lane, of numbers between 0 and 4.
template <int EX2> static __global__ void products(int rounds, float *out, moment *taken) {
    float C[TILES][4] = {}, x[EX2 + 1];
    uint32_t A[2][4], B[TILES / 2][2];
    for (int i = 0; i < 8; i++) A[i / 4][i % 4] = drawn_pair(i);
    for (int i = 0; i < TILES; i++) B[i / 2][i % 2] = drawn_pair(8 + i);
    for (int i = 0; i <= EX2; i++) x[i] = drawn(i);
    moment start = now();
#pragma unroll 1
    for (int round = 0; round < rounds; round++) {
#pragma unroll
        for (int i = 0; i < GROUP; i++) {
            float(&c)[4] = C[i % TILES];
            const uint32_t(&a)[4] = A[i % TILES % 2], (&b)[2] = B[i % TILES / 2];
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
        }
#pragma unroll
        for (int i = 0; i < EX2; i++)
            asm volatile("{ .reg .f32 y; neg.f32 y, %0; ex2.approx.ftz.f32 %0, y; }" : "+f"(x[i])); // one MUFU
    }
    finish(start, taken);
    float total = x[EX2];
    for (auto &tile : C) total += tile[0] + tile[1] + tile[2] + tile[3];
    for (int i = 0; i < EX2; i++) total += x[i];
    out[blockIdx.x * THREADS + threadIdx.x] = total;
}

static __global__ void copy(const float4 *from, float4 *to, size_t count) {
    for (size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x; i < count; i += (size_t)gridDim.x * THREADS)
        to[i] = from[i];
}

// Each element is added to `rounds` times, neighbouring lanes to neighbouring elements.
template <bool WIDE> static __global__ void add(float4 *to, size_t count, int rounds) {
    for (int round = 0; round < rounds; round++)
        for (size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x; i < count; i += (size_t)gridDim.x * THREADS) {
#if __CUDA_ARCH__ >= 900
            if (WIDE) {
                asm volatile("red.global.add.v4.f32 [%0], {%1,%1,%1,%1};" ::"l"(to + i), "f"(1.0f) : "memory");
                continue;
            }
#endif
            float *words = (float *)(to + i / 32 * 32) + i % 32;
            for (int c = 0; c < 4; c++) atomicAdd(words + 32 * c, 1.0f);
        }
}

// The quickest run's seconds; `keep` is called after each run that is the quickest so far.
template <class Launch, class Keep> static double seconds_of(Launch launch, Keep keep) {
    cudaEvent_t start, stop;
    check(cudaEventCreate(&start));
    check(cudaEventCreate(&stop));
    double best = INFINITY;
    for (int run = 0; run < RUNS; run++) {
        float ms = 0.0f;
        check(cudaEventRecord(start));
        launch();
        check(cudaEventRecord(stop));
        check(cudaEventSynchronize(stop));
        check(cudaGetLastError());
        check(cudaEventElapsedTime(&ms, start, stop));
        if (ms * 1e-3 >= best) continue;
        best = ms * 1e-3;
        keep();
    }
    return best;
}

int main() {
    cudaDeviceProp card;
    check(cudaGetDeviceProperties(&card, 0));
    int sms = card.multiProcessorCount;
    float *out;
    moment *taken;
    check(cudaMalloc(&out, (size_t)sms * THREADS * sizeof *out));
    check(cudaMemset(out, 0, (size_t)sms * THREADS * sizeof *out));
    check(cudaMalloc(&taken, sms * sizeof *taken));
    printf("{\"device\": \"%s\", \"sms\": %d, \"l2_bytes\": %d, \"loops\": {", card.name, sms, card.l2CacheSize);
    // One block per SM. cycles: of an SM, for one instruction of a warp (a product: one mma). They and the clock are those of
    // block 0 in the run whose time gives the rate: the clock may differ between runs.
    auto print = [&](const char *name, int rounds, int instructions, double flop, auto kernel) {
        moment first = {};
        double seconds = seconds_of([&] { kernel<<<sms, THREADS>>>(rounds, out, taken); },
                                    [&] { check(cudaMemcpy(&first, taken, sizeof first, cudaMemcpyDeviceToHost)); });
        double count = (double)rounds * instructions * (THREADS / 32.0);
        printf("\"%s\": {\"cycles\": %.4g, \"flops\": %.4g, \"ghz\": %.4g}", name, first.cycles / count,
               count * flop * sms / seconds, (double)first.cycles / first.ns);
    };
    print("fma", 1 << 17, SUMS, 64, multiply_adds);
    printf(", ");
    print("mma", 1 << 14, GROUP, 4096, products<0>);
    printf(", ");
    print("mma_ex2_d128", 1 << 14, GROUP, 4096, products<16>);
    printf(", ");
    print("mma_ex2_d64", 1 << 14, GROUP, 4096, products<32>);
    float4 *from, *to;
    check(cudaMalloc(&from, COPIED));
    check(cudaMalloc(&to, COPIED));
    check(cudaMemset(from, 0, COPIED));
    check(cudaMemset(to, 0, COPIED));
    double copied = 2.0 * COPIED / seconds_of([&] { copy<<<8 * sms, THREADS>>>(from, to, COPIED / 16); }, [] {});
    double narrow = 16.0 * ADDED / seconds_of([&] { add<false><<<8 * sms, THREADS>>>(to, ADDED / 16, 16); }, [] {});
    double wide = 16.0 * ADDED / seconds_of([&] { add<true><<<8 * sms, THREADS>>>(to, ADDED / 16, 16); }, [] {});
    printf("}, \"bytes_per_second\": {\"copy\": %.4g, \"red\": %.4g, \"red_v4\": %.4g}}\n", copied, narrow, wide);
    return 0;
}
