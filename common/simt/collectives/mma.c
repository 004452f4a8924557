/* Tensor cores, the arithmetic: mma.sync as Hopper's tensor cores compute it.
 *
 * Each of the 16 x 8 results is a sum of C and of 16 (TF32: 8) products, which are exact. All addends are aligned to the
 * largest exponent among them, that is, to the sum of its two factors' exponents; what lies more than 23 + EXTRA_BITS bits
 * below it is cut off; the rest is added exactly, and the sum is cut off, not rounded, to an fp32 number. With M the largest
 * magnitude of an addend and K the number of products, a result is closer than (K + 1) 2^-(23 + EXTRA_BITS) M + 2^-23 |result|
 * to the exact sum. docs/simulated-device-inside.md says how this compares with a card.
 */
#include "collectives.h"

#include <math.h>
#include <string.h>

enum { M = 16, N = 8, K_MAX = 16, EXTRA_BITS = 2, NO_EXPONENT = -10000 };

/* The operands of a warp, out of its lanes' fragments. Exponents of zeros are NO_EXPONENT; those of subnormal numbers, the
 * smallest of the format. */
struct operands {
    double A[M][K_MAX], B[K_MAX][N], C[M][N];
    int16_t A_exponent[M][K_MAX], B_exponent[K_MAX][N], C_exponent[M][N];
    bool special; /* some are infinite or NaN */
};

struct fragments {
    float C[4];
    uint32_t A[4], B[2];
};

static double power_of_two(int exponent) {
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline void decode_float(uint32_t bits, double *value, int16_t *exponent, bool *special) {
    int field = (int)(bits >> 23 & 0xff);
    *value = (double)float_of(bits);
    *exponent = (int16_t)((bits << 1) == 0 ? NO_EXPONENT : (field > 0 ? field : 1) - 127);
    *special |= field == 0xff;
}

/* Of these two the lower 16 bits count. */
static inline void decode_half(uint32_t bits, double *value, int16_t *exponent, bool *special) {
    int field = (int)(bits >> 10 & 0x1f);
    *value = (double)simt_half_to_float((uint16_t)bits);
    *exponent = (int16_t)((bits & 0x7fff) == 0 ? NO_EXPONENT : (field > 0 ? field : 1) - 15);
    *special |= field == 0x1f;
}

static inline void decode_bfloat16(uint32_t bits, double *value, int16_t *exponent, bool *special) {
    decode_float(bits << 16, value, exponent, special);
}

/* What an fp32 number has beyond TF32's 10 bits of fraction is not read. */
static inline void decode_tf32(uint32_t bits, double *value, int16_t *exponent, bool *special) {
    decode_float(bits & 0xffffe000u, value, exponent, special);
}

/* x, of at most 53 bits, cut off to an fp32 number. */
static float cut_off(double x) {
    if (fabs(x) >= 0x1p128) return x > 0.0 ? INFINITY : -INFINITY;
    if (fabs(x) < 0x1p-126) return (float)(trunc(x * 0x1p149) * 0x1p-149);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= ~(((uint64_t)1 << 29) - 1);
    memcpy(&x, &bits, sizeof x);
    return (float)x;
}

/* The innermost loops run over the columns, which the compiler puts side by side in vector registers. */
static void multiply(const struct operands *o, int depth, float result[M][N]) {
    for (int i = 0; i < M; i++) {
        int16_t most[N];
        memcpy(most, o->C_exponent[i], sizeof most);
        for (int k = 0; k < depth; k++)
            for (int n = 0; n < N; n++) {
                int16_t exponent = (int16_t)(o->A_exponent[i][k] + o->B_exponent[k][n]);
                most[n] = exponent > most[n] ? exponent : most[n];
            }
        double unit[N], sum[N];
        for (int n = 0; n < N; n++) {
            int lowest = (most[n] > -1000 ? most[n] : 0) - 23 - EXTRA_BITS; /* the place of the last bit that is kept */
            unit[n] = power_of_two(-lowest);
            sum[n] = (double)(int32_t)(o->C[i][n] * unit[n]);
        }
        for (int k = 0; k < depth; k++)
            for (int n = 0; n < N; n++) sum[n] += (double)(int32_t)(o->A[i][k] * o->B[k][n] * unit[n]);
        for (int n = 0; n < N; n++) result[i][n] = cut_off(sum[n] / unit[n]);
    }
}

/* Infinities and NaN follow the rules of fp32; every NaN is the same one. They leave the operands. */
static void take_out_special(struct operands *o, int depth, double found[M][N]) {
    for (int i = 0; i < M; i++)
        for (int n = 0; n < N; n++) {
            found[i][n] = o->C[i][n];
            for (int k = 0; k < depth; k++) found[i][n] += o->A[i][k] * o->B[k][n];
        }
    for (int i = 0; i < M; i++)
        for (int k = 0; k < depth; k++)
            if (!isfinite(o->A[i][k])) o->A[i][k] = 0.0;
    for (int k = 0; k < depth; k++)
        for (int n = 0; n < N; n++)
            if (!isfinite(o->B[k][n])) o->B[k][n] = 0.0;
    for (int i = 0; i < M; i++)
        for (int n = 0; n < N; n++)
            if (!isfinite(o->C[i][n])) o->C[i][n] = 0.0;
}

/* How the numbers of a format are read, which stand in the lower bits. */
typedef void decoder(uint32_t bits, double *value, int16_t *exponent, bool *special);

/* C (16, 8) = A B, or with `add` C += A B: B by its columns, C as its lanes' fragments. */
static inline __attribute__((always_inline)) void multiply_warp(decoder *decode, int depth, uint32_t A[M][K_MAX],
                                                                uint32_t B[N][K_MAX], bool add, float *const C[WARP_SIZE]) {
    struct operands o;
    float result[M][N];
    double found[M][N];
    o.special = false;
    for (int k = 0; k < depth; k++) {
        for (int i = 0; i < M; i++) decode(A[i][k], &o.A[i][k], &o.A_exponent[i][k], &o.special);
        for (int n = 0; n < N; n++) decode(B[n][k], &o.B[k][n], &o.B_exponent[k][n], &o.special);
    }
    for (int e = 0; e < 4 * WARP_SIZE; e++) {
        int row = e / 16 + e / 2 % 2 * 8, col = e / 4 % 4 * 2 + e % 2;
        uint32_t bits = 0;
        if (add) memcpy(&bits, &C[e / 4][e % 4], sizeof bits);
        decode_float(bits, &o.C[row][col], &o.C_exponent[row][col], &o.special);
    }
    if (o.special) take_out_special(&o, depth, found);
    multiply(&o, depth, result);
    for (int e = 0; e < 4 * WARP_SIZE; e++) {
        int row = e / 16 + e / 2 % 2 * 8, col = e / 4 % 4 * 2 + e % 2;
        bool is_special = o.special && !isfinite(found[row][col]);
        C[e / 4][e % 4] = !is_special              ? result[row][col]
                          : isnan(found[row][col]) ? float_of(0x7fffffff)
                                                   : (float)found[row][col];
    }
}

void mma_warp(bool bfloat16, uint32_t A[M][K_MAX], uint32_t B[N][K_MAX], bool add, float *const C[WARP_SIZE]) {
    if (bfloat16)
        multiply_warp(decode_bfloat16, K_MAX, A, B, add, C);
    else
        multiply_warp(decode_half, K_MAX, A, B, add, C);
}

/* The layout of fragments: the drawing in common/device/tensor.cuh, with g = lane / 4 and t = lane % 4. A register holds `per`
 * numbers: two of 16 bits, or one in TF32. */
static inline __attribute__((always_inline)) void multiply_fragments(const struct simt_lanes *lanes, decoder *decode, int per) {
    uint32_t A[M][K_MAX], B[N][K_MAX];
    float *C[WARP_SIZE];
    for (int lane = 0; lane < WARP_SIZE; lane++) {
        const struct fragments *f = lanes->operand[lane];
        int g = lane / 4, t = lane % 4;
        C[lane] = memcpy(lanes->result[lane], f->C, sizeof f->C);
        for (int half = 0; half < per; half++) {
            for (int r = 0; r < 4; r++) A[g + r % 2 * 8][per * (t + r / 2 * 4) + half] = f->A[r] >> 16 * half;
            for (int r = 0; r < 2; r++) B[g][per * (t + r * 4) + half] = f->B[r] >> 16 * half;
        }
    }
    multiply_warp(decode, 8 * per, A, B, true, C);
}

static void mma_half(const struct simt_lanes *lanes) { multiply_fragments(lanes, decode_half, 2); }
static void mma_bfloat16(const struct simt_lanes *lanes) { multiply_fragments(lanes, decode_bfloat16, 2); }
static void mma_tf32(const struct simt_lanes *lanes) { multiply_fragments(lanes, decode_tf32, 1); }

const struct simt_collective simt_mma_half = {"mma.sync.m16n8k16.f16", mma_half, SIMT_ALL_LANES | SIMT_ORDERS_NOTHING};
const struct simt_collective simt_mma_bfloat16 = {"mma.sync.m16n8k16.bf16", mma_bfloat16, SIMT_ALL_LANES | SIMT_ORDERS_NOTHING};
const struct simt_collective simt_mma_tf32 = {"mma.sync.m16n8k8.tf32", mma_tf32, SIMT_ALL_LANES | SIMT_ORDERS_NOTHING};

struct simt_floats simt_mma(const struct simt_collective *mma, float c0, float c1, float c2, float c3, uint32_t a0, uint32_t a1,
                            uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1, const char *file, int line) {
    struct fragments operand = {{c0, c1, c2, c3}, {a0, a1, a2, a3}, {b0, b1}};
    struct simt_floats result;
    collective_meet(mma, 0xffffffffu, &operand, &result, file, line, __builtin_return_address(0));
    return result;
}
