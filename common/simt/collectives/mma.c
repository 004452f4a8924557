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

/* A vector of SIDE doubles in one register where the processor has AVX2, else in two. */
#ifdef __x86_64__
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif
#define INLINE static inline __attribute__((always_inline))

enum { M = 16, N = 8, K_MAX = 32, EXTRA_BITS = 2, FP8_BITS = 13, SIDE = 4, NO_EXPONENT = -10000 };

/* SIDE numbers side by side in a vector register; a loop over N columns the compiler would unroll instead. */
typedef double doubles __attribute__((vector_size(SIDE * sizeof(double)), may_alias));
typedef int64_t longs __attribute__((vector_size(SIDE * sizeof(int64_t)), may_alias));
typedef int32_t ints __attribute__((vector_size(SIDE * sizeof(int32_t)), may_alias));
typedef float floats __attribute__((vector_size(SIDE * sizeof(float)), may_alias));

/* The operands of a warp, out of its lanes' fragments. Exponents of zeros are NO_EXPONENT; those of subnormal numbers, the
 * smallest of the format. */
struct operands {
    const struct mma_rows *A;
    _Alignas(32) double B[K_MAX][N], C[M][N];
    _Alignas(32) int32_t B_exponent[K_MAX][N], C_exponent[M][N];
};

struct fragments {
    float C[4];
    uint32_t A[4], B[2];
};

/* A format of `width` bits: those of `magnitude`, shifted, are the fields of an fp32 number that is 2^(127 - bias) times smaller. */
struct format {
    int width, magnitude, shift, bias, largest; /* largest: finite magnitude */
};
static const struct format fp32 = {32, 0x7fffffff, 0, 127, 0x7f7fffff};
static const struct format tf32 = {32, 0x7fffe000, 0, 127, 0x7f7fffff}; /* what it has beyond 10 bits of fraction is not read */
static const struct format bf16 = {16, 0x7fff, 16, 127, 0x7f7f};
static const struct format fp16 = {16, 0x7fff, 13, 15, 0x7bff};
static const struct format e5m2 = {8, 0x7f, 21, 15, 0x7b};
static const struct format e4m3 = {8, 0x7f, 20, 7, 0x7e}; /* without infinity */

/* Macros: how a function gets such a parameter depends on the processor, and the compiler warns of it. */
#define POWER_OF_TWO(exponents) (doubles)(((exponents) + 1023) << 52)
#define ANY(v) (((v)[0] | (v)[1] | (v)[2] | (v)[3]) != 0)
#define TRUNCATED(x) __builtin_convertvector(__builtin_convertvector(x, ints), doubles)

INLINE ints decode(struct format f, ints bits, double *value, int32_t *exponent) {
    ints size = (bits & f.magnitude) << f.shift, special = size > f.largest << f.shift, field = size >> 23, zero = size == 0;
    size |= (special & 0x7f800000) | ((bits << (32 - f.width)) & INT32_MIN);
    *(doubles *)value = __builtin_convertvector((floats)size, doubles) * ldexp(1.0, 127 - f.bias);
    *(ints *)exponent = ((field - (field == 0) - f.bias) & ~zero) | (zero & NO_EXPONENT);
    return special;
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

INLINE void multiply(const struct operands *o, int depth, bool fp8, float result[M][N]) {
    const int kept = fp8 ? FP8_BITS : 23 + EXTRA_BITS, fraction = fp8 ? FP8_BITS : 23;
    for (int n = 0; n < N; n += SIDE)
        for (int i = 0; i < M; i++) {
            ints most = *(const ints *)&o->C_exponent[i][n];
            for (int k = 0; k < depth; k++) {
                ints exponent = *(const ints *)&o->B_exponent[k][n] + o->A->exponent[i][k], more = exponent > most;
                most = (exponent & more) | (most & ~more);
            }
            most &= most > -1000;
            longs lowest = __builtin_convertvector(most, longs) - kept; /* the place of the last bit that is kept */
            doubles unit = POWER_OF_TWO(-lowest), sum = TRUNCATED(*(const doubles *)&o->C[i][n] * unit);
            for (int k = 0; k < depth; k++) sum += TRUNCATED(o->A->value[i][k] * *(const doubles *)&o->B[k][n] * unit);
            sum *= POWER_OF_TWO(lowest);
            doubles size = (doubles)((longs)sum & INT64_MAX);
            longs rare = (size >= 0x1p128) | ((size < 0x1p-126) & (size != 0));
            *(floats *)&result[i][n] =
                __builtin_convertvector((doubles)((longs)sum & -((int64_t)1 << (52 - fraction))), floats);
            for (int e = 0; ANY(rare) && e < SIDE; e++) result[i][n + e] = cut_off(sum[e], fraction);
        }
}

/* Infinities and NaN follow the rules of fp32; every NaN is the same one. They leave the operands, of which the rows become a copy. */
static void take_out_special(struct operands *o, int depth, struct mma_rows *rows, double found[M][N]) {
    o->A = memcpy(rows, o->A, sizeof *rows);
    for (int i = 0; i < M; i++)
        for (int n = 0; n < N; n++) {
            found[i][n] = o->C[i][n];
            for (int k = 0; k < depth; k++) found[i][n] += rows->value[i][k] * o->B[k][n];
        }
    for (int i = 0; i < M; i++)
        for (int k = 0; k < depth; k++)
            if (!isfinite(rows->value[i][k])) rows->value[i][k] = 0.0;
    for (int k = 0; k < depth; k++)
        for (int n = 0; n < N; n++)
            if (!isfinite(o->B[k][n])) o->B[k][n] = 0.0;
    for (int i = 0; i < M; i++)
        for (int n = 0; n < N; n++)
            if (!isfinite(o->C[i][n])) o->C[i][n] = 0.0;
}

INLINE void read_rows(struct format format, int depth, uint32_t A[M][K_MAX], struct mma_rows *rows) {
    ints special = {0};
    for (int i = 0; i < M; i++)
        for (int k = 0; k < depth; k += SIDE) {
            ints bits;
            memcpy(&bits, &A[i][k], sizeof bits);
            special |= decode(format, bits, &rows->value[i][k], &rows->exponent[i][k]);
        }
    rows->special = ANY(special);
}

INLINE void multiply_warp(const struct mma_rows *A, struct format format, int depth, uint32_t B[N][K_MAX], bool add,
                          float *const C[WARP_SIZE]) {
    struct operands o;
    o.A = A;
    _Alignas(32) float result[M][N];
    ints special = {0};
    for (int k = 0; k < depth; k++)
        for (int n = 0; n < N; n += SIDE) {
            const ints bits = {(int)B[n][k], (int)B[n + 1][k], (int)B[n + 2][k], (int)B[n + 3][k]};
            special |= decode(format, bits, &o.B[k][n], &o.B_exponent[k][n]);
        }
    for (int i = 0; i < M; i++) /* row g lies in the first two registers of lanes 4 g to 4 g + 3, row g + 8 in the others */
        for (int n = 0; n < N; n += SIDE) {
            const float *left = C[i % 8 * 4 + n / 2] + i / 8 * 2, *right = C[i % 8 * 4 + n / 2 + 1] + i / 8 * 2;
            floats row = {0};
            if (add) row = (floats){left[0], left[1], right[0], right[1]};
            special |= decode(fp32, (ints)row, &o.C[i][n], &o.C_exponent[i][n]);
        }
    const bool is_special = A->special || ANY(special);
    struct mma_rows finite;
    double found[M][N];
    if (is_special) take_out_special(&o, depth, &finite, found);
    multiply(&o, depth, depth == K_MAX, result);
    for (int i = 0; is_special && i < M; i++)
        for (int n = 0; n < N; n++)
            if (!isfinite(found[i][n])) result[i][n] = isnan(found[i][n]) ? float_of(0x7fffffff) : (float)found[i][n];
    for (int i = 0; i < M; i++)
        for (int n = 0; n < N; n += 2) memcpy(C[i % 8 * 4 + n / 2] + i / 8 * 2, &result[i][n], 2 * sizeof(float));
}

CLONES void mma_read_rows(enum simt_wgmma_types types, uint32_t A[M][K_MAX], struct mma_rows *rows) {
    switch (types) {
    case SIMT_F16: read_rows(fp16, 16, A, rows); break;
    case SIMT_BF16: read_rows(bf16, 16, A, rows); break;
    case SIMT_E4M3_E4M3:
    case SIMT_E4M3_E5M2: read_rows(e4m3, K_MAX, A, rows); break;
    case SIMT_E5M2_E4M3:
    case SIMT_E5M2_E5M2: read_rows(e5m2, K_MAX, A, rows); break;
    }
}

CLONES void mma_warp(enum simt_wgmma_types types, const struct mma_rows *A, uint32_t B[N][K_MAX], bool add,
                     float *const C[WARP_SIZE]) {
    switch (types) {
    case SIMT_F16: multiply_warp(A, fp16, 16, B, add, C); break;
    case SIMT_BF16: multiply_warp(A, bf16, 16, B, add, C); break;
    case SIMT_E4M3_E4M3:
    case SIMT_E5M2_E4M3: multiply_warp(A, e4m3, K_MAX, B, add, C); break;
    case SIMT_E4M3_E5M2:
    case SIMT_E5M2_E5M2: multiply_warp(A, e5m2, K_MAX, B, add, C); break;
    }
}

/* The layout of fragments: the drawing in common/device/tensor.cuh, with g = lane / 4 and t = lane % 4. A register holds `per`
 * numbers: two of 16 bits, or one in TF32. */
INLINE void multiply_fragments(const struct simt_lanes *lanes, struct format format, int per) {
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
    struct mma_rows rows;
    read_rows(format, 8 * per, A, &rows);
    multiply_warp(&rows, format, 8 * per, B, true, C);
}

CLONES static void mma_half(const struct simt_lanes *lanes) { multiply_fragments(lanes, fp16, 2); }
CLONES static void mma_bfloat16(const struct simt_lanes *lanes) { multiply_fragments(lanes, bf16, 2); }
CLONES static void mma_tf32(const struct simt_lanes *lanes) { multiply_fragments(lanes, tf32, 1); }

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
