/* Attention over keys that travel round a ring of devices, as small as it can be. Each rank keeps its queries, and K and V of all ranks
 * come by, in two buffers: one is used while the next ones arrive in the other. Each call that orders something stands in ORDER(), so
 * that ring_faults.cu can leave it out. */
#ifndef RING_CUH
#define RING_CUH

#include <cmath>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

namespace ring {

enum { MOST_RANKS = 3, ROWS = 8, D = 4, KV = 2 * ROWS * D, KV_BYTES = KV * (int)sizeof(float) };

static int left_out = -1; /* the ORDER() that is not there */
#define ORDER(...)                                                                                                     \
    do {                                                                                                               \
        static const int number = __COUNTER__ - ring::first;                                                           \
        if (ring::left_out != number) __VA_ARGS__;                                                                     \
    } while (0)
static const int first = __COUNTER__ + 1;

/* One thread per query row: the softmax over these keys, merged with that over the keys before. */
__global__ static void partial(const float *Q, const float *kv, float *O, float *L, float scale) {
    int row = (int)threadIdx.x;
    const float *K = kv, *V = kv + ROWS * D;
    float largest = -INFINITY, sum = 0.0f, o[D] = {0};
    for (int key = 0; key < ROWS; key++) {
        float s = 0.0f;
        for (int c = 0; c < D; c++) s += Q[row * D + c] * K[key * D + c];
        s *= scale;
        float above = fmaxf(largest, s), old = expf(largest - above), p = expf(s - above);
        for (int c = 0; c < D; c++) o[c] = o[c] * old + p * V[key * D + c];
        sum = sum * old + p, largest = above;
    }
    float here = largest + logf(sum), before = L[row];
    float top = fmaxf(here, before), both = top + logf(expf(here - top) + expf(before - top));
    for (int c = 0; c < D; c++)
        O[row * D + c] =
            (before == -INFINITY ? 0.0f : O[row * D + c] * expf(before - both)) + o[c] / sum * expf(here - both);
    L[row] = both;
}

struct rank {
    cudaStream_t compute, copy;
    cudaEvent_t full[2], used[2], taken[2]; /* of the two buffers; taken: the rank before may fill its own again */
    float *Q, *O, *L, *kv[2];
};

static float number(int i, int seed) { return (float)((i * 37 + seed * 11) % 23 - 11) / 8.0f; }
static float query(int rank, int i) { return number(rank * ROWS * D + i, 1); }
static float key_or_value(int rank, int i) { return number(rank * ROWS * D + i % (ROWS * D), 2 + i / (ROWS * D)); }

static int prepare(rank *ranks) {
    int count = 0;
    setenv("SIMT_DEVICES", "3", 0);
    cudaGetDeviceCount(&count);
    if (count > MOST_RANKS) count = MOST_RANKS;
    for (int r = 0; r < count; r++) {
        rank &of = ranks[r];
        float q[ROWS * D], kv[KV], none[ROWS];
        for (int i = 0; i < ROWS * D; i++) q[i] = query(r, i);
        for (int i = 0; i < KV; i++) kv[i] = key_or_value(r, i);
        for (float &each : none) each = -INFINITY;
        cudaSetDevice(r);
        for (int peer = 0; peer < count; peer++)
            if (peer != r) cudaDeviceEnablePeerAccess(peer, 0);
        cudaStreamCreateWithFlags(&of.compute, cudaStreamNonBlocking),
            cudaStreamCreateWithFlags(&of.copy, cudaStreamNonBlocking);
        for (int b = 0; b < 2; b++) {
            cudaEventCreateWithFlags(&of.full[b], cudaEventDisableTiming),
                cudaEventCreateWithFlags(&of.used[b], cudaEventDisableTiming);
            cudaEventCreateWithFlags(&of.taken[b], cudaEventDisableTiming);
            cudaMalloc(&of.kv[b], KV_BYTES);
        }
        cudaMalloc(&of.Q, sizeof q), cudaMalloc(&of.O, sizeof q), cudaMalloc(&of.L, sizeof none);
        cudaMemcpy(of.Q, q, sizeof q, cudaMemcpyHostToDevice),
            cudaMemcpy(of.L, none, sizeof none, cudaMemcpyHostToDevice);
        cudaMemset(of.O, 0, sizeof q);
        cudaMemcpy(of.kv[1], kv, sizeof kv, cudaMemcpyHostToDevice);
        cudaDeviceSynchronize();
        cudaMemcpyAsync(of.kv[0], of.kv[1], KV_BYTES, cudaMemcpyDeviceToDevice, of.copy);
        ORDER(cudaEventRecord(of.full[0], of.copy));
    }
    cudaGetLastError(); /* access may have been enabled before */
    return count;
}

static void compute(rank &of, int now) {
    ORDER(cudaStreamWaitEvent(of.compute, of.full[now], 0));
    partial<<<1, ROWS, 0, of.compute>>>(of.Q, of.kv[now], of.O, of.L, 0.5f);
    ORDER(cudaEventRecord(of.used[now], of.compute));
}

/* Each rank pulls from the one before it. */
static void by_peer_copies(rank *ranks, int count) {
    for (int step = 0; step < count; step++) {
        int now = step % 2, next = 1 - now;
        for (int r = 0; r < count && step + 1 < count; r++) {
            int before = (r + count - 1) % count, behind = (r + 1) % count;
            cudaSetDevice(r);
            ORDER(cudaStreamWaitEvent(ranks[r].copy, ranks[before].full[now], 0));
            ORDER(cudaStreamWaitEvent(ranks[r].copy, ranks[r].used[next], 0));
            ORDER(cudaStreamWaitEvent(ranks[r].copy, ranks[behind].taken[next], 0));
            cudaMemcpyPeerAsync(ranks[r].kv[next], r, ranks[before].kv[now], before, KV_BYTES, ranks[r].copy);
            ORDER(cudaEventRecord(ranks[r].taken[now], ranks[r].copy));
            ORDER(cudaEventRecord(ranks[r].full[next], ranks[r].copy));
        }
        for (int r = 0; r < count; r++) cudaSetDevice(r), compute(ranks[r], now);
    }
}

#ifdef NCCL_MAJOR
/* Each rank sends to the next one. */
static void by_nccl(rank *ranks, int count) {
    ncclComm_t comm[MOST_RANKS];
    ncclCommInitAll(comm, count, nullptr);
    for (int step = 0; step < count; step++) {
        int now = step % 2, next = 1 - now;
        if (step + 1 < count) {
            for (int r = 0; r < count; r++) ORDER(cudaStreamWaitEvent(ranks[r].copy, ranks[r].used[next], 0));
            ORDER(ncclGroupStart());
            for (int r = 0; r < count; r++) {
                ncclSend(ranks[r].kv[now], KV, ncclFloat, (r + 1) % count, comm[r], ranks[r].copy);
                ncclRecv(ranks[r].kv[next], KV, ncclFloat, (r + count - 1) % count, comm[r], ranks[r].copy);
            }
            ORDER(ncclGroupEnd());
            for (int r = 0; r < count; r++) {
                cudaSetDevice(r);
                ORDER(cudaEventRecord(ranks[r].full[next], ranks[r].copy));
            }
        }
        for (int r = 0; r < count; r++) cudaSetDevice(r), compute(ranks[r], now);
    }
    for (int r = 0; r < count; r++) {
        cudaStreamSynchronize(ranks[r].copy);
        ncclCommDestroy(comm[r]);
    }
}
#endif

/* The largest error, of all ranks; 1 after an error of a call. */
static double error(rank *ranks, int count) {
    double worst = 0.0;
    for (int r = 0; r < count; r++) {
        float got[ROWS * D];
        cudaSetDevice(r);
        ORDER(cudaStreamSynchronize(ranks[r].compute));
        if (cudaMemcpy(got, ranks[r].O, sizeof got, cudaMemcpyDeviceToHost) != cudaSuccess) return 1.0;
        for (int row = 0; row < ROWS; row++) {
            double sum = 0.0, wanted[D] = {0};
            for (int key = 0; key < count * ROWS; key++) {
                double s = 0.0;
                for (int c = 0; c < D; c++) s += query(r, row * D + c) * key_or_value(key / ROWS, key % ROWS * D + c);
                double p = exp(0.5 * s);
                sum += p;
                for (int c = 0; c < D; c++) wanted[c] += p * key_or_value(key / ROWS, ROWS * D + key % ROWS * D + c);
            }
            for (int c = 0; c < D; c++) worst = fmax(worst, fabs(got[row * D + c] - wanted[c] / sum));
        }
    }
    return worst;
}

static const int orders = __COUNTER__ - first;

} // namespace ring

#endif
