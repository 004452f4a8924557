/* O and L for the steps that have a backward pass only. It belongs to the harness and not to the ladder, so that no edit
 * of a forward chapter changes what a backward chapter starts from. One thread per query row, which visits the keys twice:
 * for the maximum m, then for l and O. It is the softmax as it is defined, and no chapter's kernel. */
#include "attention.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

#include "variants.cuh"

constexpr int ROWS = 64; /* query rows, and threads, per block */

/* Columns c to c + 3 of a row of d, by one load where rows are aligned to it; zeros past d. */
static __device__ float4 load4(const float *four) { return *(const float4 *)four; }
template <class T> static __device__ float from_bits(unsigned bits) { return (float)__builtin_bit_cast(T, (uint16_t)bits); }
template <class T> static __device__ float4 load4(const T *four) {
    uint2 bits = *(const uint2 *)four;
    return make_float4(from_bits<T>(bits.x), from_bits<T>(bits.x >> 16), from_bits<T>(bits.y), from_bits<T>(bits.y >> 16));
}
template <class T> static __device__ float4 load_columns(const T *row, int c, int d) {
    if (c < d && d % 4 == 0) return load4(row + c);
    return make_float4(c < d ? (float)row[c] : 0.0f, c + 1 < d ? (float)row[c + 1] : 0.0f, c + 2 < d ? (float)row[c + 2] : 0.0f,
                       c + 3 < d ? (float)row[c + 3] : 0.0f);
}

/* Scaled after the sum, as in the backward steps: their P = exp(S - L) needs the same S. */
template <int D, class T> static __device__ float score(const float (&Q_reg)[D], const T *K, const problem &p) {
    float s = 0.0f;
#pragma unroll
    for (int c = 0; c < D; c += 4) {
        float4 k = load_columns(K, c, p.d);
        s += Q_reg[c] * k.x;
        s += Q_reg[c + 1] * k.y;
        s += Q_reg[c + 2] * k.z;
        s += Q_reg[c + 3] * k.w;
    }
    return p.scale * s;
}

/* What a row attends to and how its scores change. Rotary embedding is not among them: the harness hands
 * over Q and K rotated. */
struct row_of {
    rows_of of;
    int head, row, sequence; /* row: within the sequence */
};
static __device__ row_of find_row(const problem &p, int head, int row) {
    row_of found = {{0, p.N_q, p.N_kv}, head, row, 0};
    if (p.starts == NULL) return found;
    while (row >= p.starts[found.sequence + 1]) found.sequence++;
    found.of = sequence_rows(p, found.sequence);
    found.row -= found.of.first;
    return found;
}
static __device__ float changed_score(float s, const problem &p, const row_of &r, int key) {
    if (p.softcap > 0.0f) s = p.softcap * tanhf(s / p.softcap);
    return s - alibi_slope(p, r.head % p.heads) * fabsf((float)(r.row + r.of.N_kv - r.of.N_q - key));
}
static __device__ float kept_factor(const problem &p, const row_of &r, int key) {
    if (!(p.dropout > 0.0f)) return 1.0f;
    uint4 words = dropout_words(p, r.row, key, r.head, r.sequence);
    uint32_t upper = key / 8 % 2 == 0 ? words.x : words.y, lower = key / 8 % 2 == 0 ? words.z : words.w;
    return (r.row / 8 % 2 == 0 ? upper : lower) < dropout_threshold(p) ? 0.0f : 1.0f / (1.0f - p.dropout);
}

/* D >= d: a thread keeps its rows of Q and O, padded with zeros to D columns, in registers. */
template <int D, class T>
static __global__ void two_passes(const T *Q, // (heads, N_q, d)
                                  const T *K, // (kv heads, N_kv, d)
                                  const T *V, // (kv heads, N_kv, d)
                                  T *O,       // (heads, N_q, d)
                                  float *L,   // (heads, N_q)
                                  problem p) {
    int row = blockIdx.x * ROWS + threadIdx.x;
    if (row >= p.N_q) return;
    size_t head = blockIdx.y, head_kv = head;
    if (p.heads_kv > 0) head_kv = head / p.heads * p.heads_kv + head % p.heads / (p.heads / p.heads_kv);
    row_of r = find_row(p, (int)head, row);
    int first = first_key(p, r.of, r.row), end = end_key(p, r.of, r.row);
    Q += (head * p.N_q + row) * p.d;
    K += (head_kv * p.N_kv + r.of.first) * p.d;
    V += (head_kv * p.N_kv + r.of.first) * p.d;
    O += (head * p.N_q + row) * p.d;
    float Q_reg[D], O_reg[D] = {}, m = -INFINITY;
    float l = 0.0f,
          lost = 0.0f; // compensated summation (Kahan 1965): P = exp(S - L) has the error of L in every element
#pragma unroll
    for (int c = 0; c < D; c++) Q_reg[c] = c < p.d ? (float)Q[c] : 0.0f;
    auto score_of = [&](int key) { return changed_score(score<D>(Q_reg, K + (size_t)key * p.d, p), p, r, key); };
    for (int key = first; key < end; key++) m = fmaxf(m, score_of(key));
    for (int key = first; key < end; key++) {
        float weight = expf(score_of(key) - m);
        float term = weight - lost, sum = l + term;
        lost = (sum - l) - term;
        l = sum;
        weight *= kept_factor(p, r, key);
#pragma unroll
        for (int c = 0; c < D; c += 4) {
            float4 v = load_columns(V + (size_t)key * p.d, c, p.d);
            O_reg[c] += weight * v.x;
            O_reg[c + 1] += weight * v.y;
            O_reg[c + 2] += weight * v.z;
            O_reg[c + 3] += weight * v.w;
        }
    }
#pragma unroll
    for (int c = 0; c < D; c++)
        if (c < p.d) O[c] = (T)(end > first ? O_reg[c] / l : 0.0f);
    L[head * p.N_q + row] = end > first ? m + logf(l) : -INFINITY;
}

template <class T> static cudaError_t run(const problem *p, const tensors *t, cudaStream_t stream) {
    dim3 blocks(ceil_div(p->N_q, ROWS), p->batch * p->heads);
    auto kernel = p->d <= 32 ? two_passes<32, T> : p->d <= 64 ? two_passes<64, T> : two_passes<128, T>;
    kernel<<<blocks, ROWS, 0, stream>>>((const T *)t->Q, (const T *)t->K, (const T *)t->V, (T *)t->O, t->L, *p);
    return cudaGetLastError();
}

static cudaError_t forward(const problem *p, const tensors *t, void *, cudaStream_t stream) {
    return p->dtype == FP32   ? run<float>(p, t, stream)
           : p->dtype == FP16 ? run<__half>(p, t, stream)
                              : run<__nv_bfloat16>(p, t, stream);
}

extern "C" const step harness_forward = {
    .name = "the harness",
    .idea = "O and L for a backward pass",
    .forward = forward,
    .dtypes = 1 << FP32 | 1 << FP16 | 1 << BF16,
    .grouped_heads = true,
    .variants = WINDOW | SOFTCAP | ALIBI | DROPOUT | ROTARY | PACKED,
};
