/* Steps for few queries per sequence, and heads that share K and V: identities that need no reference. Those of tests/test_step.c
 * have more queries than such a step takes. Then steps that read K and V in pages through a block table, where each sequence has its
 * own length, and the number of splits, where a step lets it be chosen: none of the tests may depend on what its rule would take. */
#include "step_test.h"

#include "../common/simt/include/simulated.h"

#include <math.h>

#define step step_under_test

static void needs_few_queries(void) {
    needs_forward();
    if (!step->grouped_heads || step->most_queries < 8) cr_skip_test("a step for many queries, or without grouped heads: test_grid.c");
}

static struct run grouped_run(int batch, int heads, int heads_kv, int N_q, int N_kv, int d, bool causal, enum input_kind input) {
    struct problem problem = problem_for(step, &(struct shape){batch, heads, N_q, N_kv, d, causal, 0.0f, heads_kv});
    cr_assert_eq(problem.N_q, N_q);
    return new_run(step, &problem, input);
}

/* The keys that query row `row` attends to. */
static size_t attended(const struct problem *p, size_t row) {
    long long keys = p->causal ? (long long)(row % (size_t)p->N_q) + 1 + p->N_kv - p->N_q : p->N_kv;
    return keys > 0 ? (size_t)keys : 0;
}

/* Q = 0: every key that a row attends to weighs the same, so O is their mean and L the logarithm of their number. Key j of V is
 * j + 1, which one key too many or too few moves by half a key, and a key of padding as much. */
Test(few_queries, mean_of_V, .init = needs_few_queries) {
    static const int lengths[] = {1, 2, 7, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200, 256, 257};
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof *lengths; i++)
        for (int N_q = 1; N_q <= 8; N_q += i % 2 == 0 ? 7 : 3) {
            int heads_kv = 1 + (int)i % 3;
            struct run run = grouped_run(2, 3 * heads_kv, heads_kv, N_q, lengths[i / 2], i % 4 < 2 ? 64 : 128, i % 2 == 0, INPUT_RANDOM);
            const struct problem *p = &run.problem;
            size_t d = (size_t)p->d, N_kv = (size_t)p->N_kv;
            for (size_t c = 0; c < tensor_elements(p, TENSOR_Q); c++) run.host[TENSOR_Q][c] = 0.0f;
            for (size_t c = 0; c < tensor_elements(p, TENSOR_V); c++) run.host[TENSOR_V][c] = (float)(c / d % N_kv + 1);
            cr_assert_eq(run_upload(&run), cudaSuccess);
            forward(&run, step);
            for (size_t row = 0; row < tensor_rows(p, TENSOR_Q); row++) {
                double keys = (double)attended(p, row), mean = keys > 0.0 ? (keys + 1.0) / 2.0 : 0.0;
                double L = (double)run.host[TENSOR_L][row];
                cr_assert(keys > 0.0 ? fabs(L - log(keys)) <= 1e-5 : isinf(L) && L < 0.0, "%s: L of row %zu is %g", describe(p), row, L);
                for (size_t c = 0; c < d; c++)
                    cr_assert_float_eq((double)run.host[TENSOR_O][row * d + c], mean, 1.0 / 256.0 * mean, "%s: O of row %zu is %g, not %g",
                                       describe(p), row, (double)run.host[TENSOR_O][row * d + c], mean);
            }
            run_destroy(&run);
        }
}

/* Head h reads K and V of head h / (heads / heads_kv), and no other: V of a head is its number. */
Test(few_queries, head_of_the_group, .init = needs_few_queries) {
    static const int heads[][2] = {{1, 1}, {4, 4}, {6, 3}, {6, 2}, {6, 1}, {12, 3}, {32, 2}, {40, 1}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        for (int N_q = 1; N_q <= 7; N_q += 3) {
            struct run run = grouped_run(3, heads[i][0], heads[i][1], N_q, 150, 64, true, INPUT_RANDOM);
            size_t d = (size_t)run.problem.d, H = (size_t)heads[i][0], H_kv = (size_t)heads[i][1];
            for (size_t c = 0; c < tensor_elements(&run.problem, TENSOR_V); c++) run.host[TENSOR_V][c] = (float)(c / d / 150 + 1);
            cr_assert_eq(run_upload(&run), cudaSuccess);
            forward(&run, step);
            for (size_t c = 0; c < tensor_elements(&run.problem, TENSOR_O); c++) {
                size_t head = c / d / (size_t)N_q, expected = head / H * H_kv + head % H / (H / H_kv) + 1;
                cr_assert_float_eq((double)run.host[TENSOR_O][c], (double)expected, 0.01 * (double)expected,
                                   "%s: head %zu reads V of head %g, not %zu", describe(&run.problem), head,
                                   (double)run.host[TENSOR_O][c] - 1.0, expected - 1);
            }
            run_destroy(&run);
        }
}

/* More queries than keys: the first rows attend to nothing, and must say so exactly. */
Test(few_queries, masked_rows, .init = needs_few_queries) {
    for (int N_kv = 1; N_kv < 8; N_kv += 3) {
        struct run run = grouped_run(2, 6, 2, 8, N_kv, 40, true, INPUT_RANDOM);
        size_t d = (size_t)run.problem.d;
        forward(&run, step);
        for (size_t row = 0; row < tensor_rows(&run.problem, TENSOR_L); row++) {
            float L = run.host[TENSOR_L][row];
            cr_assert(attended(&run.problem, row) > 0 ? isfinite(L) : isinf(L) && L < 0.0f, "L of row %zu is %g", row % 8, (double)L);
            for (size_t c = 0; c < d && attended(&run.problem, row) == 0; c++) cr_assert_eq(run.host[TENSOR_O][row * d + c], 0.0f);
        }
        run_destroy(&run);
    }
}

/* Keys that the mask hides from a query cannot change its output, not even in the last bit. */
Test(few_queries, causal_prefix, .init = needs_few_queries) {
    static const int lengths[] = {8, 64, 67, 130, 1000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t N_kv = (size_t)lengths[i];
        struct run run = grouped_run(1, 4, 2, 8, lengths[i], 64, true, INPUT_RANDOM);
        size_t d = (size_t)run.problem.d;
        forward(&run, step);
        double *O = keep(&run, TENSOR_O), *L = keep(&run, TENSOR_L);
        for (size_t c = 0; c < tensor_elements(&run.problem, TENSOR_K); c++)
            if (c / d % N_kv >= N_kv - 4) run.host[TENSOR_K][c] += 3.0f, run.host[TENSOR_V][c] -= 5.0f;
        cr_assert_eq(run_upload(&run), cudaSuccess);
        forward(&run, step);
        for (size_t row = 0; row < tensor_rows(&run.problem, TENSOR_Q); row++) {
            bool same = row % 8 < 4;
            cr_assert_eq((double)run.host[TENSOR_L][row] == L[row], same, "%d keys: L of row %zu", lengths[i], row % 8);
            for (size_t c = 0; c < d && same; c++) cr_assert_eq((double)run.host[TENSOR_O][row * d + c], O[row * d + c]);
        }
        free(O), free(L);
        run_destroy(&run);
    }
}

/* Two runs agree bit for bit: nothing may depend on the order in which blocks happen to run. */
Test(few_queries, repeatable, .init = needs_few_queries) {
    struct run run = grouped_run(1, 6, 2, 5, 1000, 128, true, INPUT_RANDOM);
    forward(&run, step);
    double *O = keep(&run, TENSOR_O), *L = keep(&run, TENSOR_L);
    for (unsigned repeat = 0; repeat < 5; repeat++) {
        if (simt_shuffle_blocks != NULL) simt_shuffle_blocks(repeat);
        forward(&run, step);
        cr_assert(same_bits(&run, TENSOR_O, O) && same_bits(&run, TENSOR_L, L));
    }
    free(O), free(L);
    run_destroy(&run);
}

/* NaN in one row of Q stays in this row of O, though the rows of a group share a tile. */
Test(few_queries, nan_stays_in_its_row, .init = needs_few_queries) {
    struct run run = grouped_run(1, 8, 2, 3, 200, 64, true, INPUT_RANDOM);
    size_t d = (size_t)run.problem.d, with_nan = 7;
    forward(&run, step);
    double *O = keep(&run, TENSOR_O);
    for (size_t c = 0; c < d; c++) run.host[TENSOR_Q][with_nan * d + c] = NAN;
    cr_assert_eq(run_upload(&run), cudaSuccess);
    forward(&run, step);
    for (size_t i = 0; i < tensor_elements(&run.problem, TENSOR_O); i++)
        if (i / d != with_nan) /* a row that shares a warp may get another maximum to subtract, and round otherwise */
            cr_assert_float_eq((double)run.host[TENSOR_O][i], O[i], 0.01, "row %zu", i / d);
    free(O);
    run_destroy(&run);
}

/* A thousand keys in one split or many: keys far apart in their scores, the largest at the end, at the beginning, in the middle. */
Test(few_queries, maximum_in_any_split, .init = needs_few_queries) {
    static const size_t where[] = {0, 63, 64, 500, 767, 768, 999};
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        struct run run = grouped_run(1, 2, 1, 2, 1000, 128, false, INPUT_RANDOM);
        size_t d = (size_t)run.problem.d;
        for (size_t c = 0; c < tensor_elements(&run.problem, TENSOR_Q); c++) run.host[TENSOR_Q][c] = c % d == 0 ? 16.0f : 0.0f;
        for (size_t c = 0; c < 1000 * d; c += d) run.host[TENSOR_K][c] = c / d == where[i] ? 32.0f : -4.0f * (float)(c / d % 7);
        cr_assert_eq(run_upload(&run), cudaSuccess);
        forward(&run, step);
        expect_right(&run, step, false, "forward, one large score");
        run_destroy(&run);
    }
}

/* ---- pages and splits ---- */

static void needs_pages(void) {
    needs_forward();
    if ((step->variants & PAGES) == 0) cr_skip_test("the step takes no pages");
}

static void needs_splits(void) {
    needs_forward();
    if (&decode_splits == NULL) cr_skip_test("the step has no number of splits to choose");
}

static struct run paged_run(struct shape shape, int page_size, const int *lengths) {
    struct problem problem = problem_for(step, &shape);
    cr_assert_eq(problem.N_q, shape.N_q);
    problem.page_size = page_size, problem.lengths = lengths;
    return new_run(step, &problem, INPUT_RANDOM);
}

static const char *describe_pages(const struct problem *p) {
    static char text[480];
    snprintf(text, sizeof text, "%s, pages of %d, %d splits", describe(p), p->page_size, &decode_splits != NULL ? decode_splits : 0);
    return text;
}

/* Of a row of Q, O, L: its sequence, and how many of its keys the row attends to. */
static int sequence_of(const struct problem *p, size_t row) { return (int)(row / (size_t)(p->heads * p->N_q)); }
static int attended_of(const struct problem *p, size_t row) {
    int length = p->lengths[sequence_of(p, row)], keys = p->causal ? (int)(row % (size_t)p->N_q) + 1 + length - p->N_q : length;
    return keys > 0 ? keys : 0;
}

/* Q = 0 and V of key j is j + 1: O is the mean over the keys that a row attends to, L the logarithm of their number. A key of padding,
 * of another page or of another head moves both. Heads differ by an offset that their mean keeps. */
static void expect_means(struct run *run) {
    const struct problem *p = &run->problem;
    size_t d = (size_t)p->d, N_kv = (size_t)p->N_kv, of_head = N_kv * d;
    for (size_t c = 0; c < tensor_elements(p, TENSOR_Q); c++) run->host[TENSOR_Q][c] = 0.0f;
    for (size_t c = 0; c < tensor_elements(p, TENSOR_V); c++)
        run->host[TENSOR_V][c] = (float)(c / d % N_kv + 1) + 1000.0f * (float)(c / of_head % (size_t)kv_heads(p));
    cr_assert_eq(run_upload(run), cudaSuccess);
    forward(run, step);
    for (size_t row = 0; row < tensor_rows(p, TENSOR_Q); row++) {
        int keys = attended_of(p, row), head = (int)(row / (size_t)p->N_q) % p->heads;
        double mean = keys > 0 ? (keys + 1.0) / 2.0 + 1000.0 * (head / (p->heads / kv_heads(p))) : 0.0, L = (double)run->host[TENSOR_L][row];
        cr_assert(keys > 0 ? fabs(L - log(keys)) <= 1e-5 : isinf(L) && L < 0.0, "%s: L of row %zu, of %d keys, is %g", describe_pages(p), row, keys, L);
        for (size_t c = 0; c < d; c++)
            cr_assert(fabs((double)run->host[TENSOR_O][row * d + c] - mean) <= 1.0 / 128.0 * mean, "%s: O of row %zu, of %d keys, is %g, not %g",
                      describe_pages(p), row, keys, (double)run->host[TENSOR_O][row * d + c], mean);
    }
}

/* Every length from 0 on in one batch, so that each position is the last key of some sequence, a page's first or last one included. */
Test(pages, every_length, .init = needs_pages) {
    for (int i = 0; i < 5; i += every(3)) {
        int page_size = 16 << i, sequences = page_size < 64 ? 80 : page_size + 8, lengths[256 + 8];
        for (int b = 0; b < sequences; b++) lengths[b] = b;
        force_splits(i % 2 == 0 ? 0 : 3);
        struct shape shape = {sequences, 2, 1 + 3 * i % 8, sequences - 1, 64, i % 2 == 0, 0.0f, 2};
        struct run run = paged_run(shape, page_size, lengths);
        expect_means(&run);
        run_destroy(&run);
    }
}

/* Groups of 1, 3 and 8, 1 to 8 queries, all sizes of pages, with and without a mask, and a table that is longer than any sequence. More
 * splits than tiles leave splits without a key: each sequence divides its own tiles. */
Test(pages, groups_and_queries, .init = needs_pages) {
    static const int groups[] = {1, 3, 8}, lengths[] = {0, 1, 65, 300, 15, 16, 17};
    for (int i = 0; i < 3 * 8 * 2; i += every(7)) {
        int heads_kv = 1 + i % 2, group = groups[i % 3], N_q = 1 + i / 3 % 8;
        force_splits((const int[]){0, 1, 2, 5, 9}[i % 5]);
        struct run run = paged_run((struct shape){7, heads_kv * group, N_q, 700, i % 4 < 2 ? 128 : 40, i >= 24, 0.0f, heads_kv}, 16 << i % 5, lengths);
        expect_means(&run);
        run_destroy(&run);
    }
}

/* Random scores against the reference, which knows nothing of pages; two row tiles, four, and two blocks for a group. */
Test(pages, reference, .init = needs_pages) {
    static const struct shape shapes_of_groups[] = {{3, 4, 1, 500, 128, false, 0.0f, 2}, {3, 6, 7, 500, 72, true, 0.0f, 2},
                                                    {3, 8, 8, 500, 64, true, 0.0f, 1},  {3, 12, 8, 500, 128, true, 2.0f, 1}};
    static const int lengths[] = {499, 0, 130};
    for (size_t i = 0; i < 4 * 5; i += (size_t)every(3)) {
        force_splits((int)i % 4);
        struct run run = paged_run(shapes_of_groups[i % 4], 16 << i % 5, lengths);
        forward(&run, step);
        expect_right(&run, step, false, describe_pages(&run.problem));
        run_destroy(&run);
    }
}

/* Pages so far back in the pool that their elements are numbered from 2^31 or 2^32 on. Nothing before them is touched. */
Test(pages, elements_past_32_bits, .init = needs_pages) {
    if (simt_reserve == NULL) cr_skip_test("a card has no memory that is never touched");
    static const int lengths[] = {170, 40};
    for (int bits = 31; bits <= 32; bits++) {
        struct run run = paged_run((struct shape){2, 4, 2, 200, 128, true, 0.0f, 2}, 32, lengths);
        struct problem *p = &run.problem;
        size_t page = (size_t)kv_heads(p) * (size_t)p->page_size * (size_t)p->d * element_bytes(p, TENSOR_K);
        int near = p->page_count, far = (int)((1ull << bits) / (page / element_bytes(p, TENSOR_K))) + 1;
        const float **pools[] = {&run.device.K, &run.device.V};
        for (int i = 0; i < 2; i++) {
            char *pool = simt_reserve((size_t)(far + near) * page);
            cr_assert_not_null(pool);
            cr_assert_eq(cudaMemcpy(pool + (size_t)far * page, *pools[i], (size_t)near * page, cudaMemcpyDeviceToDevice), cudaSuccess);
            *pools[i] = (const float *)(void *)pool;
        }
        int numbers = p->batch * pages_per_sequence(p);
        for (int i = 0; i < numbers; i++) run.own_pages[i] += far;
        p->page_count += far;
        cr_assert_eq(cudaMemcpy(run.tables[TABLE_PAGES], run.own_pages, (size_t)numbers * sizeof(int), cudaMemcpyHostToDevice), cudaSuccess);
        forward(&run, step);
        expect_right(&run, step, false, bits == 31 ? "past element 2^31" : "past element 2^32");
        cudaDeviceReset();
    }
}

/* Each sequence divides its own tiles over the splits, not those that the table has room for: with the same number of splits O and L have
 * the bits of the same keys one after the other. */
Test(pages, own_tiles, .init = needs_pages) {
    if (&decode_splits == NULL) cr_skip_test("the step has no number of splits to choose");
    static const int lengths[] = {300};
    force_splits(3);
    struct run run = paged_run((struct shape){1, 4, 2, 2000, 64, true, 0.0f, 2}, 32, lengths);
    struct problem contiguous = problem_for(step, &(struct shape){1, 4, 2, 300, 64, true, 0.0f, 2});
    struct run same = new_run(step, &contiguous, INPUT_RANDOM);
    for (enum tensor tensor = TENSOR_Q; tensor <= TENSOR_V; tensor++)
        for (size_t c = 0; c < tensor_elements(&contiguous, tensor); c++) {
            size_t head = c / (300 * 64), of_head = c % (300 * 64);
            same.host[tensor][c] = run.host[tensor][tensor == TENSOR_Q ? c : head * 2000 * 64 + of_head];
        }
    cr_assert_eq(run_upload(&same), cudaSuccess);
    forward(&run, step), forward(&same, step);
    double *O = keep(&run, TENSOR_O), *L = keep(&run, TENSOR_L);
    cr_assert(same_bits(&same, TENSOR_O, O) && same_bits(&same, TENSOR_L, L));
    free(O), free(L);
    run_destroy(&same), run_destroy(&run);
}

/* What lies behind a sequence's last key changes nothing, not even the last bit; a key before it does. */
Test(pages, keys_beyond_the_length, .init = needs_pages) {
    static const int lengths[] = {100, 33};
    force_splits(2);
    struct run run = paged_run((struct shape){2, 4, 3, 200, 64, true, 0.0f, 2}, 32, lengths);
    size_t d = (size_t)run.problem.d;
    forward(&run, step);
    double *O = keep(&run, TENSOR_O), *L = keep(&run, TENSOR_L);
    for (int last = 0; last < 2; last++) {
        for (size_t c = 0; c < tensor_elements(&run.problem, TENSOR_K); c++) {
            int key = (int)(c / d % 200), length = lengths[c / d / 200 / 2];
            if (key >= length - last) run.host[TENSOR_K][c] += 3.0f, run.host[TENSOR_V][c] -= 5.0f;
        }
        cr_assert_eq(run_upload(&run), cudaSuccess);
        forward(&run, step);
        cr_assert_eq(same_bits(&run, TENSOR_O, O) && same_bits(&run, TENSOR_L, L), last == 0);
    }
    free(O), free(L);
    run_destroy(&run);
}

/* Every number of splits gives the same O and L, also where there are more splits than tiles. */
Test(splits, any_number, .init = needs_splits) {
    static const int numbers[] = {1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 33, 100};
    for (size_t i = 0; i < 4 * sizeof numbers / sizeof *numbers; i += (size_t)every(5)) {
        force_splits(numbers[i / 4]);
        struct shape shape = {1, 6, (const int[]){1, 3, 8, 6}[i % 4], (const int[]){1000, 64, 257, 1}[i % 4], i % 3 == 0 ? 64 : 128, i % 2 == 0, 0.0f,
                              (const int[]){2, 6, 1, 3}[i % 4]};
        if (!step->grouped_heads) shape.heads_kv = 0;
        struct problem problem = problem_for(step, &shape);
        struct run run = new_run(step, &problem, INPUT_RANDOM);
        forward(&run, step);
        expect_right(&run, step, false, describe_pages(&problem));
        run_destroy(&run);
    }
}

/* With a split for each tile, and a maximum of its own in each, the parts differ by many orders of magnitude. */
Test(splits, many_splits, .init = needs_splits) {
    force_splits(40);
    struct problem problem = problem_for(step, &(struct shape){1, 4, 2, 2500, 128, true, 20.0f, 2});
    struct run run = new_run(step, &problem, INPUT_RANDOM);
    forward(&run, step);
    expect_right(&run, step, false, "large scores in 40 splits");
    double *O = keep(&run, TENSOR_O), *L = keep(&run, TENSOR_L);
    for (int i = 0; i < 3; i++) {
        forward(&run, step);
        cr_assert(same_bits(&run, TENSOR_O, O) && same_bits(&run, TENSOR_L, L));
    }
    free(O), free(L);
    run_destroy(&run);
}

/* The rule asks how much memory the parts need, and the pass must ask the same. */
Test(splits, workspace_follows_the_number, .init = needs_splits) {
    struct problem problem = problem_for(step, &(struct shape){2, 4, 3, 1000, 64, false, 0.0f, 2});
    for (int splits = 1; splits < 20; splits++) {
        force_splits(splits);
        size_t rows = 2 * 4 * 3, bytes = splits > 1 ? (size_t)splits * rows * (64 + 1) * sizeof(float) : 0;
        cr_assert_eq(workspace_bytes_of(step, &problem), bytes, "%d splits: %zu bytes", splits, workspace_bytes_of(step, &problem));
    }
}
