/* Tensor-core instructions against plain C: ldmatrix, stmatrix, mma.sync, WMMA, and what the meter counts of them.
 *
 * How a tensor core adds is not documented. The model below has two parameters: how many products it adds to C at a time,
 * and how many bits it keeps below fp32's. The simulated device is Hopper's: all products at a time and 2 bits, and it must
 * agree with the model bit for bit. A card must keep within a bound of the exact sum. With MMA_JSON=FILE in the environment
 * (- is standard output), each format and kind of numbers gives a line of JSON: how many results differ from each model, and
 * the largest difference from Hopper's, in units of the result's last place. */
#include "mma_kernels.h"

#include "simulated.h"

#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char *simt_last_report(void) ON_SIMULATED_DEVICE;

static struct cudaDeviceProp device;
static bool simulated(void) { return simt_meter_start != NULL; }

static void need_tensor_cores(void) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) cr_skip_test("no CUDA device");
    cr_assert_eq(cudaGetDeviceProperties(&device, 0), cudaSuccess);
    if (device.major < 8) cr_skip_test("needs compute capability 8.0");
}

static void need_meter(void) {
    need_tensor_cores();
    if (!simulated()) cr_skip_test("needs the simulated device");
}

TestSuite(mma, .init = need_tensor_cores, .timeout = 120);
TestSuite(matrices, .init = need_tensor_cores, .timeout = 60);
TestSuite(mma_meter, .init = need_meter, .timeout = 60);

static void *on_device(const void *host, size_t bytes) {
    void *memory = NULL;
    cr_assert_eq(cudaMalloc(&memory, bytes), cudaSuccess);
    cr_assert_eq(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    return memory;
}

static void to_host(void *host, const void *memory, size_t bytes) {
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess, "%s", simulated() ? simt_last_report() : "");
    cr_assert_eq(cudaMemcpy(host, memory, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
}

static uint32_t random_bits(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16);
}
static double uniform(double low, double high) { return low + (high - low) * random_bits() * 0x1p-32; }
static double normal(void) { return sqrt(-2.0 * log(uniform(1e-9, 1.0))) * cos(uniform(0.0, 2.0 * M_PI)); }

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

/* ---- formats ------------------------------------------------------------------------------------------------------------ */

static const struct format {
    const char *name;
    int fraction, lowest, depth; /* bits of the fraction, exponent of the smallest normal number, K of its mma */
} formats[MMA_FORMATS] = {
    [MMA_HALF] = {"fp16", 10, -14, 16}, [MMA_BFLOAT16] = {"bf16", 7, -126, 16}, [MMA_TF32] = {"tf32", 10, -126, 8}};

static double value_of(enum mma_format format, uint32_t bits) {
    if (format == MMA_BFLOAT16) return float_of(bits << 16);
    if (format == MMA_TF32) return float_of(bits & 0xffffe000u);
    int field = (int)(bits >> 10 & 31), fraction = (int)(bits & 0x3ff);
    double magnitude = field == 31  ? (fraction == 0 ? INFINITY : NAN)
                       : field == 0 ? ldexp(fraction, -24)
                                    : ldexp(fraction + 1024, field - 25);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/* The bits of x, cut off to the format; those of TF32 go on behind its fraction, as they do in a float. */
static uint32_t encode(enum mma_format format, double x) {
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

/* c + a b, `together` products at a time, aligned to the largest exponent and cut off `extra` bits below fp32's last one. */
static float model(const struct format *format, int together, int extra, const double *a, const double *b, float c) {
    for (int first = 0; first < format->depth; first += together) {
        int most = exponent_of(c, -126);
        for (int k = first; k < first + together; k++) {
            int exponent = exponent_of(a[k], format->lowest) + exponent_of(b[k], format->lowest);
            if (exponent > most) most = exponent;
        }
        if (most < -1000) {
            c = 0.0f;
            continue;
        }
        int unit = most - 23 - extra;
        int64_t sum = (int64_t)ldexp(c, -unit);
        for (int k = first; k < first + together; k++) sum += (int64_t)ldexp(a[k] * b[k], -unit);
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

/* ---- mma.sync ----------------------------------------------------------------------------------------------------------- */

enum { PROBLEMS = 64, M = 16, N = 8, RESULTS = PROBLEMS * M * N, CHAIN = 64 };
enum numbers { NORMAL, WIDE, CANCELLING, SUBNORMAL, SPARSE, CHAINED, KINDS };
static const char *const kind_names[KINDS] = {"normal", "wide", "cancelling", "subnormal", "sparse", "chained"};

static double number(enum mma_format format, enum numbers kind) {
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

static void make_problem(struct problem_of_mma *p, enum mma_format format, enum numbers kind) {
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

static FILE *json_file(void) {
    const char *name = getenv("MMA_JSON");
    if (name == NULL) return NULL;
    FILE *file = strcmp(name, "-") == 0 ? stdout : fopen(name, "a");
    cr_assert_not_null(file, "cannot write %s", name);
    return file;
}

static void check_mma(enum mma_format format, enum numbers kind) {
    static struct problem_of_mma problems[PROBLEMS];
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
    void *A_device = on_device(A, sizeof A), *B_device = on_device(B, sizeof B), *C_device = on_device(C, sizeof C);
    run_mma(format, PROBLEMS, rounds, A_device, B_device, C_device);
    to_host(got, C_device, sizeof got);
    cudaFree(A_device);
    cudaFree(B_device);
    cudaFree(C_device);

    enum { TOGETHER = 3, EXTRA = 4 };
    int different[TOGETHER][EXTRA] = {{0}}, from_hopper = 0;
    double most_places = 0.0, most_error = 0.0;
    for (int i = 0; i < PROBLEMS; i++)
        for (int row = 0; row < M; row++)
            for (int col = 0; col < N; col++) {
                const double *a = problems[i].a[row], *b = problems[i].b[col];
                float device_says = got[i][row][col];
                for (int t = 0; t < TOGETHER; t++)
                    for (int extra = 0; extra < EXTRA && 4 << t <= f->depth; extra++) {
                        float c = C[i][row][col];
                        for (int round = 0; round < rounds; round++) c = model(f, 4 << t, extra, a, b, c);
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
    if (file != NULL) {
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

static void check_format(enum mma_format format) {
    for (int kind = 0; kind < KINDS; kind++) check_mma(format, kind);
}
Test(mma, half) { check_format(MMA_HALF); }
Test(mma, bfloat16) { check_format(MMA_BFLOAT16); }
Test(mma, tf32) { check_format(MMA_TF32); }

/* Row 0 has an infinity, row 1 two of both signs, row 2 a NaN, row 3 an infinity times zero; row 4 overflows. */
Test(mma, infinities_and_nan) {
    for (int format = 0; format < MMA_FORMATS; format++) {
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
        void *A_device = on_device(A, sizeof A), *B_device = on_device(B, sizeof B), *C_device = on_device(C, sizeof C);
        run_mma(format, 1, 1, A_device, B_device, C_device);
        to_host(C, C_device, sizeof C);
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

/* ---- ldmatrix, stmatrix ------------------------------------------------------------------------------------------------- */

enum { ROWS = 64 };

/* Different rows for all lanes, or any rows, some of them twice. */
static void pick_rows(int pick[32], bool different) {
    int rows[ROWS];
    for (int i = 0; i < ROWS; i++) rows[i] = i;
    for (int i = 0; i < 32; i++) {
        int j = i + (int)(random_bits() % (unsigned)(ROWS - i)), row = rows[j];
        rows[j] = rows[i], rows[i] = row;
        pick[i] = different ? row : (int)(random_bits() % ROWS);
    }
}

Test(matrices, ldmatrix) {
    uint16_t in[ROWS][8];
    for (int i = 0; i < ROWS * 8; i++) in[i / 8][i % 8] = (uint16_t)(i * 40503 + 1);
    void *in_device = on_device(in, sizeof in);
    for (int matrices = 1; matrices <= 4; matrices *= 2)
        for (int transposed = 0; transposed < 2; transposed++)
            for (int trial = 0; trial < 4; trial++) {
                int pick[32];
                uint32_t got[32 * 4] = {0};
                pick_rows(pick, trial % 2);
                void *pick_device = on_device(pick, sizeof pick), *out = on_device(got, sizeof got);
                run_ldmatrix(matrices, transposed, in_device, pick_device, out);
                to_host(got, out, sizeof got);
                for (int lane = 0; lane < 32; lane++)
                    for (int i = 0; i < matrices; i++)
                        for (int half = 0; half < 2; half++) {
                            int row = lane / 4, col = lane % 4 * 2 + half;
                            int expected = transposed ? in[pick[8 * i + col]][row] : in[pick[8 * i + row]][col];
                            int element = (int)(got[lane * matrices + i] >> 16 * half & 0xffff);
                            cr_assert_eq(element, expected, "x%d%s: lane %d, register %d, half %d", matrices,
                                         transposed ? ".trans" : "", lane, i, half);
                        }
                cudaFree(pick_device);
                cudaFree(out);
            }
}

Test(matrices, stmatrix) {
    if (device.major < 9) cr_skip_test("needs compute capability 9.0");
    uint32_t in[32][4];
    for (int i = 0; i < 128; i++) in[i / 4][i % 4] = (uint32_t)i * 2654435761u;
    void *in_device = on_device(in, sizeof in);
    for (int transposed = 0; transposed < 2; transposed++) {
        int pick[32];
        uint16_t got[ROWS][8], expected[ROWS][8];
        memset(expected, 0xff, sizeof expected);
        pick_rows(pick, true);
        for (int lane = 0; lane < 32; lane++)
            for (int i = 0; i < 4; i++)
                for (int half = 0; half < 2; half++) {
                    int row = lane / 4, col = lane % 4 * 2 + half;
                    uint16_t element = (uint16_t)(in[lane][i] >> 16 * half);
                    expected[pick[8 * i + (transposed ? col : row)]][transposed ? row : col] = element;
                }
        void *pick_device = on_device(pick, sizeof pick), *out = on_device(expected, sizeof expected);
        cr_assert_eq(cudaMemset(out, 0, sizeof got), cudaSuccess);
        run_stmatrix(transposed, in_device, pick_device, out);
        to_host(got, out, sizeof got);
        for (int i = 0; i < ROWS * 8; i++)
            cr_assert_eq(got[i / 8][i % 8], expected[i / 8][i % 8], "row %d, column %d", i / 8, i % 8);
    }
}

/* ---- WMMA --------------------------------------------------------------------------------------------------------------- */

static void check_wmma(enum mma_format format, int A_by_columns, int B_by_columns, int C_by_columns, int in_shared,
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
    void *A_device = on_device(A, sizeof A), *B_device = on_device(B, sizeof B);
    void *C_device = on_device(C, sizeof C), *D_device = on_device(C, sizeof C);
    run_wmma(format, A_by_columns, B_by_columns, C_by_columns, in_shared, stride, A_device, B_device, C_device, D_device);
    to_host(got, D_device, sizeof got);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            int at = C_by_columns ? j * stride + i : i * stride + j;
            double exact = C[at], all = fabs(exact);
            for (int k = 0; k < 16; k++) exact += a[i][k] * b[j][k], all += fabs(a[i][k] * b[j][k]);
            cr_assert(fabs(got[at] - exact) <= 0x1p-19 * all, "%s, orders %d %d %d, stride %d: (%d, %d) is %g instead of %g",
                      formats[format].name, A_by_columns, B_by_columns, C_by_columns, stride, i, j, got[at], exact);
            if (simulated()) cr_assert_eq(got[at], model(&formats[format], 16, 2, a[i], b[j], C[at]));
        }
    cudaFree(A_device);
    cudaFree(B_device);
    cudaFree(C_device);
    cudaFree(D_device);
}

Test(matrices, wmma) {
    for (int format = MMA_HALF; format <= MMA_BFLOAT16; format++)
        for (int orders = 0; orders < 8; orders++)
            for (int in_shared = 0; in_shared < 2; in_shared++)
                for (int stride = 16; stride <= 24; stride += 8)
                    check_wmma(format, orders & 1, orders >> 1 & 1, orders >> 2, in_shared, stride);
}

/* ---- exp2_approx -------------------------------------------------------------------------------------------------------- */

Test(matrices, exp2_approx) {
    enum { COUNT = 4096 };
    static float in[COUNT], got[COUNT];
    for (int i = 0; i < COUNT; i++) in[i] = (float)uniform(-130.0, 127.9);
    in[0] = -INFINITY, in[1] = -126.0f, in[2] = -126.5f, in[3] = 0.0f, in[4] = -3.4e38f, in[5] = INFINITY;
    void *in_device = on_device(in, sizeof in), *out = on_device(in, sizeof in);
    run_exp2_approx(in_device, out, COUNT);
    to_host(got, out, sizeof got);
    for (int i = 0; i < COUNT; i++) {
        double exact = exp2(in[i]);
        if (exact < 0x1p-126) exact = 0.0;
        cr_assert(got[i] == exact || fabs(got[i] - exact) <= 0x1p-21 * exact, "2^%.9g is %.9g instead of %.9g", in[i],
                  got[i], exact);
    }
}

/* ---- the meter ---------------------------------------------------------------------------------------------------------- */

static void expect_totals(const char *what, int stride, const char *requests, const char *wavefronts,
                          const char *conflicts, int expected, int least) {
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess, "%s", simt_last_report());
    simt_meter_stop();
    char *text = simt_meter_json();
    cJSON *json = cJSON_Parse(text);
    const cJSON *totals = cJSON_GetObjectItem(cJSON_GetArrayItem(json, 0), "totals");
    const char *const names[] = {requests, wavefronts, conflicts};
    const int values[] = {1, expected, expected - least};
    for (int i = 0; i < 3; i++) {
        const cJSON *item = cJSON_GetObjectItem(totals, names[i]);
        cr_assert(cJSON_IsNumber(item), "no number \"%s\"", names[i]);
        cr_assert_eq(item->valueint, values[i], "%s, rows %d bytes apart: %s is %d instead of %d", what, stride, names[i],
                     item->valueint, values[i]);
    }
    cJSON_Delete(json);
    free(text);
}

/* 8 rows of 16 bytes are all 32 banks when they lie side by side. */
static const struct strided {
    int bytes, ways;
} strides[] = {{16, 1}, {32, 2}, {48, 1}, {64, 4}, {128, 8}, {144, 1}, {0, 1}};

Test(mma_meter, wavefronts_of_ldmatrix) {
    uint32_t zeros[32] = {0};
    void *out = on_device(zeros, sizeof zeros);
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        for (int matrices = 1; matrices <= 4; matrices *= 2) {
            simt_meter_start(1);
            run_ldmatrix_stride(matrices, strides[i].bytes, out);
            expect_totals("ldmatrix", strides[i].bytes, "shared_ldmatrix_requests", "shared_ldmatrix_wavefronts",
                          "shared_ldmatrix_conflicts", matrices * strides[i].ways, matrices);
        }
}

Test(mma_meter, wavefronts_of_stmatrix) {
    uint32_t zeros[32] = {0};
    void *out = on_device(zeros, sizeof zeros);
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        if (strides[i].bytes == 0 || strides[i].bytes > 128) continue; /* rows of its own for each lane, in 4 KiB */
        simt_meter_start(1);
        run_stmatrix_stride(strides[i].bytes, out);
        expect_totals("stmatrix", strides[i].bytes, "shared_store_requests", "shared_store_wavefronts",
                      "shared_store_conflicts", 4 * strides[i].ways, 4);
    }
}

/* The lines of the kernel, not of the header with the instruction. */
Test(mma_meter, lines_are_the_kernels) {
    uint32_t zeros[32] = {0};
    char *text = NULL;
    size_t bytes = 0;
    void *out = on_device(zeros, sizeof zeros);
    simt_meter_start(1);
    run_ldmatrix_stride(4, 16, out);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess);
    simt_meter_stop();
    FILE *file = open_memstream(&text, &bytes);
    simt_meter_print(file, 0);
    fclose(file);
    cr_assert_not_null(strstr(text, "shared ldmatrix 16 B           1 requests            4 wavefronts"), "%s", text);
    cr_assert_not_null(strstr(text, "ldmatrix.x4                      1 times"), "%s", text);
    cr_assert_null(strstr(text, "ptx.cuh"), "%s", text);
    cr_assert_null(strstr(text, "local"), "fragments are registers:\n%s", text);
    free(text);
}
