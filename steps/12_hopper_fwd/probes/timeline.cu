// Who computes what when? The consumers of the first block note the clock of their SM before each part of their work, in the
// rungs from 12b on. For a Hopper card only (compute_capability = 90); prints one JSON line. The rungs' kernels are compiled as
// they are: a macro for each function that begins a part notes the clock first.

#include <stdio.h>
#include <stdlib.h>

#include <vector>

#include "attention.h"

#include "device.cuh"
#include "hopper.cuh"
#include "launch.h"
#include "mask.cuh"
#include "tensor.cuh"

#include "../softmax.cuh"
#include "../tiles.cuh"

constexpr int GROUPS = 4, MARKS = 400; // of each warpgroup: what begins, and when
enum part { TURN, WAIT, PRODUCTS, SOFTMAX, ROUND, PARTS };
static const char *const names[PARTS] = {"turn", "wait", "products", "softmax", "round"};
struct mark {
    long long clock;
    long long part;
};
static __device__ mark marks[GROUPS][MARKS];

// The number of marks so far, one counter for each warpgroup. Called with true before the block's first barrier.
static __device__ __forceinline__ void note(int part, bool begin = false) {
    __shared__ int count[GROUPS];
    int group = threadIdx.x / WARPGROUP;
    if (begin && threadIdx.x < GROUPS) count[threadIdx.x] = 0;
    if (begin || threadIdx.x % WARPGROUP != 0 || blockIdx.x + blockIdx.y > 0 || count[group] == MARKS) return;
    marks[group][count[group]++] = {clock64(), part};
}

#define __syncthreads() (note(0, true), __syncthreads())
#define named_barrier_sync note(TURN), named_barrier_sync
#define mbarrier_wait note(WAIT), mbarrier_wait
#define multiply_QK note(PRODUCTS), multiply_QK
#define multiply_PV note(PRODUCTS), multiply_PV
#define wgmma_wait note(WAIT), wgmma_wait
#define new_maxima (note(SOFTMAX), false) || new_maxima
#define round_P note(ROUND), round_P

namespace b {
#include "../12b_producer.cu"
}
namespace c {
#include "../12c_pingpong.cu"
}
namespace d {
#include "../12d_overlap.cu"
}
namespace e {
#include "../hopper_fwd.cu"
}

static void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "timeline: %s\n", cudaGetErrorString(error));
    exit(1);
}

// One rung at one d: a list for each consumer of [part, cycles since the first mark].
static void print_marks(const step &rung, int d) {
    problem p = {
        .dtype = BF16, .batch = 1, .heads = 132, .N_q = 256, .N_kv = 4096, .d = d, .causal = false, .scale = 0.1f};
    size_t queries = (size_t)p.heads * p.N_q, keys = (size_t)p.heads * p.N_kv;
    std::vector<uint16_t> numbers(keys * d);
    for (uint16_t &x : numbers) x = 0x3f00 | (rand() & 0x80ff); // from 0.5 to 1, of both signs
    void *Q, *K, *V, *O, *L;
    check(cudaMalloc(&Q, 2 * queries * d)), check(cudaMalloc(&O, 2 * queries * d)), check(cudaMalloc(&L, 4 * queries));
    check(cudaMalloc(&K, 2 * keys * d)), check(cudaMalloc(&V, 2 * keys * d));
    check(cudaMemcpy(Q, numbers.data(), 2 * queries * d, cudaMemcpyHostToDevice));
    check(cudaMemcpy(K, numbers.data(), 2 * keys * d, cudaMemcpyHostToDevice));
    check(cudaMemcpy(V, numbers.data(), 2 * keys * d, cudaMemcpyHostToDevice));
    tensors t = {.Q = (float *)Q, .K = (float *)K, .V = (float *)V, .O = (float *)O, .L = (float *)L};
    static mark seen[GROUPS][MARKS];
    for (int run = 0; run < 3; run++) { // the last one counts
        check(cudaMemset(O, 0, 2 * queries * d));
        mark none[GROUPS][MARKS] = {};
        check(cudaMemcpyToSymbol(marks, none, sizeof none));
        check(rung.forward(&p, &t, nullptr, 0));
        check(cudaDeviceSynchronize());
    }
    check(cudaMemcpyFromSymbol(seen, marks, sizeof seen));
    long long first = seen[1][0].clock;
    printf("{\"rung\": \"%s\", \"dim\": %d, \"consumers\": [", rung.name, d);
    for (int group = 1; group < GROUPS && seen[group][0].clock != 0; group++) {
        printf("%s[", group > 1 ? ", " : "");
        for (int i = 0; i < MARKS && seen[group][i].clock != 0; i++)
            printf("%s[\"%s\", %lld]", i > 0 ? ", " : "", names[seen[group][i].part], seen[group][i].clock - first);
        printf("]");
    }
    printf("]}");
    for (void *p : {Q, K, V, O, L}) check(cudaFree(p));
}

int main() {
    cudaDeviceProp card;
    check(cudaGetDeviceProperties(&card, 0));
    printf("{\"probe\": \"timeline\", \"device\": \"%s\", \"of\": [", card.name);
    const char *between = "";
    for (const step *rung :
         {&b::step_12b_producer, &c::step_12c_pingpong, &d::step_12d_overlap, &e::step_12_hopper_fwd})
        for (int d : {64, 128}) {
            printf("%s", between);
            print_marks(*rung, d);
            between = ", ";
        }
    printf("]}\n");
}
