/* One step against the reference, and against identities that need none. The build makes a program of this file for each
 * step; tests of a pass that the step does not have are skipped. */
#include "step_test.h"

#include "border.h"
#include "oracle.h"
#include "../common/simt/include/simulated.h"

#include <math.h>
#include <string.h>

#define step step_under_test

/* ---- against the reference -------------------------------------------------------------------------------------------- */

/* Every stride-th shape of a list that the step does not refuse. */
static void compare_list(const struct shape *list, int count, enum input_kind input, int stride) {
    int tried = 0, possible = 0;
    for (int i = 0; i < count; i += stride, possible++) {
        struct problem problem = problem_for(step, &list[i]);
        const char *reason = step_refuses(step, &problem, all_passes());
        if (reason == NULL) {
            compare_passes(&problem, input);
            tried++;
        } else {
            cr_expect_str_not_empty(reason);
        }
    }
    cr_expect_geq(2 * tried, possible, "%s refuses more than half of the shapes: %d of %d tried", step->name, tried,
                  possible);
}

static void compare_shapes(enum input_kind input, int stride) {
    compare_list(is_last_rung ? shapes : rung_shapes, is_last_rung ? SHAPE_COUNT : RUNG_SHAPE_COUNT, input, stride);
    int grouped_stride = (is_last_rung ? 1 : 2) * (step->most_queries > 0 ? 1 : 5) * stride; /* for many queries: test_grid.c */
    if (step->grouped_heads) compare_list(grouped_shapes, GROUPED_SHAPE_COUNT, input, grouped_stride);
    cr_expect_geq(SHAPE_COUNT, 75);
    cr_expect_geq(RUNG_SHAPE_COUNT, 10);
    cr_expect_geq(GROUPED_SHAPE_COUNT, 30);
}

/* All shapes, or a seventh. */
static int stride(int whole) { return whole * every(7); }
Test(step, shapes, .init = skip_without_device) { compare_shapes(INPUT_RANDOM, stride(1)); }
Test(step, identity_input, .init = skip_without_device) { compare_shapes(INPUT_IDENTITY, stride(5)); }
Test(step, large_logits, .init = skip_without_device) { compare_shapes(INPUT_LARGE, stride(5)); }

/* Outliers, a sink at key 0, flat rows: a tile alone, several, a mask, a last tile of few keys. */
Test(step, inputs_of_other_kinds, .init = skip_without_device) {
    static const struct shape list[] = {{1, 2, 65, 100, 64, false}, {1, 1, 70, 330, 128, false}, {1, 2, 150, 187, 64, true}};
    for (enum input_kind kind = INPUT_OUTLIERS; kind <= INPUT_FLAT; kind++)
        for (size_t i = is_last_rung ? 0 : 1; i < sizeof list / sizeof *list; i += is_last_rung ? 1 : 2) {
            struct problem problem = problem_for(step, &list[i]);
            /* Behind a Hadamard matrix all products of the sink's score have one sign: what the accumulator cuts off does not cancel, and the
             * sum so far is more than ten mean products, for which docs/math/rounding.md has no bound. L was off by 1.07 of it at d 128. */
            if (kind == INPUT_SINK && step->hadamard) problem.d = 64, problem.scale = 0.125f;
            if (step_refuses(step, &problem, all_passes()) == NULL) compare_passes(&problem, kind);
        }
}

/* 8192 keys with a sink: from left to right most of the other weights would be rounded to 0. And equal weights of 32768 keys, V above 0:
 * what an accumulator of few bits loses grows with each tile that it keeps. 16x keeps all, loses a third of O or more, and the check must say so. */
Test(step, long_rows_of_eight_bits, .init = needs_forward) {
    if (!takes_dtype(step, FP8)) cr_skip_test("the step takes no fp8");
    struct problem problem = problem_for(step, &(struct shape){1, 1, 16, 8192, 16, false, 0.0f});
    compare_passes(&problem, INPUT_SINK);
    problem.N_kv = 32768;
    if (strcmp(step->name, "16x_one_accumulator") != 0) {
        compare_passes(&problem, INPUT_FLAT);
        return;
    }
    struct run run = new_run(step, &problem, INPUT_FLAT);
    forward(&run, step);
    struct verdict verdict = check_run(&run, false, 1e15);
    cr_expect_not(verdict.ok);
    cr_expect_gt(verdict.checks[TENSOR_O].err_rel, 0.33);
    cr_expect(verdict.checks[TENSOR_L].ok, "l is summed in fp32");
    free_verdict(&verdict);
    run_destroy(&run);
}

/* A scale of 0: all keys that a query attends to weigh the same, and dQ and dK are 0. A scale below 0, with scores more than 88
 * apart: the largest product has the smallest weight. */
Test(step, scales_not_above_zero, .init = skip_without_device) {
    static const struct shape list[] = {{1, 2, 97, 131, 64, true}, {1, 1, 70, 33, 128, false}, {1, 1, 40, 300, 64, false}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i += (size_t)every(2)) {
        struct problem problem = problem_for(step, &list[i]);
        problem.scale = 0.0f;
        if (step_refuses(step, &problem, all_passes()) == NULL) compare_passes(&problem, INPUT_RANDOM);
        problem.scale = -1.0f / sqrtf((float)problem.d);
        if (step_refuses(step, &problem, all_passes()) == NULL) compare_passes(&problem, INPUT_LARGE);
    }
}

/* The types of elements that the shapes above leave out. The fourth shape's scale, 1e-5, makes an fp16 of scale dS lose bits; the
 * last one's makes each score of the identity 0 or 11.09026, whose power 2^15.9998 is past the largest fp16, if only just. */
Test(step, other_types, .init = skip_without_device) {
    static const struct shape list[] = {{1, 1, 64, 64, 64, false}, {1, 2, 150, 187, 40, true, 0.5f}, {1, 1, 131, 70, 96, true},
                                        {1, 1, 64, 64, 64, false, 8e-5f}, {1, 1, 128, 128, 128, false, 125.472f}};
    int count = sizeof list / sizeof *list;
    for (enum dtype dtype = 0; dtype < DTYPES; dtype++)
        for (int i = 0; i < count && dtype != usual_dtype(step); i++) {
            struct problem problem = problem_for(step, &list[i]);
            problem.dtype = dtype;
            if (step_refuses(step, &problem, all_passes()) != NULL) continue;
            compare_passes(&problem, i < count - 1 ? INPUT_RANDOM : INPUT_IDENTITY);
        }
}

/* Both types of 8 bits, and scales of each kind: rows grow from block to block and from head to head, so that a wrong scale shows. */
Test(step, scales_of_eight_bits, .init = needs_forward) {
    if (!takes_dtype(step, FP8)) cr_skip_test("the step takes no fp8");
    for (int kind = 0; kind < 6; kind++) {
        struct problem problem = problem_for(step, &(struct shape){2, 4 / every(2), 150, 300, kind % 2 == 0 ? 64 : 128, kind < 3, 1.0f, step->grouped_heads ? 2 / every(2) : 0});
        problem.dtype = FP8, problem.fp8 = (enum fp8)(kind / 3), problem.scales = (enum scales)(kind % 3);
        struct run run = new_run(step, &problem, INPUT_RANDOM);
        for (enum tensor tensor = TENSOR_Q; tensor <= TENSOR_V; tensor++) {
            size_t d = (size_t)problem.d, N = (size_t)(tensor_table[tensor].per_key ? problem.N_kv : problem.N_q);
            for (size_t i = 0; i < tensor_elements(&problem, tensor); i++)
                run.host[tensor][i] *= 0.25f * (float)(1 + i / d % N / SCALE_ROWS) * (float)(1 + i / d / N % 3);
        }
        cr_assert_eq(run_upload(&run), cudaSuccess);
        forward(&run, step);
        expect_right(&run, step, false, "forward, scales");
        run_destroy(&run);
    }
}

/* TEST_SEED draws others; a failure prints the shape. */
Test(step, drawn_shapes, .init = skip_without_device) {
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : 1;
    for (unsigned i = 0; i < (!is_last_rung ? 1 : takes_part() ? 2 : 12); i++) {
        struct shape shape = drawn_shape(seed, i);
        struct problem problem = problem_for(step, &shape);
        if (step_refuses(step, &problem, all_passes()) == NULL) compare_passes(&problem, INPUT_RANDOM);
        if (!step->grouped_heads || (step->most_queries == 0 && step->variants != 0)) continue; /* test_grid.c draws these */
        shape = drawn_grouped_shape(seed, i);
        problem = problem_for(step, &shape);
        if (step_refuses(step, &problem, all_passes()) == NULL) compare_passes(&problem, INPUT_RANDOM);
    }
}

/* Every 8th d from 4 on, which the list above leaves out, or every multiple of 8 where the step takes no other. Several tiles of
 * keys, so that what one tile leaves past d meets the next. */
Test(step, every_eighth_dimension, .init = skip_without_device) {
    if (!is_last_rung) cr_skip_test("for last rungs");
    for (int d = step->d_multiple > 4 ? 8 : 4; d <= MAX_HEAD_DIM; d += 8 * stride(1)) {
        struct problem problem = problem_for(step, &(struct shape){1, 1, 40, 200, d, false, 1.0f});
        if (problem.d != d || step_refuses(step, &problem, all_passes()) != NULL) continue;
        compare_passes(&problem, INPUT_RANDOM);
    }
}

/* The 4 x 4 example of docs/math.md, which tests/test_reference.c holds to fractions worked by hand. */
Test(step, example, .init = skip_without_device) {
    if (step_refuses(step, &example_problem, all_passes()) != NULL) cr_skip_test("the step refuses d 4");
    compare_passes(&example_problem, INPUT_EXAMPLE);
}

/* ---- identities of the forward pass ------------------------------------------------------------------------------------ */

/* More queries than keys: the first rows attend to nothing, and must say so exactly. */
Test(forward, masked_rows, .init = needs_forward) {
    struct run run = small_run(2, 2, 70, 33, 40, true, INPUT_RANDOM);
    forward(&run, step);
    size_t d = (size_t)run.problem.d;
    for (size_t r = 0; r < tensor_rows(&run.problem, TENSOR_L); r++) {
        float L = run.host[TENSOR_L][r];
        if (r % 70 >= 70 - 33) {
            cr_assert(isfinite(L), "row %zu attends to a key", r % 70);
            continue;
        }
        cr_assert(isinf(L) && L < 0, "L of row %zu is %g", r, (double)L);
        for (size_t c = 0; c < d; c++) cr_assert_eq(run.host[TENSOR_O][r * d + c], 0.0f);
    }
    run_destroy(&run);
}

/* The maximum of each row grows by `growth`, or up to 5 % more, from one 16 keys to the next: what a kernel summed up before must
 * be rescaled, however little or much that is. A growth of 1.4 is 17 doublings in 128 keys, and 2.9 in 64: weights of 2^17 would
 * overflow in fp16. A growth below 0 grows for a kernel that begins with the last keys. */
Test(forward, growing_maximum, .init = needs_forward) {
    static const float growths[] = {1e-5f, -1e-5f, 6e-5f, -6e-5f, 1e-3f, -1e-3f, 0.1f, -0.1f,
                                    0.7f,  -0.7f,  1.4f,  -1.4f,  2.9f,  -2.9f,  11.0f, -11.0f};
    const int N_kv = 320;
    for (enum dtype dtype = 0; dtype < DTYPES; dtype++)
        for (size_t g = 0; g < sizeof growths / sizeof *growths; g += (size_t)every(3)) {
            struct problem problem = problem_for(step, &(struct shape){1, 1, 33, N_kv, 64, false, 0.0f});
            problem.dtype = dtype;
            problem.scale = 1.0f;
            if (step_refuses(step, &problem, all_passes()) != NULL) continue;
            struct run run = new_run(step, &problem, INPUT_RANDOM);
            size_t d = (size_t)problem.d, queries = (size_t)problem.N_q * d;
            for (size_t i = 0; i < queries; i++) run.host[TENSOR_Q][i] = i % d == 0 ? 1.0f + (float)(i / d % 8) / 128.0f : 0.0f;
            for (size_t i = 0; i < (size_t)N_kv * d; i++)
                run.host[TENSOR_K][i] = i % d == 0 ? rounded_to(growths[g] * (float)(i / d / 16), dtype) : 0.0f;
            cr_assert_eq(run_upload(&run), cudaSuccess);
            forward(&run, step);
            expect_right(&run, step, false, "forward, growing maximum");
            run_destroy(&run);
        }
}

/* Keys that the mask hides from a query cannot change its output, not even in the last bit. */
Test(forward, causal_prefix, .init = needs_forward) {
    const size_t changed = 70; /* keys from here on get other values */
    struct run run = small_run(1, 2, 129, 129, 64, true, INPUT_RANDOM);
    forward(&run, step);
    double *O = keep(&run, TENSOR_O), *L = keep(&run, TENSOR_L);
    size_t N = 129, d = (size_t)run.problem.d;
    for (size_t head = 0; head < 2; head++) {
        for (size_t i = (head * N + changed) * d; i < (head + 1) * N * d; i++) {
            bool scaled = run.problem.dtype == FP8; /* by the largest number of a tensor, which must stay */
            run.host[TENSOR_K][i] = scaled ? -run.host[TENSOR_K][i] : run.host[TENSOR_K][i] + 3.0f;
            run.host[TENSOR_V][i] = scaled ? -run.host[TENSOR_V][i] : run.host[TENSOR_V][i] - 5.0f;
        }
    }
    cr_assert_eq(run_upload(&run), cudaSuccess);
    forward(&run, step);
    for (size_t row = 0; row < 2 * N; row++) {
        bool same = row % N < changed;
        cr_assert_eq((double)run.host[TENSOR_L][row] == L[row], same, "L of row %zu", row % N);
        for (size_t c = 0; c < d && same; c++)
            cr_assert_eq((double)run.host[TENSOR_O][row * d + c], O[row * d + c], "O of row %zu", row % N);
    }
    free(O), free(L);
    run_destroy(&run);
}

/* The weights of a row add up to 1: where V is all ones, so is O; in FP8 up to the rounding of P, of which l knows nothing. */
Test(forward, weights_sum_to_one, .init = needs_forward) {
    struct run run = small_run(1, 1, 65, 129, 40, false, INPUT_LARGE);
    for (size_t i = 0; i < tensor_elements(&run.problem, TENSOR_V); i++) run.host[TENSOR_V][i] = 1.0f;
    cr_assert_eq(run_upload(&run), cudaSuccess);
    forward(&run, step);
    for (size_t i = 0; i < tensor_elements(&run.problem, TENSOR_O); i++)
        cr_assert_float_eq(run.host[TENSOR_O][i], 1.0f, run.problem.dtype == FP8 ? 0.04f : 2e-6f);
    run_destroy(&run);
}

/* Adding one vector to every key adds one number to all scores of a row: O stays, L moves by that number. */
Test(forward, shifted_scores, .init = needs_forward) {
    if (usual_dtype(step) != FP32) cr_skip_test("the shift is lost in the rounding of 16-bit keys");
    struct run run = small_run(1, 1, 33, 65, 32, false, INPUT_RANDOM);
    forward(&run, step);
    double *O = keep(&run, TENSOR_O), *L = keep(&run, TENSOR_L);
    size_t d = (size_t)run.problem.d;
    for (size_t i = 0; i < 65 * d; i++) run.host[TENSOR_K][i] += i % 2 == 0 ? 0.5f : 0.25f;
    cr_assert_eq(run_upload(&run), cudaSuccess);
    forward(&run, step);
    cr_assert(check_values(run.host[TENSOR_O], O, 33 * d, 2e-5).ok);
    for (size_t i = 0; i < 33; i++) {
        double shift = 0;
        for (size_t c = 0; c < d; c++) shift += (c % 2 == 0 ? 0.5 : 0.25) * (double)run.host[TENSOR_Q][i * d + c];
        cr_assert_float_eq((double)run.host[TENSOR_L][i], L[i] + shift * (double)run.problem.scale, 1e-4);
    }
    free(O), free(L);
    run_destroy(&run);
}

/* What a 16-bit type adds to a relative bound for fp32. */
static double rounding_of(const struct run *run) {
    return run->problem.dtype != FP32 ? 2.0 * unit_roundoff(run->problem.dtype) : 0.0;
}

/* Keys and their values may come in any order. */
Test(forward, permuted_keys, .init = needs_forward) {
    struct run run = small_run(1, 1, 33, 129, 32, false, INPUT_RANDOM);
    forward(&run, step);
    double *O = keep(&run, TENSOR_O);
    size_t d = (size_t)run.problem.d;
    for (enum tensor tensor = TENSOR_K; tensor <= TENSOR_V; tensor++) {
        for (size_t j = 0; j < 129 / 2; j++) {
            float swapped[MAX_HEAD_DIM], *a = run.host[tensor] + j * d, *b = run.host[tensor] + (128 - j) * d;
            memcpy(swapped, a, d * sizeof(float));
            memcpy(a, b, d * sizeof(float));
            memcpy(b, swapped, d * sizeof(float));
        }
    }
    cr_assert_eq(run_upload(&run), cudaSuccess);
    forward(&run, step);
    cr_assert(check_values(run.host[TENSOR_O], O, 33 * d, 2e-5 + rounding_of(&run)).ok);
    free(O);
    run_destroy(&run);
}

/* Two runs of the same forward pass agree bit for bit: nothing may depend on the order in which blocks happen to run. */
Test(forward, repeatable, .init = needs_forward) {
    struct run run = small_run(2, 2, 113, 203, 64, true, INPUT_RANDOM);
    forward(&run, step);
    double *O = keep(&run, TENSOR_O);
    for (unsigned repeat = 0; repeat < (takes_part() ? 2 : 5); repeat++) {
        if (simt_shuffle_blocks != NULL) simt_shuffle_blocks(repeat);
        forward(&run, step);
        cr_assert(same_bits(&run, TENSOR_O, O));
    }
    free(O);
    run_destroy(&run);
}

/* ---- identities of the backward pass ----------------------------------------------------------------------------------- */

/* A size that a reader can compare with others' numbers: unit-variance inputs, and errors as a share of each norm. */
Test(backward, errors_below_a_millionth, .init = needs_backward) {
    struct run run = small_run(1, 1, 128, 128, 64, false, INPUT_RANDOM);
    forward(&run, step);
    for (int deterministic = 0; deterministic < (step->backward_deterministic != NULL ? 2 : 1); deterministic++) {
        backward(&run, step, deterministic);
        struct verdict verdict = check_run(&run, true, 1e12);
        for (enum tensor tensor = TENSOR_dQ; tensor <= TENSOR_dV; tensor++)
            cr_expect(verdict.checks[tensor].err_rel < 1e-6 + rounding_of(&run), "%s %g", tensor_table[tensor].name,
                      verdict.checks[tensor].err_rel);
        free_verdict(&verdict);
    }
    run_destroy(&run);
}

/* The weights of a row add up to 1 whatever the keys are, so that moving all keys alike changes nothing: the sum of dK
 * over keys is 0. The sum of dV over keys is the sum of dO over the rows that attend to a key (docs/math.md, eq. 48-50). */
static void sums_over_keys(bool causal) {
    struct run run = small_run(2, 2, 129, 97, 40, causal, INPUT_RANDOM);
    forward(&run, step);
    backward(&run, step, false);
    size_t d = (size_t)run.problem.d, N_q = 129, N_kv = 97, first_attending = causal ? N_q - N_kv : 0;
    for (size_t head = 0; head < 4; head++) {
        for (size_t c = 0; c < d; c++) {
            double dK = 0.0, dK_size = 0.0, dV = 0.0, dO = 0.0, dO_size = 0.0;
            for (size_t j = head * N_kv; j < (head + 1) * N_kv; j++) {
                dK += (double)run.host[TENSOR_dK][j * d + c];
                dK_size += fabs((double)run.host[TENSOR_dK][j * d + c]);
                dV += (double)run.host[TENSOR_dV][j * d + c];
            }
            for (size_t i = head * N_q + first_attending; i < (head + 1) * N_q; i++) {
                dO += (double)run.host[TENSOR_dO][i * d + c];
                dO_size += fabs((double)run.host[TENSOR_dO][i * d + c]);
            }
            cr_assert_lt(fabs(dK), (1e-5 + rounding_of(&run)) * dK_size, "dK adds up to %g of %g", dK, dK_size);
            cr_assert_lt(fabs(dV - dO), (1e-5 + rounding_of(&run)) * dO_size, "dV adds up to %g, dO to %g", dV, dO);
        }
    }
    run_destroy(&run);
}
Test(backward, sums_over_keys, .init = needs_backward) { sums_over_keys(false); }
Test(backward, sums_over_keys_causal, .init = needs_backward) { sums_over_keys(true); }

/* Rows that attend to no key: their dQ is exactly 0, and what stands in their dO changes no gradient. */
Test(backward, masked_rows, .init = needs_backward) {
    struct run run = small_run(2, 2, 70, 33, 40, true, INPUT_RANDOM);
    forward(&run, step);
    backward(&run, step, false);
    size_t d = (size_t)run.problem.d, elements = tensor_elements(&run.problem, TENSOR_dK);
    double *dK = keep(&run, TENSOR_dK), *dV = keep(&run, TENSOR_dV);
    for (size_t head = 0; head < 4; head++)
        for (size_t i = head * 70 * d; i < (head * 70 + 70 - 33) * d; i++) {
            cr_assert_eq(run.host[TENSOR_dQ][i], 0.0f);
            run.host[TENSOR_dO][i] += 100.0f;
            run.host[TENSOR_Q][i] -= 100.0f;
        }
    cr_assert_eq(run_upload(&run), cudaSuccess);
    forward(&run, step);
    backward(&run, step, false);
    /* Atomic additions come in any order, so two runs may differ in the last bits. */
    cr_assert(check_values(run.host[TENSOR_dK], dK, elements, 1e-6).ok);
    cr_assert(check_values(run.host[TENSOR_dV], dV, elements, 1e-6).ok);
    free(dK), free(dV);
    run_destroy(&run);
}

/* A key gets nothing from queries that do not attend to it: with dO = 0 in all rows that attend to the last keys, their
 * dK and dV are exactly 0. */
Test(backward, masked_keys, .init = needs_backward) {
    const size_t silent = 20; /* the last rows, with dO = 0 */
    struct run run = small_run(1, 2, 97, 129, 64, true, INPUT_RANDOM);
    size_t d = (size_t)run.problem.d;
    for (size_t head = 0; head < 2; head++)
        for (size_t i = (head * 97 + 97 - silent) * d; i < (head + 1) * 97 * d; i++) run.host[TENSOR_dO][i] = 0.0f;
    cr_assert_eq(run_upload(&run), cudaSuccess);
    forward(&run, step);
    backward(&run, step, false);
    for (size_t j = 0; j < 2 * 129; j++) {
        float largest = 0.0f;
        for (size_t c = 0; c < d; c++) {
            largest = fmaxf(largest, fabsf(run.host[TENSOR_dK][j * d + c]));
            largest = fmaxf(largest, fabsf(run.host[TENSOR_dV][j * d + c]));
        }
        if (j % 129 >= 129 - silent)
            cr_assert_eq(largest, 0.0f, "key %zu", j % 129);
        else
            cr_assert_gt(largest, 0.0f, "key %zu", j % 129);
    }
    run_destroy(&run);
}

/* rows of d elements: each row's error beside the size of the terms that were added for this row alone, `times` the usual
 * bound. */
static void expect_each_row(const struct run *run, enum tensor tensor, const double *ref, const double *size, double times,
                            const char *what) {
    size_t d = (size_t)run->problem.d, rows = tensor_elements(&run->problem, tensor) / d;
    double bound = times * (run->problem.dtype == FP32 ? 1e-5 : (run->problem.dtype == FP8 ? 0.25 : 8.0) * unit_roundoff(run->problem.dtype));
    for (size_t r = 0; r < rows; r++) {
        double error = 0.0, terms = 0.0;
        for (size_t c = r * d; c < (r + 1) * d; c++) {
            error += pow((double)run->host[tensor][c] - ref[c], 2.0);
            terms += size[c] * size[c];
        }
        cr_expect(sqrt(error) <= bound * sqrt(terms), "%s %s, %s: row %zu of %s is off by %.3g of its terms", step->name, what,
                  describe(&run->problem), r, tensor_table[tensor].name, sqrt(error / terms));
    }
}

/* Under a causal mask the first keys have the largest gradients by far, and the last query rows and keys add little to the norm
 * of a tensor: one more key for a row, or one row less for a key, would pass there. At these sizes a tile's corner lies on the
 * mask, or just beside it. */
Test(backward, each_row_of_the_gradients, .init = needs_backward) {
    static const struct shape list[] = {{1, 1, 130, 128, 64, true}, {1, 1, 66, 64, 128, true},   {1, 1, 128, 129, 64, true},
                                        {1, 1, 64, 65, 128, true},  {1, 1, 190, 192, 128, true}, {1, 1, 130, 256, 64, true},
                                        {1, 1, 33, 32, 64, true},   {1, 1, 128, 129, 104, true}, {1, 1, 130, 128, 104, true}};
    int tested = 0;
    for (size_t i = 0; i < sizeof list / sizeof *list; i += is_last_rung ? (size_t)every(2) : 3) {
        struct problem problem = problem_for(step, &list[i]);
        if (step_refuses(step, &problem, all_passes()) != NULL) continue;
        struct run run = new_run(step, &problem, INPUT_RANDOM);
        struct oracle oracle = ask_oracle(&run);
        forward(&run, step);
        for (int deterministic = 0; deterministic <= (step->backward_deterministic != NULL); deterministic++) {
            const char *what = deterministic != 0 ? "deterministic backward" : "backward";
            backward(&run, step, deterministic != 0);
            for (enum tensor tensor = TENSOR_dQ; tensor <= TENSOR_dV; tensor++)
                expect_each_row(&run, tensor, oracle.values[tensor], oracle.size[tensor], 1.0, what);
        }
        free_oracle(&oracle);
        run_destroy(&run);
        tested++;
    }
    cr_expect_geq(tested, is_last_rung ? 3 : 1);
}

/* Keys whose weights are e^-8, e^-16 ... e^-56 of the others': what they add to the norm of a gradient is nothing, but each row
 * of dK and dV must be right in itself. A score of -60 is rounded by 60 * 2^-24 = 4e-6 more than once. */
Test(backward, keys_of_small_weight, .init = needs_backward) {
    struct problem problem = problem_for(step, &(struct shape){1, 1, 70, 150, 64, false, 1.0f});
    struct run run = new_run(step, &problem, INPUT_RANDOM);
    for (size_t i = 0; i < 70; i++) run.host[TENSOR_Q][i * 64] = 4.0f;
    for (size_t j = 0; j < 150; j++) run.host[TENSOR_K][j * 64] = -16.0f * (float)(j % 8);
    cr_assert_eq(run_upload(&run), cudaSuccess);
    struct oracle oracle = ask_oracle(&run);
    forward(&run, step);
    for (int deterministic = 0; deterministic <= (step->backward_deterministic != NULL); deterministic++) {
        backward(&run, step, deterministic != 0);
        for (enum tensor tensor = TENSOR_dK; tensor <= TENSOR_dV; tensor++)
            expect_each_row(&run, tensor, oracle.values[tensor], oracle.size[tensor], 4.0, "with keys of small weight");
    }
    free_oracle(&oracle);
    run_destroy(&run);
}

/* dO of a loss that looks at one column of every third row: the other columns of dV are 0, those of dK are not. */
Test(backward, sparse_dO, .init = needs_backward) {
    struct run run = small_run(1, 2, 70, 90, 59, true, INPUT_RANDOM);
    size_t d = (size_t)run.problem.d;
    for (size_t i = 0; i < tensor_elements(&run.problem, TENSOR_dO); i++)
        if (i % d != 2 || i / d % 3 != 0) run.host[TENSOR_dO][i] = 0.0f;
    cr_assert_eq(run_upload(&run), cudaSuccess);
    forward(&run, step);
    for (int deterministic = 0; deterministic <= (step->backward_deterministic != NULL); deterministic++) {
        backward(&run, step, deterministic != 0);
        expect_right(&run, step, true, deterministic != 0 ? "deterministic backward, sparse dO" : "backward, sparse dO");
    }
    run_destroy(&run);
}

/* One key has nearly all the weight, but its row of V is 0: O is what all other keys add, however small their weights are. */
Test(forward, small_weights_add_up, .init = needs_forward) {
    static const float below[] = {8.0f, 10.2f, 12.0f, 18.0f, 24.0f}; /* the largest score: weights down to 4e-11 */
    const int N_kv = 150;
    for (enum dtype dtype = 0; dtype < DTYPES; dtype++)
        for (size_t b = 0; b < 2 * sizeof below / sizeof *below; b++) {
            struct problem problem = problem_for(step, &(struct shape){1, 1, 33, N_kv, 32, false, 0.0f});
            problem.dtype = dtype;
            problem.scale = 1.0f;
            if (dtype == FP16 && below[b / 2] > 11.0f) continue; /* weights below 2^-16 lose too many bits */
            if (dtype == FP8 && below[b / 2] > 9.7f) continue;   /* below 2^-14 in e4m3, with the factor of P */
            if (step_refuses(step, &problem, all_passes()) != NULL) continue;
            struct run run = new_run(step, &problem, INPUT_RANDOM);
            size_t d = (size_t)problem.d, largest = b % 2 == 0 ? 0 : (size_t)N_kv - 1;
            for (size_t i = 0; i < (size_t)problem.N_q * d; i++) run.host[TENSOR_Q][i] = i % d == 0 ? 1.0f : 0.0f;
            for (size_t i = 0; i < (size_t)N_kv * d; i++) {
                bool here = i / d == largest;
                run.host[TENSOR_K][i] = i % d == 0 && !here ? rounded_to(-below[b / 2], dtype) : 0.0f;
                if (here) run.host[TENSOR_V][i] = 0.0f;
            }
            cr_assert_eq(run_upload(&run), cudaSuccess);
            forward(&run, step);
            struct oracle oracle = ask_oracle(&run);
            expect_each_row(&run, TENSOR_O, oracle.values[TENSOR_O], oracle.values[TENSOR_O], 4.0, "with small weights");
            free_oracle(&oracle);
            run_destroy(&run);
        }
}

/* All scores far below 0, and one far above the others: O is the value of this key, L its score -2^(2 half + 1), and its dV the
 * sum of dO. The score is a power of 2, so that it is exact; what L loses where it is multiplied by log2(e), 2^-24 of 2^17, is
 * 1 % of P. */
static void one_key_of_large_negative_scores(int half, bool is_backward) {
    enum { N_kv = 150, KEY = 131 };
    struct problem problem = problem_for(step, &(struct shape){1, 2, 70, N_kv, 16, false, 1.0f});
    problem.scale = 1.0f;
    struct run run = new_run(step, &problem, INPUT_RANDOM);
    size_t d = (size_t)problem.d, N_q = (size_t)problem.N_q;
    double score = -ldexp(1.0, 2 * half + 1);
    float *Q = run.host[TENSOR_Q], *K = run.host[TENSOR_K];
    for (size_t i = 0; i < 2 * N_q * d; i++) Q[i] = i % d == 0 ? ldexpf(1.0f, half + 1) : 0.0f;
    for (size_t i = 0; i < 2 * N_kv * d; i++)
        if (i % d == 0) K[i] = ldexpf(-1.0f, i / d % N_kv == KEY ? half : half + 1);
        else if (step->hadamard) K[i] = 0.0f; /* mixed with the score, they would be rounded with it */
    cr_assert_eq(run_upload(&run), cudaSuccess);
    forward(&run, step);
    float *V = as_seen(&problem, TENSOR_V, run.host[TENSOR_V]);
    for (size_t row = 0; !is_backward && row < 2 * N_q; row++) {
        const float *value = V + (row / N_q * N_kv + KEY) * d;
        double L = (double)run.host[TENSOR_L][row];
        cr_assert_float_eq(L, score, 1e-6 * -score, "%s: L of row %zu of head %zu is %g instead of %g", step->name, row % N_q,
                           row / N_q, L, score);
        for (size_t c = 0; c < d; c++) {
            double O = (double)run.host[TENSOR_O][row * d + c];
            cr_assert_float_eq(O, (double)value[c], 1e-6 + 2e-2 * fabs((double)value[c]),
                               "%s: O[%zu] of row %zu of head %zu is %g, but V of the only key that counts is %g", step->name, c,
                               row % N_q, row / N_q, O, (double)value[c]);
        }
    }
    free(V);
    for (int deterministic = 0; is_backward && deterministic <= (step->backward_deterministic != NULL); deterministic++) {
        backward(&run, step, deterministic != 0);
        for (size_t head = 0; head < 2; head++)
            for (size_t c = 0; c < d; c++) {
                double sum = 0.0, terms = 0.0;
                for (size_t i = 0; i < N_q; i++) {
                    double dO = (double)run.host[TENSOR_dO][(head * N_q + i) * d + c];
                    sum += dO, terms += fabs(dO);
                }
                double dV = (double)run.host[TENSOR_dV][(head * N_kv + KEY) * d + c];
                cr_assert_float_eq(dV, sum, 2e-2 * terms, "%s: dV[%zu] of key %d of head %zu is %g, but dO adds up to %g",
                                   step->name, c, (int)KEY, head, dV, sum);
            }
    }
    run_destroy(&run);
}
Test(forward, large_negative_scores, .init = needs_forward) { one_key_of_large_negative_scores(8, false); }
Test(backward, large_negative_scores, .init = needs_backward) { one_key_of_large_negative_scores(8, true); }

/* All scores near 4096, or near -4096, and exact, for Q and K are multiples of 1/16: L is rounded by up to 2^-12, and a row's weights
 * add up to 1 + e, |e| <= 2.4 * 2^-12 where L log2(e) and scale S log2(e) are rounded, too. Where a column of dO is all 1, this column
 * of dV adds up to N_q. All of V near 512 moves dP and D by one number, a hundred times as large as dP - D: e D may not stay in dS. */
Test(backward, weights_beside_a_large_L, .init = needs_backward) {
    enum { N_q = 70, N_kv = 90 };
    for (float sign = -1.0f; sign <= 1.0f; sign += 2.0f) {
        struct problem problem = problem_for(step, &(struct shape){1, 1, N_q, N_kv, 16, false, 0.0f});
        problem.scale = 1.0f;
        struct run run = new_run(step, &problem, INPUT_RANDOM);
        size_t d = (size_t)problem.d;
        bool wide = problem.dtype == FP32; /* 16 bits do not hold such an O */
        for (size_t i = 0; i < N_q * d; i++) run.host[TENSOR_Q][i] = i % d == 0 ? sign * 64.0f : rintf(4.0f * run.host[TENSOR_Q][i]) / 16.0f;
        for (size_t i = 0; i < N_kv * d; i++) {
            run.host[TENSOR_K][i] = i % d == 0 ? 64.0f : rintf(4.0f * run.host[TENSOR_K][i]) / 16.0f;
            if (wide) run.host[TENSOR_V][i] += 512.0f;
        }
        for (size_t i = 0; i < N_q * d; i += d) run.host[TENSOR_dO][i] = 1.0f;
        cr_assert_eq(run_upload(&run), cudaSuccess);
        struct oracle oracle = ask_oracle(&run);
        forward(&run, step);
        for (int deterministic = 0; deterministic <= (step->backward_deterministic != NULL); deterministic++) {
            backward(&run, step, deterministic != 0);
            double sum = 0.0;
            for (size_t i = 0; i < N_kv * d; i += d) sum += (double)run.host[TENSOR_dV][i];
            cr_expect_float_eq(sum, N_q, (2.4 / 4096.0 + rounding_of(&run)) * N_q, "%s: dV adds up to %g", step->name, sum);
            for (enum tensor tensor = TENSOR_dQ; tensor <= TENSOR_dV && wide; tensor++) {
                double error = 0.0, size = 0.0;
                for (size_t i = 0; i < tensor_elements(&problem, tensor); i++) {
                    if (tensor == TENSOR_dQ && i % d == 0) continue; /* 64 times the sum of dS, which is 0 */
                    error += pow((double)run.host[tensor][i] - oracle.values[tensor][i], 2.0);
                    size += pow(oracle.values[tensor][i], 2.0);
                }
                cr_expect(sqrt(error) <= 1e-3 * sqrt(size), "%s: %s is off by %g of its norm", step->name, tensor_table[tensor].name,
                          sqrt(error / size));
            }
        }
        free_oracle(&oracle);
        run_destroy(&run);
    }
}

/* -2^103, about -1e31, is below what kernels write for a masked score, unless it is -inf. The simulated device rounds a product
 * before it subtracts; a card does not, and what an FMA leaves of 2^103 is no score any more. */
Test(forward, scores_below_minus_1e30, .init = needs_forward) {
    if (simt_run_part == NULL) cr_skip_test("the simulated device only");
    if (usual_dtype(step) == FP16) cr_skip_test("fp16 holds no such factors");
    one_key_of_large_negative_scores(51, false);
}

/* NaN in one row of Q, or of dO, stays in this row of O, or of dQ. */
static void nan_stays(enum tensor input, enum tensor output, int deterministic) {
    enum { N_q = 70, ROW = 36 };
    struct run run = small_run(1, 2, N_q, 90, 59, false, INPUT_RANDOM);
    size_t d = (size_t)run.problem.d, count = tensor_elements(&run.problem, output);
    double *before = NULL;
    for (int with_nan = 0; with_nan < 2; with_nan++) {
        forward(&run, step);
        for (size_t c = 0; with_nan != 0 && c < d; c++) run.host[input][(N_q + ROW) * d + c] = NAN;
        if (with_nan != 0) cr_assert_eq(run_upload(&run), cudaSuccess);
        if (input == TENSOR_dO)
            backward(&run, step, deterministic != 0);
        else
            forward(&run, step);
        if (with_nan == 0) before = keep(&run, output);
    }
    for (size_t i = 0; i < count; i++) {
        double got = (double)run.host[output][i];
        if (i / d == N_q + ROW) continue; /* what it gives is the kernel's choice */
        cr_assert_float_eq(got, before[i], 1e-5 + 0.02 * fabs(before[i]),
                           "%s: element %zu of row %zu of head %zu is %g instead of %g", step->name, i % d, i / d % N_q,
                           i / d / N_q, got, before[i]);
    }
    free(before);
    run_destroy(&run);
}
Test(forward, nan_stays_in_its_row, .init = needs_forward) { nan_stays(TENSOR_Q, TENSOR_O, 0); }
Test(backward, nan_stays_in_its_row, .init = needs_backward) {
    for (int deterministic = 0; deterministic <= (step->backward_deterministic != NULL); deterministic++)
        nan_stays(TENSOR_dO, TENSOR_dQ, deterministic);
}

/* O is linear in V, and the gradients are in dO: times a power of 2, large or small, all digits stay. A kernel that cuts large numbers
 * off, or leaves small ones out, is right at the usual size only. */
static void linear(enum tensor input, enum tensor first, enum tensor last, int deterministic) {
    static const int powers[] = {30, -60};
    struct run run = small_run(1, 2, 70, 90, 40, true, INPUT_RANDOM);
    double *before[TENSOR_COUNT] = {NULL};
    for (int i = -1; i < 2; i++) {
        for (size_t k = 0; i >= 0 && k < tensor_elements(&run.problem, input); k++)
            run.host[input][k] = ldexpf(run.host[input][k], powers[i] - (i > 0 ? powers[i - 1] : 0));
        cr_assert_eq(run_upload(&run), cudaSuccess);
        forward(&run, step);
        if (input == TENSOR_dO) backward(&run, step, deterministic != 0);
        for (enum tensor tensor = first; tensor <= last; tensor++) {
            if (i < 0) before[tensor] = keep(&run, tensor);
            for (size_t k = 0; i >= 0 && k < tensor_elements(&run.problem, tensor); k++)
                run.host[tensor][k] = ldexpf(run.host[tensor][k], -powers[i]);
            cr_expect(check_values(run.host[tensor], before[tensor], tensor_elements(&run.problem, tensor), 1e-6 + rounding_of(&run)).ok,
                      "%s: %s times 2^%d does not give %s times as much", step->name, tensor_table[input].name,
                      i < 0 ? 0 : powers[i], tensor_table[tensor].name);
        }
    }
    for (enum tensor tensor = first; tensor <= last; tensor++) free(before[tensor]);
    run_destroy(&run);
}
Test(forward, linear_in_V, .init = needs_forward) { linear(TENSOR_V, TENSOR_O, TENSOR_O, 0); }
Test(backward, linear_in_dO, .init = needs_backward) {
    for (int deterministic = 0; deterministic <= (step->backward_deterministic != NULL); deterministic++)
        linear(TENSOR_dO, TENSOR_dQ, TENSOR_dV, deterministic);
}

/* Heads do not mix: another dO in the second head leaves the first one's gradients alone. */
Test(backward, heads_apart, .init = needs_backward) {
    struct run run = small_run(1, 2, 65, 65, 32, false, INPUT_RANDOM);
    forward(&run, step);
    backward(&run, step, false);
    size_t head = 65 * (size_t)run.problem.d;
    double *before[] = {keep(&run, TENSOR_dQ), keep(&run, TENSOR_dK), keep(&run, TENSOR_dV)};
    for (size_t i = head; i < 2 * head; i++) run.host[TENSOR_dO][i] *= -7.0f;
    cr_assert_eq(run_upload(&run), cudaSuccess);
    backward(&run, step, false);
    for (int i = 0; i < 3; i++) {
        cr_assert(check_values(run.host[TENSOR_dQ + i], before[i], head, 1e-6).ok);
        cr_assert_neq((double)run.host[TENSOR_dQ + i][head], before[i][head], "the change had no effect");
        free(before[i]);
    }
    run_destroy(&run);
}

/* The check of a sample (problems too large to compare whole) must accept what the whole check accepts, and find an error
 * that is everywhere. */
Test(backward, sampled_check, .init = needs_backward) {
    struct run run = small_run(1, 2, 257, 300, 32, true, INPUT_RANDOM);
    forward(&run, step);
    backward(&run, step, false);
    struct verdict verdict = check_run(&run, true, 1e6);
    cr_assert_lt(verdict.checked_queries, tensor_rows(&run.problem, TENSOR_Q));
    cr_assert_lt(verdict.checked_keys, tensor_rows(&run.problem, TENSOR_K));
    cr_assert(verdict.ok);
    free_verdict(&verdict);
    for (size_t i = 0; i < tensor_elements(&run.problem, TENSOR_dK); i++) run.host[TENSOR_dK][i] *= 1.001f + 20.0f * (float)rounding_of(&run);
    verdict = check_run(&run, true, 1e6);
    cr_assert_not(verdict.ok);
    cr_assert(verdict.checks[TENSOR_dQ].ok && verdict.checks[TENSOR_dV].ok);
    free_verdict(&verdict);
    run.host[TENSOR_dV][5] = NAN;
    verdict = check_run(&run, true, 1e6);
    cr_assert_eq(verdict.first_not_finite[TENSOR_dV], 5);
    cr_assert_not(verdict.ok);
    free_verdict(&verdict);
    run_destroy(&run);
}
