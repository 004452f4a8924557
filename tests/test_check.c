/* The check itself: it must accept what is right within its bound and refuse everything else, NaN above all. */
#include <criterion/criterion.h>

#include "border.h"
#include "check.h"
#include "inputs.h"
#include "reference.h"
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 6 };
static const double ref[COUNT] = {1.0, -2.0, 0.5, 0.0, 3.0, -1.0};
static const double bound = 1e-5;

static void copy_ref(float out[COUNT]) {
    for (int i = 0; i < COUNT; i++) out[i] = (float)ref[i];
}

Test(check, accepts_the_reference_itself) {
    float out[COUNT];
    copy_ref(out);
    struct check check = check_values(out, ref, COUNT, bound);
    cr_assert(check.ok);
    cr_assert_eq(check.wrong, 0);
}

Test(check, refuses_a_single_wrong_element) {
    for (int i = 0; i < COUNT; i++) {
        float out[COUNT];
        copy_ref(out);
        out[i] += 1e-3f;
        struct check check = check_values(out, ref, COUNT, bound);
        cr_assert_not(check.ok, "element %d", i);
        cr_assert_eq(check.wrong, 1);
        cr_assert_eq(check.first_wrong[0], (size_t)i);
    }
}

Test(check, refuses_nan_and_infinity_wherever_they_stand) {
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int kind = 0; kind < 3; kind++) {
        for (int i = 0; i < COUNT; i++) {
            float out[COUNT];
            copy_ref(out);
            out[i] = bad[kind];
            struct check check = check_values(out, ref, COUNT, bound);
            cr_assert_not(check.ok);
            cr_assert(!(check.err_max <= 1e30) && !(check.err_rel <= 1e30), "the error reported is not finite");
            cr_assert_lt(first_not_finite(out, COUNT, false), COUNT);
        }
    }
}

Test(check, a_zero_reference_must_be_met_by_zeros) {
    const double zeros[3] = {0};
    cr_assert(check_values((float[]){0, 0, 0}, zeros, 3, bound).ok);
    cr_assert_not(check_values((float[]){0, 1e-30f, 0}, zeros, 3, bound).ok);
    cr_assert_not(check_values((float[]){0, NAN, 0}, zeros, 3, bound).ok);
}

/* What is left of terms that cancel may be 0 or rounding alone: the error is relative to the terms, and no bound is above 1. */
Test(check, terms_that_cancel) {
    const double size[3] = {1, 2, 2}, rests[][3] = {{0, 0, 0}, {0, 1e-9, 0}, {0, 2.9e-5, 0}};
    for (int i = 0; i < 3; i++) {
        float out[3] = {(float)rests[i][0], (float)rests[i][1] + 1e-6f, (float)rests[i][2]};
        struct check check = check_gradient(out, rests[i], size, 3, bound);
        cr_expect(check.ok);
        cr_expect_leq(check.bound_rel, 1.0, "case %d: bound %g", i, check.bound_rel);
        cr_expect_float_eq(check.err_rel, 1e-6 / 3, 1e-7);
        out[1] = (float)rests[i][1] + 1e-3f;
        cr_expect_not(check_gradient(out, rests[i], size, 3, bound).ok, "case %d: a wrong rest passes", i);
        out[1] = NAN;
        cr_expect_not(check_gradient(out, rests[i], size, 3, bound).ok, "case %d: NaN passes", i);
    }
    const float zeros[3] = {0};
    const double rest[3] = {0, 3.1e-5, 0}; /* just above what rounding explains: now 0 is wrong */
    cr_expect_not(check_gradient(zeros, rest, size, 3, bound).ok);
    cr_expect_not(check_gradient((float[]){0, 1e-30f, 0}, rests[0], rests[0], 3, bound).ok, "there are no terms");
}

/* Where rounding may be as large as what is compared, not even the reference itself is right. */
Test(check, a_bound_that_says_nothing_fails) {
    float out[COUNT];
    copy_ref(out);
    const double infinite = INFINITY, unknown = NAN;
    cr_expect(check_values(out, ref, COUNT, 0.2).ok && check_gradient(out, ref, ref, COUNT, 0.2).ok);
    cr_expect(check_logsumexp(out, ref, COUNT, 0.2).ok);
    for (int i = 0; i < 3; i++) {
        double loose = i == 0 ? 0.4 : i == 1 ? infinite : unknown;
        struct check checks[] = {check_values(out, ref, COUNT, loose), check_gradient(out, ref, ref, COUNT, loose),
                                 check_logsumexp(out, ref, COUNT, loose)};
        for (int k = 0; k < 3; k++) cr_expect(checks[k].vague && !checks[k].ok, "bound %g, check %d", loose, k);
    }
}

/* The error of a logarithm is that of the scores, however large L is. */
Test(check, logsumexp_is_held_to_an_absolute_error) {
    const double L[4] = {1e4, -1e4, 0, 1e-3};
    cr_expect(check_logsumexp((float[]){1e4f + 1e-3f, -1e4f, 0, 1e-3f}, L, 4, 1e-3).ok);
    cr_expect_not(check_logsumexp((float[]){1e4f + 1e-2f, -1e4f, 0, 1e-3f}, L, 4, 1e-3).ok, "one element, ten times the bound");
    cr_expect_not(check_logsumexp((float[]){1e4f + 3e-3f, -1e4f - 3e-3f, 3e-3f, 4e-3f}, L, 4, 1e-3).ok, "each, three times");
    cr_expect_lt(check_logsumexp((float[]){1e4f, -1e4f, 0, 1e-3f}, L, 4, 1e-3).bound_rel, 1e-6);
    const double small[2] = {1e-9, 0}; /* L passes through zero */
    cr_expect(check_logsumexp((float[]){1e-6f, 1e-6f}, small, 2, 1e-5).ok);
    cr_expect_not(check_logsumexp((float[]){1e-4f, 0}, small, 2, 1e-5).ok);
}

Test(check, logsumexp_of_an_empty_row_is_minus_infinity_and_nothing_else) {
    const double empty[2] = {-INFINITY, 1.0};
    cr_assert(check_logsumexp((float[]){-INFINITY, 1.0f}, empty, 2, bound).ok);
    cr_assert_not(check_logsumexp((float[]){-1e30f, 1.0f}, empty, 2, bound).ok);
    cr_assert_not(check_logsumexp((float[]){NAN, 1.0f}, empty, 2, bound).ok);
    cr_assert_not(check_logsumexp((float[]){INFINITY, 1.0f}, empty, 2, bound).ok);
    cr_assert_not(check_logsumexp((float[]){-INFINITY, -INFINITY}, empty, 2, bound).ok);
}

/* A bound that grows too fast accepts anything: at ordinary sizes it stays far below the error of a wrong kernel. */
Test(check, bound_is_small_at_ordinary_sizes) {
    cr_assert_lt(rounding_bound(10.0, 4096.0), 2e-5);
    cr_assert_lt(rounding_bound(10.0, 203.0), 1e-5);
    cr_assert_gt(rounding_bound(1e4, 64.0), 1e-3, "scores near 1e4 cannot be held to 1e-5 in fp32");
}

/* The bias of O over random keys on a card, once measured: the bound lies above it, and at usual lengths it is a small part of
 * what rounding to 16 bits may do. */
Test(check, tensor_cores_cut_off_what_was_measured) {
    const double keys[] = {0x1p20, 0x1p22, 0x1p24}, measured[] = {1.4e-3, 4.1e-3, 1.6e-2};
    for (int i = 0; i < 3; i++) {
        double bound = tensor_core_bound(BF16, keys[i]);
        cr_expect(measured[i] < bound && bound < 3.0 * measured[i], "%g keys: %g", keys[i], bound);
    }
    cr_assert_lt(tensor_core_bound(FP16, 4096.0), 0.02 * 2.0 * unit_roundoff(FP16));
    cr_assert_lt(tensor_core_bound(BF16, 65536.0), 0.03 * 2.0 * unit_roundoff(BF16));
    cr_assert_lt(0.25 * unit_roundoff(FP16) + tensor_core_bound(FP16, 65536.0), 0.7 * unit_roundoff(FP16), "it would hide a truncated P");
    cr_assert_eq(tensor_core_bound(FP32, 0x1p24), 0.0, "a sum in fp32 outside of a tensor core is rounded");
}

/* Does check_run() accept the reference's outputs, of which one is too small by this part of itself? */
static bool is_accepted(struct problem p, enum tensor smaller, double part) {
    struct run run = {.problem = p, .input = INPUT_RANDOM};
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) {
        run.host[tensor] = calloc(tensor_elements(&p, tensor), sizeof(float));
        if (!is_output(tensor)) fill_input(run.host[tensor], &p, tensor, INPUT_RANDOM, 1);
    }
    double *result[TENSOR_COUNT] = {NULL};
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++)
        if (is_output(tensor)) result[tensor] = malloc(tensor_elements(&p, tensor) * sizeof(double));
    bool backward = is_backward(smaller);
    float *const *in = run.host;
    reference_forward(&p, in[TENSOR_Q], in[TENSOR_K], in[TENSOR_V], result[TENSOR_O], result[TENSOR_L]);
    if (backward)
        reference_backward(&p, in[TENSOR_Q], in[TENSOR_K], in[TENSOR_V], in[TENSOR_dO], result[TENSOR_dQ], result[TENSOR_dK],
                           result[TENSOR_dV]);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++)
        for (size_t i = 0; is_output(tensor) && (backward || !is_backward(tensor)) && i < tensor_elements(&p, tensor); i++)
            run.host[tensor][i] = (float)(result[tensor][i] * (tensor == smaller ? 1.0 - part : 1.0));
    struct verdict verdict = check_run(&run, backward, 1e15);
    for (enum tensor tensor = 0; tensor < TENSOR_COUNT; tensor++) free(run.host[tensor]), free(result[tensor]);
    free_verdict(&verdict);
    return verdict.ok;
}

Test(check, long_sums_of_a_tensor_core_are_accepted) {
    struct problem p = {.batch = 1, .heads = 1, .N_q = 16, .N_kv = 1 << 19, .d = 8, .scale = 0.35f, .dtype = FP16};
    cr_expect(is_accepted(p, TENSOR_O, 1.5e-3), "a bias that a tensor core may leave");
    cr_expect_not(is_accepted(p, TENSOR_O, 3e-3));
    p.N_kv = 4096;
    cr_expect_not(is_accepted(p, TENSOR_O, 1.5e-3), "a short sum");
    p = (struct problem){.batch = 1, .heads = 4, .N_q = 1 << 16, .N_kv = 2, .d = 8, .scale = 0.35f, .dtype = FP16};
    cr_expect_not(is_accepted(p, TENSOR_dV, 1.9e-3), "each head has its own sum");
    p.heads_kv = 1;
    cr_expect(is_accepted(p, TENSOR_dV, 1.9e-3), "one sum over the queries of four heads");
    cr_expect(is_accepted(p, TENSOR_dK, 1.9e-3));
    cr_expect_not(is_accepted(p, TENSOR_dV, 3e-3));
    p.dtype = FP32;
    cr_expect_not(is_accepted(p, TENSOR_dV, 1.9e-3));
}

Test(check, inputs_have_unit_variance_and_depend_on_seed_and_tensor) {
    enum { ROWS = 4096, D = 16 };
    static float q[ROWS * D], k[ROWS * D], other[ROWS * D];
    const struct problem problem = {.batch = 8, .heads = 8, .N_q = 64, .N_kv = 64, .d = D};
    cr_assert_eq(tensor_rows(&problem, TENSOR_Q), ROWS);
    fill_input(q, &problem, TENSOR_Q, INPUT_RANDOM, 1);
    fill_input(k, &problem, TENSOR_K, INPUT_RANDOM, 1);
    fill_input(other, &problem, TENSOR_Q, INPUT_RANDOM, 2);
    double mean = 0, square = 0, product = 0, seeds = 0;
    for (int i = 0; i < ROWS * D; i++) {
        mean += (double)q[i];
        square += (double)q[i] * (double)q[i];
        product += (double)q[i] * (double)k[i];
        seeds += (double)q[i] * (double)other[i];
    }
    double n = ROWS * D; /* the standard error of each mean below is about 1 / sqrt(n) = 0.004 */
    cr_assert_float_eq(mean / n, 0.0, 0.02);
    cr_assert_float_eq(square / n, 1.0, 0.03);
    cr_assert_float_eq(product / n, 0.0, 0.02);
    cr_assert_float_eq(seeds / n, 0.0, 0.02);
}

Test(check, identity_input_has_one_one_a_row) {
    float values[3 * 4];
    const struct problem problem = {.batch = 1, .heads = 1, .N_q = 5, .N_kv = 3, .d = 4};
    fill_input(values, &problem, TENSOR_V, INPUT_IDENTITY, 1);
    for (int i = 0; i < 3; i++)
        for (int c = 0; c < 4; c++) cr_assert_eq(values[i * 4 + c], i == c ? 1.0f : 0.0f);
}

/* One element in a thousand of Q, K and V has a standard deviation of sqrt(101), the others 1; dO has none of them. */
Test(check, outliers_are_one_in_a_thousand) {
    enum { ROWS = 4096, D = 64 };
    static float plain[ROWS * D], values[ROWS * D];
    const struct problem problem = {.batch = 8, .heads = 8, .N_q = 64, .N_kv = 64, .d = D};
    for (enum tensor tensor = TENSOR_Q; tensor <= TENSOR_V; tensor++) {
        double count = 0.0, added = 0.0;
        fill_input(plain, &problem, tensor, INPUT_RANDOM, 3);
        fill_input(values, &problem, tensor, INPUT_OUTLIERS, 3);
        for (int i = 0; i < ROWS * D; i++)
            if (values[i] != plain[i]) count++, added += pow((double)values[i] - (double)plain[i], 2.0);
        cr_assert_float_eq(count, 262.0, 65.0, "%g of %d: four standard errors are 65", count, ROWS * D);
        cr_assert_float_eq(sqrt(added / count), 10.0, 2.0);
    }
    fill_input(plain, &problem, TENSOR_dO, INPUT_RANDOM, 3);
    fill_input(values, &problem, TENSOR_dO, INPUT_OUTLIERS, 3);
    cr_assert_arr_eq(values, plain, sizeof plain);
}

/* Key 0 has 16 times the weight of the others together, from each query, whatever the scale; V is 0 there. */
Test(check, sink_has_most_of_the_weight) {
    enum { N = 512, D = 64 };
    static float q[8 * D], k[2 * N * D], v[2 * N * D];
    const float scales[] = {0.125f, -0.02f};
    for (int s = 0; s < 2; s++) {
        const struct problem problem = {.batch = 2, .heads = 1, .N_q = 4, .N_kv = N, .d = D, .scale = scales[s]};
        fill_input(q, &problem, TENSOR_Q, INPUT_SINK, 5);
        fill_input(k, &problem, TENSOR_K, INPUT_SINK, 5);
        fill_input(v, &problem, TENSOR_V, INPUT_SINK, 5);
        for (int row = 0; row < 8; row++) {
            double sink = 0.0, others = 0.0;
            for (int j = 0; j < N; j++) {
                double score = 0.0;
                for (int c = 0; c < D; c++) score += (double)q[row * D + c] * (double)k[(row / 4 * N + j) * D + c];
                *(j == 0 ? &sink : &others) += exp(score * (double)problem.scale);
            }
            double mean_of_others = s == 0 ? 1.0 : exp(0.5 - 0.5 * 0.0256); /* scores of standard deviation 0.16 in place of 1 */
            cr_assert_float_eq(sink / others, 16.0 * mean_of_others, 6.0, "row %d at scale %g: %g", row, (double)scales[s], sink / others);
        }
        for (int c = 0; c < D; c++) cr_assert(v[c] == 0.0f && v[D + c] != 0.0f && v[N * D + c] == 0.0f);
    }
    const struct problem none = {.batch = 1, .heads = 1, .N_q = 1, .N_kv = 1, .d = 1, .scale = 0.0f};
    fill_input(k, &none, TENSOR_K, INPUT_SINK, 5);
    cr_assert_eq(k[0], 0.0f, "without a scale there is no score");
}

Test(check, flat_input_has_equal_weights_and_no_value_below_zero) {
    enum { N = 1024, D = 16 };
    static float q[N * D], v[N * D];
    const struct problem problem = {.batch = 1, .heads = 1, .N_q = N, .N_kv = N, .d = D};
    double sum = 0.0, largest = 0.0;
    fill_input(q, &problem, TENSOR_Q, INPUT_FLAT, 1);
    fill_input(v, &problem, TENSOR_V, INPUT_FLAT, 1);
    for (int i = 0; i < N * D; i++) {
        cr_assert_eq(q[i], 0.0f);
        cr_assert(v[i] >= 0.0f && v[i] <= 1.0f);
        sum += (double)v[i], largest = fmax(largest, (double)v[i]);
    }
    cr_assert_float_eq(sum / (N * D), 0.5, 0.01);
    cr_assert_gt(largest, 0.999);
}

Test(check, unmasked_pairs_are_counted_one_by_one) {
    for (int N_q = 1; N_q < 9; N_q++) {
        for (int N_kv = 1; N_kv < 9; N_kv++) {
            struct problem problem = {.batch = 2, .heads = 3, .N_q = N_q, .N_kv = N_kv, .d = 4, .causal = true};
            double pairs = 0;
            for (int i = 0; i < N_q; i++)
                for (int j = 0; j < N_kv; j++) pairs += j <= i + N_kv - N_q;
            cr_assert_eq(unmasked_pairs(&problem), 6 * pairs, "%d queries, %d keys", N_q, N_kv);
            problem.causal = false;
            cr_assert_eq(unmasked_pairs(&problem), 6.0 * N_q * N_kv);
        }
    }
}

/* ---- 16-bit numbers ---- */

Test(dtype, rounds_to_nearest_ties_to_even) {
    cr_assert_eq(packed_as(1.0f, BF16), 0x3f80);
    cr_assert_eq(packed_as(1.0f + 0x1p-8f, BF16), 0x3f80, "a tie goes to the even neighbour");
    cr_assert_eq(packed_as(1.0f + 3 * 0x1p-8f, BF16), 0x3f82, "a tie goes to the even neighbour");
    cr_assert_eq(packed_as(1.0f + 0x1p-8f + 0x1p-20f, BF16), 0x3f81);
    cr_assert_eq(packed_as(-INFINITY, BF16), 0xff80);
    cr_assert_eq(packed_as(3.4e38f, BF16), 0x7f80, "what is too large becomes infinite");
    cr_assert(isnan(unpacked(packed_as(NAN, BF16), BF16)));
    cr_assert_eq(packed_as(1.0f, FP16), 0x3c00);
    cr_assert_eq(packed_as(1.0f + 0x1p-11f, FP16), 0x3c00, "a tie goes to the even neighbour");
    cr_assert_eq(packed_as(65520.0f, FP16), 0x7c00, "what is too large becomes infinite");
    cr_assert_eq(packed_as(0x1p-24f, FP16), 0x0001, "the smallest subnormal");
    cr_assert(isnan(unpacked(packed_as(NAN, FP16), FP16)));
}

Test(dtype, every_16_bit_number_survives) {
    for (enum dtype dtype = FP16; dtype <= BF16; dtype++) {
        for (uint32_t bits = 0; bits <= 0xffff; bits++) {
            float value = unpacked((uint16_t)bits, dtype);
            if (isnan(value))
                cr_assert(isnan(rounded_to(value, dtype)));
            else
                cr_assert_eq(packed_as(value, dtype), bits, "%s %#x", dtype_names[dtype], bits);
        }
    }
}

Test(dtype, rounding_error_is_at_most_the_unit_roundoff) {
    for (enum dtype dtype = FP16; dtype <= BF16; dtype++)
        for (float x = 1.0f; x < 2.0f; x += 0x1p-13f)
            cr_assert_leq(fabs((double)rounded_to(x, dtype) - (double)x) / (double)x, unit_roundoff(dtype));
}

/* ---- 8-bit numbers ---- */

Test(dtype, fp8_at_its_borders) {
    cr_assert_eq(fp8_of(448.0f, E4M3), 0x7e);
    cr_assert_eq(fp8_of(464.0f, E4M3), 0x7e); cr_assert_eq(fp8_of(-1e30f, E4M3), 0xfe, "beyond it, the largest number");
    cr_assert_eq(fp8_of(INFINITY, E5M2), 0x7b); cr_assert_eq(fp8_of(57344.0f, E5M2), 0x7b);
    cr_assert_eq(fp8_of(0x1p-9f, E4M3), 0x01); cr_assert_eq(fp8_of(0x1p-16f, E5M2), 0x01, "the smallest subnormals");
    cr_assert_eq(fp8_of(0x1p-10f, E4M3), 0x00); cr_assert_eq(fp8_of(3 * 0x1p-10f, E4M3), 0x02, "ties go to the even neighbour");
    cr_assert_eq(fp8_of(1.0625f, E4M3), 0x38); cr_assert_eq(fp8_of(1.1875f, E4M3), 0x3a); cr_assert_eq(fp8_of(1.9375f, E4M3), 0x40);
    cr_assert_eq(fp8_of(-0.0f, E4M3), 0x80); cr_assert_eq(fp8_of(NAN, E4M3), 0x7f);
    cr_assert(isnan(of_fp8(0xff, E4M3))); cr_assert(isnan(of_fp8(0x7d, E5M2))); cr_assert(isinf(of_fp8(0xfc, E5M2)));
    for (int format = E4M3; format <= E5M2; format++)
        for (int bits = 0, neighbour; bits < 0x7b; bits++) {
            float value = of_fp8((uint8_t)bits, (enum fp8)format), next = of_fp8((uint8_t)(bits + 1), (enum fp8)format);
            cr_assert_eq(fp8_of(value, (enum fp8)format), bits);
            cr_assert_eq(fp8_of(-value, (enum fp8)format), bits | 0x80);
            neighbour = bits + bits % 2;
            cr_assert_eq(fp8_of((value + next) / 2.0f, (enum fp8)format), neighbour, "between %#x and the next", bits);
            cr_assert_eq(fp8_of(nextafterf((value + next) / 2.0f, 0.0f), (enum fp8)format), bits);
            cr_assert_eq(fp8_of(nextafterf((value + next) / 2.0f, 1e9f), (enum fp8)format), bits + 1);
        }
}

/* Two heads of K with 200 rows, so two blocks each; the largest sizes are in block 1 of head 0 and in block 0 of head 1. */
Test(dtype, scales_of_quantised_inputs) {
    enum { HEADS = 2, N = 200, D = 16, BLOCKS = 2 };
    static float values[HEADS * N * D], seen_scales[HEADS * BLOCKS];
    static uint8_t bits[HEADS * N * D];
    struct problem problem = {.dtype = FP8, .batch = 1, .heads = 4, .heads_kv = HEADS, .N_q = 3, .N_kv = N, .d = D};
    for (int i = 0; i < HEADS * N * D; i++) values[i] = (float)(i % 5) * 0.25f; /* up to 1 in each block */
    values[128 * D] = -896.0f, values[N * D + 3] = 224.0f, values[7] = NAN, values[N * D + 9] = INFINITY;
    static const float expected[3][HEADS * BLOCKS] = {{2, 2, 2, 2}, {2, 2, 0.5f, 0.5f}, {1.0f / 448.0f, 2, 0.5f, 1.0f / 448.0f}};
    cr_assert_eq(scale_count(&problem, TENSOR_K), HEADS * BLOCKS);
    for (int kind = OF_TENSOR; kind <= OF_BLOCK; kind++) {
        problem.scales = (enum scales)kind;
        quantise(&problem, TENSOR_K, values, bits, seen_scales);
        for (int i = 0; i < HEADS * BLOCKS; i++) cr_assert_eq(seen_scales[i], expected[kind][i], "scale %d of kind %d", i, kind);
        cr_assert_eq(bits[128 * D], 0xfe, "the largest size becomes the largest number");
        cr_assert_eq(bits[7], 0x7f, "NaN stays"); cr_assert_eq(bits[N * D + 9], 0x7e, "infinity becomes the largest number");
        float *seen = as_seen(&problem, TENSOR_K, values);
        for (int i = 0; i < HEADS * N * D; i++)
            cr_assert(isnan(values[i]) || isinf(values[i]) || fabsf(seen[i] - values[i]) <= 0x1p-4f * fabsf(values[i]) + 0.0021f, "element %d", i);
        free(seen);
    }
    for (int i = 0; i < HEADS * N * D; i++) values[i] = i < N * D ? 0.0f : 1e-44f; /* a scale that would be 0 or subnormal */
    quantise(&problem, TENSOR_K, values, bits, seen_scales);
    cr_assert_eq(seen_scales[0], 1.0f); cr_assert_eq(seen_scales[2], 0x1p-126f);
    for (int i = 0; i < HEADS * N * D; i++) cr_assert_eq(bits[i], 0);
    problem.fp8 = E5M2, values[0] = 57344.0f * 4.0f;
    quantise(&problem, TENSOR_K, values, bits, seen_scales);
    cr_assert_eq(seen_scales[0], 4.0f); cr_assert_eq(bits[0], 0x7b);
}

/* ---- what a step refuses ---- */

static attention_pass no_pass;
static cudaError_t no_pass(const struct problem *problem, const struct tensors *tensors, void *workspace,
                           cudaStream_t stream) {
    (void)problem, (void)tensors, (void)workspace, (void)stream;
    return cudaSuccess;
}

/* With the identity as K, the rows become 1 and -1 in blocks of 16 columns, and rows of a block are at right angles. Rows of Q are divided by 16. */
Test(dtype, hadamard_matrix_of_a_step) {
    enum { D = 48, BLOCK = 16 };
    const struct problem problem = {.dtype = FP8, .batch = 1, .heads = 1, .N_q = D, .N_kv = D, .d = D, .hadamard = true};
    static float identity[D * D];
    fill_input(identity, &problem, TENSOR_K, INPUT_IDENTITY, 1);
    float *Q = as_seen(&problem, TENSOR_Q, identity), *K = as_seen(&problem, TENSOR_K, identity), *V = as_seen(&problem, TENSOR_V, identity);
    int positive = 0;
    for (int a = 0; a < D; a++)
        for (int b = 0; b < D; b++) {
            double product = 0.0;
            for (int c = 0; c < D; c++) product += (double)Q[a * D + c] * (double)K[b * D + c];
            cr_assert_float_eq(product, a == b ? 1.0 : 0.0, 1e-6, "rows %d and %d", a, b);
            cr_assert_float_eq(fabs((double)K[a * D + b]), a / BLOCK == b / BLOCK ? 1.0 : 0.0, 1e-6);
            cr_assert_float_eq(V[a * D + b], a == b ? 1.0f : 0.0f, 1e-6f, "V is not mixed");
            positive += K[a * D + b] > 0.5f;
        }
    cr_assert(positive > D * BLOCK / 4 && positive < D * BLOCK * 3 / 4);
    cr_assert(element_bytes(&problem, TENSOR_K) == 2 && element_bytes(&problem, TENSOR_V) == 1);
    free(Q), free(K), free(V);
}

Test(problem, the_limits_of_a_step_hold_on_both_sides) {
    const struct step step = {.name = "a step", .forward = no_pass, .dtypes = 1u << BF16, .d_multiple = 8};
    const struct problem good = {.dtype = BF16, .batch = 1, .heads = 1, .N_q = 1, .N_kv = 1, .d = 8};
    const struct passes forward = {.forward = true}, backward = {.backward = true};
    cr_assert_null(step_refuses(&step, &good, forward));
    cr_assert_not_null(step_refuses(&step, &good, backward));
    struct problem bad[] = {good, good, good, good, good, good, good, good};
    bad[0].d = 12, bad[1].d = 136, bad[2].dtype = FP16, bad[3].N_q = 0, bad[4].N_kv = (1 << 24) + 1, bad[5].batch = 65536;
    bad[6].batch = 256, bad[6].heads = 256, bad[7].d = 0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) cr_expect_not_null(step_refuses(&step, &bad[i], forward), "%zu", i);
    struct problem still_good[] = {good, good, good};
    still_good[0].d = 128, still_good[1].N_kv = 1 << 24, still_good[2].batch = 65535;
    for (size_t i = 0; i < 3; i++) cr_expect_null(step_refuses(&step, &still_good[i], forward), "%zu", i);
}

/* What is truncated is too small as a whole, although no element is far off. */
Test(check, bias_tells_truncation_from_rounding) {
    enum { MANY = 4096 };
    static float rounded[MANY], truncated[MANY];
    static double exact[MANY];
    for (int i = 0; i < MANY; i++) {
        exact[i] = (i % 2 == 0 ? 1.0 : -1.0) * (1.0 + i / (double)MANY + 1e-3 * i / MANY);
        rounded[i] = rounded_to((float)exact[i], BF16);
        uint32_t bits;
        float value = (float)exact[i];
        memcpy(&bits, &value, sizeof bits);
        truncated[i] = unpacked((uint16_t)(bits >> 16), BF16);
    }
    double limit = unit_roundoff(BF16) * (0.25 + 2.0 / sqrt((double)MANY));
    cr_assert_lt(bias_of(rounded, exact, MANY), 0.2 * limit);
    cr_assert_gt(bias_of(truncated, exact, MANY), limit);
    truncated[7] = NAN;
    cr_assert_not(bias_of(truncated, exact, MANY) <= limit, "NaN fails");
}

/* ---- which elements are wrong ---- */

enum { BATCH = 2, HEADS = 3, ROWS = 40, COLUMNS = 8 };
static bool first_head(int b, int h, int i, int c) { return (void)i, (void)c, b == 0 && h == 0; }
static bool all(int b, int h, int i, int c) { return (void)b, (void)h, (void)i, (void)c, true; }
static bool one(int b, int h, int i, int c) { return b == 1 && h == 0 && i == 7 && c == 3; }
static bool three(int b, int h, int i, int c) { return b == 1 && h == 0 && i % 17 == 5 && c == 3; }
static bool tile(int b, int h, int i, int c) { return (void)b, (void)h, (void)c, i >= 16 && i < 32; }
static bool tile_of_two_heads(int b, int h, int i, int c) { return (void)c, b == h && i >= 16 && i < 32; }
static bool holed_tile(int b, int h, int i, int c) { return i >= 16 && i < 32 && (b + h + i + c) % 3 != 0; }
static bool odd_columns(int b, int h, int i, int c) { return (void)b, (void)h, (void)i, c % 2 == 1; }
static bool fourth_rows(int b, int h, int i, int c) { return (void)c, b == 1 && h == 2 && i % 4 == 3; }
static bool second_batch(int b, int h, int i, int c) { return (void)h, (void)i, (void)c, b == 1; }
static bool two_columns(int b, int h, int i, int c) { return (void)b, (void)h, (void)i, c == 0 || c == 5; }
static bool last_rows(int b, int h, int i, int c) { return (void)b, (void)h, (void)c, i >= 37; }
static bool all_but_one(int b, int h, int i, int c) { return !one(b, h, i, c); }
static bool scattered(int b, int h, int i, int c) { return (((b * HEADS + h) * ROWS + i) * COLUMNS + c) % 37 % 11 == 0; }
static bool scattered_rows(int b, int h, int i, int c) { return (void)b, (void)h, (void)c, i == 2 || i == 3 || i == 20; }
static bool scattered_rows_of_a_column(int b, int h, int i, int c) { return c == 5 && scattered_rows(b, h, i, c); }
static bool some_odd_columns(int b, int h, int i, int c) { return (void)b, (void)h, (void)i, c == 1 || c == 3 || c == 7; }
static bool some_eighth_rows(int b, int h, int i, int c) { return (void)b, (void)h, (void)c, i == 0 || i == 8 || i == 32; }
static bool row_of_each_head(int b, int h, int i, int c) { return (void)c, i == b * HEADS + h; }

/* Every stride-th row is compared. */
static struct check where_wrong(bool (*wrong)(int, int, int, int), bool is_vector, size_t stride) {
    enum { ELEMENTS = BATCH * HEADS * ROWS * COLUMNS };
    static float out[ELEMENTS];
    static double zeros[ELEMENTS];
    static size_t rows[BATCH * HEADS * ROWS];
    const struct problem problem = {.batch = BATCH, .heads = HEADS, .N_q = ROWS, .N_kv = 1, .d = COLUMNS};
    size_t count = 0, columns = is_vector ? 1 : COLUMNS;
    for (size_t row = 0; row < BATCH * HEADS * ROWS; row += stride) {
        rows[count] = row;
        for (size_t c = 0; c < columns; c++) {
            int head = (int)(row / ROWS);
            bool bad = wrong(head / HEADS, head % HEADS, (int)(row % ROWS), (int)c);
            out[count * columns + c] = !bad ? 0.0f : row % 2 == 0 ? NAN : 1.0f;
        }
        count++;
    }
    struct check check = check_values(out, zeros, count * columns, bound);
    describe_wrong(&check, &problem, is_vector ? TENSOR_L : TENSOR_O, rows, count, out, zeros);
    return check;
}

Test(check, says_which_elements_are_wrong) {
    static const struct {
        bool (*wrong)(int, int, int, int);
        const char *where;
    } cases[] = {
        {all, "every element is wrong"},
        {one, "no other element is wrong"},
        {three, "no other element is wrong"},
        {first_head, "all wrong elements lie in batch 0, head 0"},
        {tile, "all wrong elements lie in rows 16 to 31 of every head"},
        {holed_tile, "all wrong elements lie in rows 16 to 31 of every head"},
        {tile_of_two_heads, "all wrong elements lie in heads 0 to 1, rows 16 to 31"}, /* of two heads of six: not every */
        {odd_columns, "all wrong elements lie in odd columns from 1 to 7 of every head"},
        {fourth_rows, "all wrong elements lie in batch 1, head 2, rows 3, 7, ..., 39"},
        {second_batch, "all wrong elements lie in batch 1"},
        {two_columns, "all wrong elements lie in columns 0 and 5 of every head"},
        {last_rows, "all wrong elements lie in rows 37 to 39 of every head"},
        {row_of_each_head, "all wrong elements lie in rows 0 to 5 of every head"},
        {scattered_rows_of_a_column, "all wrong elements lie in column 5 of every head"},
        {all_but_one, ""},
        {scattered, ""},
        {scattered_rows, ""},
        {some_odd_columns, ""}, /* column 5 is right */
        {some_eighth_rows, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct check check = where_wrong(cases[i].wrong, false, 1);
        cr_expect_str_eq(check.where, cases[i].where, "case %zu: \"%s\" instead of \"%s\"", i, check.where, cases[i].where);
    }
    cr_expect_str_eq(where_wrong(tile, true, 1).where, "all wrong elements lie in rows 16 to 31 of every head");
    cr_expect_str_eq(where_wrong(all, true, 1).where, "every element is wrong");
    cr_expect_str_eq(check_values((float[]){0}, (double[]){0}, 1, bound).where, "");
}

/* Of rows that were not compared nothing is said: neither that they are right nor that they lie on a stride. */
Test(check, speaks_of_compared_rows_alone) {
    static const size_t second = 1;
    const struct problem problem = {.batch = 1, .heads = 1, .N_q = 2, .N_kv = 1, .d = 8};
    struct check check = check_values((float[]){1, 0, 0, 0, 0, 0, 0, 0}, (double[8]){0}, 8, bound);
    describe_wrong(&check, &problem, TENSOR_O, &second, 1, (float[]){1, 0, 0, 0, 0, 0, 0, 0}, (double[8]){0});
    cr_expect_str_eq(check.where, "no other element compared is wrong");
    cr_expect_str_eq(where_wrong(all, false, 7).where, "every element compared is wrong");
    cr_expect_str_eq(where_wrong(tile, false, 5).where, "all wrong elements compared lie in rows 20 to 30 of every head");
    cr_expect_str_eq(where_wrong(odd_columns, false, 5).where,
                     "all wrong elements compared lie in odd columns from 1 to 7 of every head");
}

Test(check, minus_infinity_that_is_right_is_not_among_the_wrong) {
    const struct problem problem = {.batch = 1, .heads = 1, .N_q = 8, .N_kv = 1, .d = 1};
    const size_t rows[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const double L[8] = {-INFINITY, -INFINITY, 1, 1, 1, 1, 1, 1};
    const float out[8] = {-INFINITY, -INFINITY, 1, 1, 2, 2, 2, 2};
    struct check check = check_logsumexp(out, L, 8, bound);
    describe_wrong(&check, &problem, TENSOR_L, rows, 8, out, L);
    cr_expect_str_eq(check.where, "all wrong elements lie in rows 4 to 7");
}
