/* What tensor cores compute, mma.sync and WMMA against plain C; and exp2_approx().
 * For cards of compute_capability = 80 and later: those for which the build compiles this file.
 *
 * How a tensor core adds is not documented. The model below has two parameters: how many products it adds to C at a time,
 * and how many bits it keeps below fp32's. The simulated device is Hopper's: all products at a time and 2 bits, and it must
 * agree with the model bit for bit. A card must keep within a bound of the exact sum. With MMA_JSON=FILE in the environment
 * (- is standard output), each format and kind of numbers gives a line of JSON: how many results differ from each model, and
 * the largest difference from Hopper's, in units of the result's last place. */
#include "device_test.h"

#include <math.h>
#include <mma.h>
#include <stdint.h>

#include "ptx.cuh"

using namespace nvcuda;

static cudaDeviceProp device;

static void need_tensor_cores() {
    need_device();
    EXPECT_OK(cudaGetDeviceProperties(&device, 0));
    if (device.major < 8) cr_skip_test("needs compute capability 8.0");
}

TestSuite(mma, .init = need_tensor_cores, .timeout = 120);
TestSuite(matrices, .init = need_tensor_cores, .timeout = 60);

static uint32_t random_bits() {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16);
}
static double uniform(double low, double high) { return low + (high - low) * random_bits() * 0x1p-32; }
static double normal() { return sqrt(-2.0 * log(uniform(1e-9, 1.0))) * cos(uniform(0.0, 2.0 * M_PI)); }

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- formats ------------------------------------------------------------------------------------------------------------- */

enum mma_format { MMA_HALF, MMA_BFLOAT16, MMA_TF32, MMA_FORMATS };
static const mma_format FORMATS[] = {MMA_HALF, MMA_BFLOAT16, MMA_TF32};

static const struct format {
    const char *name;
    int fraction, lowest, depth; /* bits of the fraction, exponent of the smallest normal number, K of its mma */
} formats[MMA_FORMATS] = {{"fp16", 10, -14, 16}, {"bf16", 7, -126, 16}, {"tf32", 10, -126, 8}};

static double value_of(mma_format format, uint32_t bits) {
    if (format == MMA_BFLOAT16) return float_of(bits << 16);
    if (format == MMA_TF32) return float_of(bits & 0xffffe000u);
    int field = (int)(bits >> 10 & 31), fraction = (int)(bits & 0x3ff);
    double magnitude = field == 31  ? (fraction == 0 ? INFINITY : NAN)
                       : field == 0 ? ldexp(fraction, -24)
                                    : ldexp(fraction + 1024, field - 25);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/* The bits of x, cut off to the format; those of TF32 go on behind its fraction, as they do in a float. */
static uint32_t encode(mma_format format, double x) {
    if (format == MMA_TF32) return bits_of((float)x);
    if (format == MMA_BFLOAT16) return bits_of((float)x) >> 16;
    uint32_t sign = signbit(x) ? 0x8000 : 0;
    double a = fabs(x);
    if (a < 0x1p-14) return sign | (uint32_t)ldexp(a, 24);
    int exponent = ilogb(a);
    cr_assert_leq(exponent, 15);
    return sign | ((uint32_t)ldexp(a, 10 - exponent) - 1024) | (uint32_t)(exponent + 15) << 10;
}

/* ---- the model ---------------------------------------------------------------------------------------------------------- */

static int exponent_of(double x, int lowest) {
    if (x == 0.0) return -100000;
    return ilogb(x) < lowest ? lowest : ilogb(x);
}

static float cut_off(double x) {
    float nearest = (float)x;
    if (fabs(x) >= 0x1p128) return x > 0.0 ? INFINITY : -INFINITY;
    return fabs((double)nearest) > fabs(x) ? nextafterf(nearest, 0.0f) : nearest;
}

struct products {
    int count, exponents[16];
    double values[16];
    products(const format *format, const double *a, const double *b) : count(format->depth) {
        for (int k = 0; k < count; k++) {
            exponents[k] = exponent_of(a[k], format->lowest) + exponent_of(b[k], format->lowest);
            values[k] = a[k] * b[k];
        }
    }
};

/* c + a b, `together` products at a time, aligned to the largest exponent and cut off `extra` bits below fp32's last one. */
static float model(const products &ab, int together, int extra, float c) {
    for (int first = 0; first < ab.count; first += together) {
        int most = exponent_of(c, -126);
        for (int k = first; k < first + together; k++) most = ab.exponents[k] > most ? ab.exponents[k] : most;
        if (most < -1000) {
            c = 0.0f;
            continue;
        }
        int unit = most - 23 - extra;
        int64_t sum = (int64_t)ldexp(c, -unit);
        for (int k = first; k < first + together; k++) sum += (int64_t)ldexp(ab.values[k], -unit);
        c = cut_off(ldexp((double)sum, unit));
    }
    return c;
}

/* Subnormal numbers count as the smallest normal one: they are added at its exponent. */
static double magnitude(double x, int lowest) { return x == 0.0 ? 0.0 : fmax(fabs(x), ldexp(1.0, lowest)); }

/* The distance of two floats in units of the last place. */
static double places_between(float x, float y) {
    int64_t a = (int32_t)(bits_of(x) & INT32_MAX), b = (int32_t)(bits_of(y) & INT32_MAX);
    return fabs((double)((signbit(x) ? -a : a) - (signbit(y) ? -b : b)));
}

/* ---- mma.sync ------------------------------------------------------------------------------------------------------------ */

/* C += A B, `rounds` times in a row, one warp per problem: C (16, 8) floats; A (16, K) and B (K, 8), K = 16 for the formats of 16
 * bits and 8 for TF32, as the 32-bit words of a matrix of 16-bit elements or of floats; B transposed: (8, K). */

// The lane's element e of a C fragment: row g + 8 (e / 2), column 2 t + e % 2.
__device__ static int C_at(int e) {
    int lane = threadIdx.x, row = lane / 4 + e / 2 * 8, col = lane % 4 * 2 + e % 2;
    return row * 8 + col;
}

template <class T> __global__ static void mma_16_bits(const uint32_t *A, const uint32_t *B, float *C, int rounds) {
    int g = threadIdx.x / 4, t = threadIdx.x % 4; // rows of A and of B transposed have 8 words
    A += blockIdx.x * 128, B += blockIdx.x * 64, C += blockIdx.x * 128;
    uint32_t A_reg[4] = {A[g * 8 + t], A[(g + 8) * 8 + t], A[g * 8 + t + 4], A[(g + 8) * 8 + t + 4]};
    float C_reg[4];
    for (int e = 0; e < 4; e++) C_reg[e] = C[C_at(e)];
    for (int round = 0; round < rounds; round++) mma_m16n8k16<T>(C_reg, A_reg, B[g * 8 + t], B[g * 8 + t + 4]);
    for (int e = 0; e < 4; e++) C[C_at(e)] = C_reg[e];
}

__global__ static void mma_tf32(const uint32_t *A, const uint32_t *B, float *C, int rounds) {
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    A += blockIdx.x * 128, B += blockIdx.x * 64, C += blockIdx.x * 128;
    uint32_t A_reg[4] = {A[g * 8 + t], A[(g + 8) * 8 + t], A[g * 8 + t + 4], A[(g + 8) * 8 + t + 4]};
    float C_reg[4];
    for (int e = 0; e < 4; e++) C_reg[e] = C[C_at(e)];
    for (int round = 0; round < rounds; round++) mma_m16n8k8_tf32(C_reg, A_reg, B[g * 8 + t], B[g * 8 + t + 4]);
    for (int e = 0; e < 4; e++) C[C_at(e)] = C_reg[e];
}

static void run_mma(mma_format format, int count, int rounds, const uint32_t *A, const uint32_t *B, float *C) {
    if (format == MMA_HALF) mma_16_bits<__half><<<count, 32>>>(A, B, C, rounds);
    if (format == MMA_BFLOAT16) mma_16_bits<__nv_bfloat16><<<count, 32>>>(A, B, C, rounds);
    if (format == MMA_TF32) mma_tf32<<<count, 32>>>(A, B, C, rounds);
}

enum { PROBLEMS = 64, M = 16, N = 8, RESULTS = PROBLEMS * M * N, CHAIN = 64 };
enum numbers { NORMAL, WIDE, CANCELLING, SUBNORMAL, SPARSE, CHAINED, KINDS };
static const char *const kind_names[KINDS] = {"normal", "wide", "cancelling", "subnormal", "sparse", "chained"};

static double number(mma_format format, numbers kind) {
    int lowest = formats[format].lowest;
    switch (kind) {
    case WIDE: return (random_bits() & 1 ? 1.0 : -1.0) * ldexp(uniform(1.0, 2.0), (int)uniform(-12.0, 12.0));
    case SUBNORMAL: return ldexp(normal(), random_bits() % 2 ? lowest - 2 : lowest / 8);
    case SPARSE: return random_bits() % 3 == 0 ? normal() : 0.0;
    default: return normal();
    }
}

struct problem_of_mma {
    uint32_t A[M][8], B[N][8];
    double a[M][16], b[N][16];
    float C[M][N];
};

static void make_problem(problem_of_mma *p, mma_format format, numbers kind) {
    int depth = formats[format].depth;
    memset(p, 0, sizeof *p);
    for (int k = 0; k < depth; k++) {
        int word = format == MMA_TF32 ? k : k / 2, shift = format == MMA_TF32 ? 0 : k % 2 * 16;
        for (int i = 0; i < M + N; i++) {
            uint32_t bits = encode(format, number(format, kind));
            if (i < M) {
                p->A[i][word] |= bits << shift;
                p->a[i][k] = value_of(format, bits);
            } else {
                p->B[i - M][word] |= bits << shift;
                p->b[i - M][k] = value_of(format, bits);
            }
        }
    }
    for (int i = 0; i < M; i++)
        for (int n = 0; n < N; n++) {
            double product = 0.0;
            for (int k = 0; k < depth; k++) product += p->a[i][k] * p->b[n][k];
            p->C[i][n] = kind == CANCELLING ? (float)-product : (float)number(format, kind);
            if (kind == SUBNORMAL) p->C[i][n] = (float)(product * normal());
        }
}

static FILE *json_file() {
    const char *name = getenv("MMA_JSON");
    if (name == nullptr) return nullptr;
    FILE *file = strcmp(name, "-") == 0 ? stdout : fopen(name, "a");
    cr_assert_not_null(file, "cannot write %s", name);
    return file;
}

static void check_mma(mma_format format, numbers kind) {
    static problem_of_mma problems[PROBLEMS];
    static uint32_t A[PROBLEMS][M][8], B[PROBLEMS][N][8];
    static float C[PROBLEMS][M][N], got[PROBLEMS][M][N];
    const struct format *f = &formats[format];
    int rounds = kind == CHAINED ? CHAIN : 1;
    for (int i = 0; i < PROBLEMS; i++) {
        make_problem(&problems[i], format, kind);
        memcpy(A[i], problems[i].A, sizeof A[i]);
        memcpy(B[i], problems[i].B, sizeof B[i]);
        memcpy(C[i], problems[i].C, sizeof C[i]);
    }
    uint32_t *A_device = **on_device(A), *B_device = **on_device(B);
    float *C_device = **on_device(C);
    run_mma(format, PROBLEMS, rounds, A_device, B_device, C_device);
    EXPECT_OK(cudaMemcpy(got, C_device, sizeof got, cudaMemcpyDeviceToHost));
    EXPECT_OK(cudaFree(A_device));
    EXPECT_OK(cudaFree(B_device));
    EXPECT_OK(cudaFree(C_device));

    enum { TOGETHER = 3, EXTRA = 4 };
    int different[TOGETHER][EXTRA] = {{0}}, from_hopper = 0;
    double most_places = 0.0, most_error = 0.0;
    for (int i = 0; i < PROBLEMS; i++)
        for (int row = 0; row < M; row++)
            for (int col = 0; col < N; col++) {
                const double *a = problems[i].a[row], *b = problems[i].b[col];
                const products ab(f, a, b);
                float device_says = got[i][row][col];
                for (int t = 0; t < TOGETHER; t++)
                    for (int extra = 0; extra < EXTRA && 4 << t <= f->depth; extra++) {
                        float c = C[i][row][col];
                        for (int round = 0; round < rounds; round++) c = model(ab, 4 << t, extra, c);
                        different[t][extra] += !(c == device_says);
                        if (4 << t != f->depth || extra != 2) continue;
                        from_hopper += !(c == device_says);
                        most_places = fmax(most_places, places_between(c, device_says));
                    }
                double exact = C[i][row][col], all = magnitude(exact, -126);
                for (int k = 0; k < f->depth; k++) {
                    exact += rounds * a[k] * b[k];
                    all += rounds * magnitude(a[k], f->lowest) * magnitude(b[k], f->lowest);
                }
                double error = fmax(fabs(device_says - exact) - 0x1p-149, 0.0) / (all > 0.0 ? all : 1.0);
                cr_assert(error <= rounds * 0x1p-19, "%s, %s: (%d, %d) of problem %d is %.9g instead of %.9g, off by 2^%.1f",
                          f->name, kind_names[kind], row, col, i, device_says, exact, log2(error));
                most_error = fmax(most_error, error);
            }

    FILE *file = json_file();
    if (file != nullptr) {
        fprintf(file, "{\"test\": \"mma\", \"device\": \"%s\", \"format\": \"%s\", \"numbers\": \"%s\", \"rounds\": %d, "
                      "\"results\": %d, \"different_from_hopper_model\": %d, \"largest_difference_in_last_places\": %.0f, "
                      "\"largest_error_over_sum_of_magnitudes\": %.3g, \"different_from_model\": {",
                device.name, f->name, kind_names[kind], rounds, RESULTS, from_hopper, most_places, most_error);
        for (int t = 0; t < TOGETHER && 4 << t <= f->depth; t++)
            for (int extra = 0; extra < EXTRA; extra++)
                fprintf(file, "%s\"%d together, %d extra bits\": %d", t + extra > 0 ? ", " : "", 4 << t, extra,
                        different[t][extra]);
        fputs("}}\n", file);
        if (file != stdout) fclose(file);
    }
    if (simulated()) cr_assert_eq(from_hopper, 0, "%s, %s: %d results differ", f->name, kind_names[kind], from_hopper);
    if (simulated() && (kind == NORMAL || kind == WIDE)) /* the numbers tell the models apart */
        for (int t = 0; t < TOGETHER && 4 << t <= f->depth; t++)
            for (int extra = 0; extra < EXTRA; extra++)
                cr_assert((different[t][extra] == 0) == (4 << t == f->depth && extra == 2), "%s, %s: %d at a time, %d bits",
                          f->name, kind_names[kind], 4 << t, extra);
}

static void check_format(mma_format format) {
    for (int kind = 0; kind < KINDS; kind++) check_mma(format, (numbers)kind);
}
Test(mma, half) { check_format(MMA_HALF); }
Test(mma, bfloat16) { check_format(MMA_BFLOAT16); }
Test(mma, tf32) { check_format(MMA_TF32); }

/* Row 0 has an infinity, row 1 two of both signs, row 2 a NaN, row 3 an infinity times zero; row 4 overflows. */
Test(mma, infinities_and_nan) {
    for (mma_format format : FORMATS) {
        uint32_t A[M][8] = {{0}}, B[N][8] = {{0}};
        float C[M][N] = {{0}};
        uint32_t one = encode(format, 1.0), infinity = format == MMA_HALF ? 0x7c00 : format == MMA_TF32 ? 0x7f800000 : 0x7f80;
        uint32_t minus = format == MMA_TF32 ? 0x80000000u : 0x8000;
        for (int n = 0; n < N; n++) B[n][0] = B[n][1] = one;
        for (int i = 0; i < M; i++) A[i][0] = one;
        A[0][0] = infinity;
        A[1][0] = infinity, A[1][1] = infinity | minus;
        A[2][0] = format == MMA_TF32 ? 0x7fc00000 : infinity + 1;
        A[3][2] = infinity;
        if (format != MMA_HALF) A[4][0] = A[4][1] = encode(format, 0x1p127);
        for (int n = 0; n < N; n++) C[5][n] = INFINITY, C[4][n] = format == MMA_HALF ? 0.0f : 0x1p127f;
        float *C_device = *on_device(C);
        run_mma(format, 1, 1, *on_device(A), *on_device(B), C_device);
        EXPECT_OK(cudaMemcpy(C, C_device, sizeof C, cudaMemcpyDeviceToHost));
        for (int n = 0; n < N; n++) {
            cr_assert_eq(C[0][n], INFINITY, "%s: %g", formats[format].name, C[0][n]);
            cr_assert(isnan(C[1][n]) && isnan(C[2][n]) && isnan(C[3][n]), "%s: %g %g %g", formats[format].name, C[1][n],
                      C[2][n], C[3][n]);
            cr_assert_eq(C[4][n], format == MMA_HALF ? 1.0f : INFINITY, "%s: %g", formats[format].name, C[4][n]);
            cr_assert_eq(C[5][n], INFINITY);
            for (int i = 6; i < M; i++) cr_assert_eq(C[i][n], 1.0f);
        }
    }
}

/* ---- WMMA ---------------------------------------------------------------------------------------------------------------- */

/* D = A B + C, D, C (16, 16) floats, A and B (16, 16), each in its own order of storage; through shared memory, or straight
 * from and to global memory. Rows are `stride` elements apart, in all matrices. */
template <class T, class A_order, class B_order>
__device__ static void multiply(const T *A, const T *B, const float *C, float *D, int stride, wmma::layout_t order) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, A_order> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, B_order> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c, zero;
    wmma::load_matrix_sync(a, A, stride);
    wmma::load_matrix_sync(b, B, stride);
    wmma::load_matrix_sync(c, C, stride, order);
    wmma::fill_fragment(zero, 0.0f);
    for (int i = 0; i < c.num_elements; i++) c.x[i] += zero.x[i];
    wmma::mma_sync(c, a, b, c);
    wmma::store_matrix_sync(D, c, stride, order);
}

template <class T, class A_order, class B_order>
__global__ static void wmma_product(const T *A, const T *B, const float *C, float *D, int stride, int C_by_columns,
                                    int in_shared) {
    __shared__ __align__(32) T A_smem[16 * 32], B_smem[16 * 32];
    __shared__ __align__(32) float C_smem[16 * 32];
    wmma::layout_t order = C_by_columns ? wmma::mem_col_major : wmma::mem_row_major;
    if (!in_shared) {
        multiply<T, A_order, B_order>(A, B, C, D, stride, order);
        return;
    }
    for (int i = threadIdx.x; i < 16 * stride; i += 32) A_smem[i] = A[i], B_smem[i] = B[i], C_smem[i] = C[i];
    __syncwarp(); // the matrices are complete before any lane reads them
    multiply<T, A_order, B_order>(A_smem, B_smem, C_smem, C_smem, stride, order);
    __syncwarp(); // the result is complete before any lane reads it
    for (int i = threadIdx.x; i < 16 * stride; i += 32)
        if (i % stride < 16) D[i] = C_smem[i];
}

template <class T>
static void product(int A_by_columns, int B_by_columns, int C_by_columns, int in_shared, int stride, const uint16_t *A,
                    const uint16_t *B, const float *C, float *D) {
    auto kernel = A_by_columns ? (B_by_columns ? wmma_product<T, wmma::col_major, wmma::col_major>
                                               : wmma_product<T, wmma::col_major, wmma::row_major>)
                               : (B_by_columns ? wmma_product<T, wmma::row_major, wmma::col_major>
                                               : wmma_product<T, wmma::row_major, wmma::row_major>);
    kernel<<<1, 32>>>((const T *)A, (const T *)B, C, D, stride, C_by_columns, in_shared);
}

static void check_wmma(mma_format format, int A_by_columns, int B_by_columns, int C_by_columns, int in_shared,
                       int stride) {
    uint16_t A[16 * 32] = {0}, B[16 * 32] = {0};
    float C[16 * 32] = {0}, got[16 * 32];
    double a[16][16], b[16][16];
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            uint16_t A_bits = (uint16_t)encode(format, normal()), B_bits = (uint16_t)encode(format, normal());
            A[A_by_columns ? j * stride + i : i * stride + j] = A_bits; /* row i, k = j */
            B[B_by_columns ? j * stride + i : i * stride + j] = B_bits; /* k = i, column j */
            C[C_by_columns ? j * stride + i : i * stride + j] = (float)normal();
            a[i][j] = value_of(format, A_bits);
            b[j][i] = value_of(format, B_bits);
        }
    uint16_t *A_device = on_device(A), *B_device = on_device(B);
    float *C_device = on_device(C), *D_device = on_device(C);
    auto run = format == MMA_HALF ? product<__half> : product<__nv_bfloat16>;
    run(A_by_columns, B_by_columns, C_by_columns, in_shared, stride, A_device, B_device, C_device, D_device);
    EXPECT_OK(cudaMemcpy(got, D_device, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            int at = C_by_columns ? j * stride + i : i * stride + j;
            double exact = C[at], all = fabs(exact);
            for (int k = 0; k < 16; k++) exact += a[i][k] * b[j][k], all += fabs(a[i][k] * b[j][k]);
            cr_assert(fabs(got[at] - exact) <= 0x1p-19 * all, "%s, orders %d %d %d, stride %d: (%d, %d) is %g instead of %g",
                      formats[format].name, A_by_columns, B_by_columns, C_by_columns, stride, i, j, got[at], exact);
            if (simulated()) cr_assert_eq(got[at], model(products(&formats[format], a[i], b[j]), 16, 2, C[at]));
        }
    EXPECT_OK(cudaFree(A_device));
    EXPECT_OK(cudaFree(B_device));
    EXPECT_OK(cudaFree(C_device));
    EXPECT_OK(cudaFree(D_device));
}

Test(matrices, wmma) {
    for (mma_format format : {MMA_HALF, MMA_BFLOAT16})
        for (int orders = 0; orders < 8; orders++)
            for (int in_shared = 0; in_shared < 2; in_shared++)
                for (int stride = 16; stride <= 24; stride += 8)
                    check_wmma(format, orders & 1, orders >> 1 & 1, orders >> 2, in_shared, stride);
}

/* ---- exp2_approx --------------------------------------------------------------------------------------------------------- */

__global__ static void exponentials(const float *in, float *out) {
    int i = blockIdx.x * 32 + threadIdx.x;
    out[i] = exp2_approx(in[i]);
}

Test(matrices, exp2_approx) {
    enum { COUNT = 4096 };
    static float in[COUNT], got[COUNT];
    for (int i = 0; i < COUNT; i++) in[i] = (float)uniform(-130.0, 127.9);
    in[0] = -INFINITY, in[1] = -126.0f, in[2] = -126.5f, in[3] = 0.0f, in[4] = -3.4e38f, in[5] = INFINITY;
    float *out = filled_on_device<float>(0xff, COUNT);
    exponentials<<<COUNT / 32, 32>>>(on_device(in), out);
    EXPECT_OK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++) {
        double exact = exp2(in[i]);
        if (exact < 0x1p-126) exact = 0.0;
        cr_assert(got[i] == exact || fabs(got[i] - exact) <= 0x1p-21 * exact, "2^%.9g is %.9g instead of %.9g", in[i],
                  got[i], exact);
    }
}
