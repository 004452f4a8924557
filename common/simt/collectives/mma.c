/* Tensor cores, the arithmetic: mma.sync as Hopper's tensor cores compute it.
 *
 * Each of the 16 x 8 results is a sum of C and of 16 (TF32: 8) products, which are exact. All addends are aligned to the
 * largest exponent among them, that is, to the sum of its two factors' exponents; what lies more than 23 + EXTRA_BITS bits
 * below it is cut off; the rest is added exactly, and the sum is cut off, not rounded, to an fp32 number. With M the largest
 * magnitude of an addend and K the number of products, a result is closer than (K + 1) 2^-(23 + EXTRA_BITS) M + 2^-23 |result|
 * to the exact sum. docs/simulated-device-inside.md says how this compares with a card.
 *
 * Of 8-bit numbers, wgmma's 32 products and C are cut off FP8_BITS bits below the largest exponent, and the sum is cut off to so many
 * bits of fraction: the accumulator has fewer bits there. An H200 gave the same bits (docs/simulated-device-inside.md).
 */
#include "collectives.h"

#include "report.h"

#include <math.h>
#include <string.h>

enum { M = 16, N = 8, K_MAX = 32, EXTRA_BITS = 2, FP8_BITS = 13, NO_EXPONENT = -10000 };

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

/* An 8-bit number: e5m2 is the upper half of an fp16; e4m3 has no infinity. */
static inline void decode_e5m2(uint32_t bits, double *value, int16_t *exponent, bool *special) {
    decode_half(bits << 8 & 0xff00, value, exponent, special);
}
static inline void decode_e4m3(uint32_t bits, double *value, int16_t *exponent, bool *special) {
    int field = (int)(bits >> 3 & 0xf);
    *value = (double)simt_fp8_to_float((uint8_t)bits, 0);
    *exponent = (int16_t)((bits & 0x7f) == 0 ? NO_EXPONENT : (field > 0 ? field : 1) - 7);
    *special |= (bits & 0x7f) == 0x7f;
}

/* x, of at most 53 bits, cut off to an fp32 number, or to one with fewer bits of fraction. */
static inline float cut_off(double x, int fraction) {
    if (fabs(x) >= 0x1p128) return x > 0.0 ? INFINITY : -INFINITY;
    if (fabs(x) < 0x1p-126) return (float)(trunc(x * 0x1p149) * 0x1p-149);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= ~(((uint64_t)1 << (52 - fraction)) - 1);
    memcpy(&x, &bits, sizeof x);
    return (float)x;
}

/* The innermost loops run over the columns, which the compiler puts side by side in vector registers. */
static inline __attribute__((always_inline)) void multiply(const struct operands *o, int depth, bool fp8, float result[M][N]) {
    const int kept = fp8 ? FP8_BITS : 23 + EXTRA_BITS;
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
            int lowest = (most[n] > -1000 ? most[n] : 0) - kept; /* the place of the last bit that is kept */
            unit[n] = power_of_two(-lowest);
            sum[n] = (double)(int32_t)(o->C[i][n] * unit[n]);
        }
        for (int k = 0; k < depth; k++)
            for (int n = 0; n < N; n++) sum[n] += (double)(int32_t)(o->A[i][k] * o->B[k][n] * unit[n]);
        for (int n = 0; n < N; n++) result[i][n] = cut_off(sum[n] / unit[n], fp8 ? FP8_BITS : 23);
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
static inline __attribute__((always_inline)) void multiply_warp(decoder *decode, decoder *decode_B, int depth,
                                                                uint32_t A[M][K_MAX], uint32_t B[N][K_MAX], bool add,
                                                                float *const C[WARP_SIZE]) {
    struct operands o;
    float result[M][N];
    double found[M][N];
    o.special = false;
    for (int k = 0; k < depth; k++) {
        for (int i = 0; i < M; i++) decode(A[i][k], &o.A[i][k], &o.A_exponent[i][k], &o.special);
        for (int n = 0; n < N; n++) decode_B(B[n][k], &o.B[k][n], &o.B_exponent[k][n], &o.special);
    }
    for (int e = 0; e < 4 * WARP_SIZE; e++) {
        int row = e / 16 + e / 2 % 2 * 8, col = e / 4 % 4 * 2 + e % 2;
        uint32_t bits = 0;
        if (add) memcpy(&bits, &C[e / 4][e % 4], sizeof bits);
        decode_float(bits, &o.C[row][col], &o.C_exponent[row][col], &o.special);
    }
    if (o.special) take_out_special(&o, depth, found);
    multiply(&o, depth, depth == K_MAX, result);
    for (int e = 0; e < 4 * WARP_SIZE; e++) {
        int row = e / 16 + e / 2 % 2 * 8, col = e / 4 % 4 * 2 + e % 2;
        bool is_special = o.special && !isfinite(found[row][col]);
        C[e / 4][e % 4] = !is_special              ? result[row][col]
                          : isnan(found[row][col]) ? float_of(0x7fffffff)
                                                   : (float)found[row][col];
    }
}

void mma_warp(enum simt_wgmma_types types, uint32_t A[M][K_MAX], uint32_t B[N][K_MAX], bool add, float *const C[WARP_SIZE]) {
    switch (types) {
    case SIMT_F16: multiply_warp(decode_half, decode_half, 16, A, B, add, C); break;
    case SIMT_BF16: multiply_warp(decode_bfloat16, decode_bfloat16, 16, A, B, add, C); break;
    case SIMT_E4M3_E4M3: multiply_warp(decode_e4m3, decode_e4m3, K_MAX, A, B, add, C); break;
    case SIMT_E4M3_E5M2: multiply_warp(decode_e4m3, decode_e5m2, K_MAX, A, B, add, C); break;
    case SIMT_E5M2_E4M3: multiply_warp(decode_e5m2, decode_e4m3, K_MAX, A, B, add, C); break;
    case SIMT_E5M2_E5M2: multiply_warp(decode_e5m2, decode_e5m2, K_MAX, A, B, add, C); break;
    }
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
    multiply_warp(decode, decode, 8 * per, A, B, true, C);
}

static void mma_half(const struct simt_lanes *lanes) { multiply_fragments(lanes, decode_half, 2); }
static void mma_bfloat16(const struct simt_lanes *lanes) { multiply_fragments(lanes, decode_bfloat16, 2); }
static void mma_tf32(const struct simt_lanes *lanes) { multiply_fragments(lanes, decode_tf32, 1); }

struct simt_floats simt_mma(enum simt_mma_type type, float c0, float c1, float c2, float c3, uint32_t a0, uint32_t a1,
                            uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1, const char *file, int line) {
    struct fragments operand = {{c0, c1, c2, c3}, {a0, a1, a2, a3}, {b0, b1}};
    struct simt_floats result;
    static const struct simt_collective types[SIMT_MMA_TYPES] = {
        [simt_mma_half] = {"mma.sync.m16n8k16.f16", mma_half, SIMT_ALL_LANES | SIMT_ORDERS_NOTHING},
        [simt_mma_bfloat16] = {"mma.sync.m16n8k16.bf16", mma_bfloat16, SIMT_ALL_LANES | SIMT_ORDERS_NOTHING},
        [simt_mma_tf32] = {"mma.sync.m16n8k8.tf32", mma_tf32, SIMT_ALL_LANES | SIMT_ORDERS_NOTHING},
    };
    const void *pc = __builtin_return_address(0);
    const struct simt_collective *mma = collective_numbered(types, SIMT_MMA_TYPES, type, pc);
    collective_meet(mma, 0xffffffffu, &operand, &result, file, line, pc);
    return result;
}

/* ---- 8-bit integers -------------------------------------------------------------------------------------------------------- */

struct integers {
    int rows, depth;
    bool is_signed[2], saturates;
    struct simt_words words;
};

static int32_t byte_of(const struct integers *of, int matrix, int first, int index) {
    uint8_t byte = (uint8_t)(of->words.r[first + index / 4] >> 8 * (index % 4));
    return of->is_signed[matrix] ? (int8_t)byte : byte;
}

/* Lane 4 g + t holds of A the rows g and g + 8 and of B the column g, each in fours from 4 t on. */
static void multiply_integers(const struct simt_lanes *lanes) {
    const struct integers *own = lanes->operand[0];
    int A_registers = own->rows / 8 * own->depth / 16, B_registers = own->depth / 16;
    for (int e = 0; e < own->rows * N; e++) {
        int row = e / N, col = e % N, lane = row % 8 * 4 + col / 2, r = row / 8 * 2 + col % 2;
        int64_t sum = (int32_t)((const struct integers *)lanes->operand[lane])->words.r[A_registers + B_registers + r];
        for (int k = 0; k < own->depth; k++) {
            const struct integers *A = lanes->operand[row % 8 * 4 + k % 16 / 4], *B = lanes->operand[col * 4 + k % 16 / 4];
            sum += byte_of(A, 0, row / 8 + k / 16 * (own->rows / 8), k % 4) * byte_of(B, 1, A_registers + k / 16, k % 4);
        }
        if (own->saturates) sum = sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : sum;
        ((struct simt_registers *)lanes->result[lane])->r[r] = (uint32_t)sum;
    }
}

struct simt_registers simt_mma_integers(int rows, int depth, int is_A_signed, int is_B_signed, int saturates,
                                        struct simt_words operands, const char *file, int line) {
    static const struct simt_collective instruction = {"mma.sync.s8", multiply_integers, SIMT_ALL_LANES | SIMT_ORDERS_NOTHING};
    const void *pc = __builtin_return_address(0);
    if ((rows != 8 && rows != 16) || (depth != 16 && depth != 32))
        simt_fail(pc, cudaErrorIllegalInstruction, "mma.sync of %d x 8 x %d integers: there is none", rows, depth);
    struct integers operand = {rows, depth, {is_A_signed, is_B_signed}, saturates, operands};
    struct simt_registers result = {{0}};
    collective_meet(&instruction, 0xffffffffu, &operand, &result, file, line, pc);
    return result;
}
