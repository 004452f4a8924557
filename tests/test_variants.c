/* Variants of a problem on the host: random numbers and masks against published or counted ones, what is refused, and the harness's own
 * forward pass against the oracle for all of them, two at a time and together. */
#include "border.h"
#include "variants.h"
#include "reference.h"
#include "run.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

/* The known answers of Random123 (kat_vectors, philox4x32 10). */
Test(variants, philox_known_answers) {
    static const uint32_t answers[][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        uint32_t counter[4];
        memcpy(counter, answers[i], sizeof counter);
        reference_philox(counter, answers[i][4], answers[i][5]);
        for (size_t w = 0; w < 4; w++) cr_expect_eq(counter[w], answers[i][6 + w], "word %zu of answer %zu is %08x", w, i, counter[w]);
    }
}

/* A share `dropout` of the weights is dropped, of each head another one, and no word serves two weights. */
Test(variants, dropout_drops_its_share) {
    for (int tenths = 1; tenths < 10; tenths += 4) {
        struct problem problem = {.batch = 1, .heads = 2, .N_q = 200, .N_kv = 300, .d = 8, .dropout = 0.1f * (float)tenths, .dropout_seed = 3};
        int dropped = 0, alike = 0;
        for (size_t row = 0; row < 400; row++) {
            struct sight sight = sight_of_query(&problem, row), other = sight_of_query(&problem, (row + 200) % 400);
            for (int j = 0; j < 300; j++) {
                bool here = kept_weight(&problem, &sight, j) > 0;
                dropped += !here;
                alike += here == (kept_weight(&problem, &other, j) > 0);
            }
        }
        double p = 0.1 * tenths, deviation = sqrt(p * (1 - p) / 120000), share = p * p + (1 - p) * (1 - p);
        cr_expect_float_eq(dropped / 120000.0, p, 5 * deviation, "%d of 120000 dropped at %g", dropped, p);
        cr_expect_float_eq(alike / 120000.0, share, 0.01, "two heads agree in %d of 120000, at %g", alike, p);
    }
}

/* What a window lets through, counted by its definition. */
Test(variants, window_by_definition) {
    for (int N_q = 1; N_q < 9; N_q += 3)
        for (int N_kv = 1; N_kv < 12; N_kv += 2)
            for (int left = 0; left < 5; left += 2)
                for (int right = 0; right < 4; right++)
                    for (int causal = 0; causal < 2; causal++) {
                        struct problem p = {.batch = 1, .heads = 1, .N_q = N_q, .N_kv = N_kv, .d = 8, .windowed = true, .left = left,
                                            .right = right, .causal = causal};
                        double pairs = 0;
                        for (int i = 0; i < N_q; i++) {
                            struct sight sight = sight_of_query(&p, (size_t)i);
                            for (int j = 0; j < N_kv; j++) {
                                int x = i + N_kv - N_q;
                                bool sees = x - left <= j && j <= x + right && (!causal || j <= x);
                                pairs += sees;
                                cr_expect_eq(sees, j >= sight.first && j < sight.first + (long long)sight.keys, "query %d of %d, key %d of %d",
                                             i, N_q, j, N_kv);
                            }
                        }
                        cr_expect_eq(unmasked_pairs(&p), pairs);
                    }
}

static const int starts[] = {0, 37, 37, 38, 103, 167}; /* lengths 37, 0, 1, 65, 64 */

/* Variant number v switched on. */
enum { SWITCHES = 9 };
static void switch_on(struct problem *p, int v) {
    switch (v) {
    case 0: p->windowed = true, p->left = 20, p->right = 3; break;
    case 1: p->softcap = 1.5f; break;
    case 2: p->alibi = p->heads_kv == 0 ? ONE_FORMULA : RELEASED_RULE; break; /* case 7: 6 heads */
    case 3: p->dropout = 0.4f, p->dropout_seed = 0x123456789abcdefu; break;
    case 4: p->rotary = INTERLEAVED; break;
    case 5: p->rotary = HALVED; break;
    case 6: p->batch = 1, p->N_q = p->N_kv = 167, p->starts = starts, p->sequences = 5, p->longest = 65; break;
    case 7: p->heads = 6, p->heads_kv = 2; break;
    case 8: p->causal = true; break;
    }
}

static cudaError_t no_pass(const struct problem *problem, const struct tensors *tensors, void *workspace, cudaStream_t stream) {
    (void)problem, (void)tensors, (void)workspace, (void)stream;
    return cudaSuccess;
}

static void expect_right(const struct problem *problem) {
    static const struct step backward_only = {.name = "a backward step", .backward = no_pass, .dtypes = 1 << BF16 | 1 << FP16 | 1 << FP32,
                                              .grouped_heads = true,
                                              .variants = WINDOW | SOFTCAP | ALIBI | DROPOUT | ROTARY | PACKED};
    const char *reason = step_refuses(&backward_only, problem, (struct passes){.backward = true});
    cr_assert_null(reason, "%s", reason);
    struct run run;
    cr_assert_eq(run_create(&run, &backward_only, problem, INPUT_RANDOM, 3), cudaSuccess);
    cr_assert_eq(run_forward(&run, &backward_only), cudaSuccess);
    struct verdict verdict = check_run(&run, false, 1e15);
    cr_expect(verdict.ok, "batch %d, heads %d on %d, %d queries, %d keys, d %d%s%s, %s: O is off by %g (bound %g), L by %g", problem->batch,
              problem->heads, kv_heads(problem), problem->N_q, problem->N_kv, problem->d, problem->causal ? ", causal" : "",
              variants_text(problem), dtype_names[problem->dtype], verdict.checks[TENSOR_O].err_rel, verdict.checks[TENSOR_O].bound_rel,
              verdict.checks[TENSOR_L].err_max);
    free_verdict(&verdict);
    run_destroy(&run);
}

Test(variants, harness_forward_agrees) {
    static const int lengths[][2] = {{90, 90}, {45, 130}, {130, 45}};
    for (int a = 0; a < SWITCHES; a++)
        for (int b = a; b < SWITCHES; b++) {
            const int *N = lengths[(a + b) % 3];
            struct problem problem = {.dtype = (enum dtype)((a + 2 * b) % FP8), .batch = 2, .heads = 2, .N_q = N[0], .N_kv = N[1], .d = 24,
                                      .scale = 0.2f};
            switch_on(&problem, a);
            switch_on(&problem, b);
            expect_right(&problem);
        }
    struct problem all = {.dtype = BF16, .d = 40, .scale = 0.2f};
    for (int v = SWITCHES - 1; v >= 0; v--) switch_on(&all, v);
    expect_right(&all);
}

/* A step that takes no variant refuses each by name; numbers that make no sense are refused where it does. */
Test(variants, refused) {
    static const struct step plain = {.name = "plain", .forward = no_pass, .grouped_heads = true};
    static const char *const names[] = {"a window", "softcap", "ALiBi", "dropout", "rotary", "rotary", "packed"};
    struct passes forward = {.forward = true};
    for (int v = 0; v < 7; v++) {
        struct problem problem = {.batch = 1, .heads = 2, .N_q = 16, .N_kv = 16, .d = 8, .scale = 1};
        cr_expect_null(step_refuses(&plain, &problem, forward));
        switch_on(&problem, v);
        const char *reason = step_refuses(&plain, &problem, forward);
        cr_assert_not_null(reason);
        cr_expect_eq(strncmp(reason, names[v], strlen(names[v])), 0, "%s", reason);
    }
    static const struct step able = {.name = "able", .forward = no_pass, .variants = ~0u};
    const struct problem good = {.batch = 1, .heads = 2, .N_q = 16, .N_kv = 16, .d = 8, .scale = 1};
    struct problem bad[8];
    for (int i = 0; i < 8; i++) bad[i] = good;
    bad[0].windowed = true, bad[0].left = -1;
    bad[1].windowed = true, bad[1].right = 33;
    bad[2].softcap = NAN;
    bad[3].dropout = 1.0f;
    bad[4].dropout = -0.1f;
    bad[5].rotary = HALVED, bad[5].d = 7;
    bad[6].starts = starts, bad[6].sequences = 0;
    bad[7].lengths = starts, bad[7].page_size = 24;
    for (int i = 0; i < 8; i++) cr_expect_not_null(step_refuses(&able, &bad[i], forward), "case %d", i);
}

/* Tables that would lead a kernel outside of its tensors. */
Test(variants, wrong_tables) {
    int good[] = {0, 5, 5, 16}, lengths[] = {40, 0}, pages[] = {2, 0, 1, -1, -1, -1};
    struct problem packed = {.batch = 1, .heads = 1, .N_q = 16, .N_kv = 16, .d = 8, .starts = good, .sequences = 3, .longest = 11};
    cr_expect_null(tables_refuse(&packed), "%s", tables_refuse(&packed));
    static const int wrong_starts[][4] = {{1, 5, 5, 16}, {0, 6, 5, 16}, {0, 5, 5, 17}, {0, 5, 5, 15}, {0, 5, 4, 16}, {0, 1, 1, 16}};
    for (size_t i = 0; i < sizeof wrong_starts / sizeof *wrong_starts; i++) {
        packed.starts = wrong_starts[i];
        cr_expect_not_null(tables_refuse(&packed), "starts %zu", i);
    }
    struct problem cache = {.batch = 2, .heads = 1, .N_q = 1, .N_kv = 48, .d = 8, .lengths = lengths, .pages = pages, .page_size = 16,
                            .page_count = 3};
    cr_expect_null(tables_refuse(&cache), "%s", tables_refuse(&cache));
    lengths[0] = 49;
    cr_expect_not_null(tables_refuse(&cache));
    lengths[0] = 48, lengths[1] = -1;
    cr_expect_not_null(tables_refuse(&cache));
    lengths[1] = 1; /* its page is -1 */
    cr_expect_not_null(tables_refuse(&cache));
    pages[3] = 3;
    cr_expect_not_null(tables_refuse(&cache));
    pages[3] = 2;
    cr_expect_null(tables_refuse(&cache));
}

/* The gradient of a rotation is its adjoint: <rotated x, y> = <x, y rotated back>. And a score depends on the distance of its positions
 * only: rotated q . rotated k is the same for query and key moved alike. */
Test(variants, rotation_and_its_gradient) {
    for (int kind = INTERLEAVED; kind <= HALVED; kind++)
        for (int packed = 0; packed < 2; packed++) {
            struct problem p = {.batch = 1, .heads = 1, .N_q = 167, .N_kv = 167, .d = 6, .scale = 1, .rotary = (enum rotary)kind};
            if (packed) p.starts = starts, p.sequences = 5, p.longest = 65;
            enum { COUNT = 167 * 6 };
            double x[COUNT], y[COUNT], turned[COUNT], back[COUNT], one = 0, other = 0, length = 0, turned_length = 0;
            for (int i = 0; i < COUNT; i++) x[i] = sin(3.0 * i), y[i] = cos(7.0 * i + 1);
            memcpy(turned, x, sizeof x), memcpy(back, y, sizeof y);
            rotate_rows(&p, TENSOR_Q, NULL, 167, turned, false, false);
            rotate_rows(&p, TENSOR_dQ, NULL, 167, back, true, false);
            for (int i = 0; i < COUNT; i++) {
                one += turned[i] * y[i], other += x[i] * back[i];
                length += x[i] * x[i], turned_length += turned[i] * turned[i];
            }
            cr_expect_float_eq(one, other, 1e-10);
            cr_expect_float_eq(length, turned_length, 1e-10);
            double q[COUNT], k[COUNT];
            for (int i = 0; i < COUNT; i++) q[i] = x[i % 6], k[i] = y[i % 6]; /* one query and one key, at all positions */
            rotate_rows(&p, TENSOR_Q, NULL, 167, q, false, false);
            rotate_rows(&p, TENSOR_K, NULL, 167, k, false, false);
            for (int row = 40; row < 90; row++) { /* within the sequence that begins at 38 */
                double here = 0, before = 0;
                for (int c = 0; c < 6; c++) here += q[row * 6 + c] * k[(row - 2) * 6 + c], before += q[41 * 6 + c] * k[39 * 6 + c];
                cr_expect_float_eq(here, before, 1e-10, "row %d", row);
            }
        }
}
