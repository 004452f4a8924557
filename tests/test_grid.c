/* Steps that take variants (attention.h), on a grid of variants x masks x shapes x types x passes: the edges first, then drawn ones.
 * TEST_GRID says how many are drawn; the default is a sample. */
#include "step_test.h"

#include "border.h"
#include "variants.h"
#include "captured.h"
#include "reference.h"

#include <math.h>
#include <string.h>

#define step step_under_test

static void needs_variants(void) {
    skip_without_device();
    if (step->variants == 0 && !step->grouped_heads) cr_skip_test("the step takes no variant");
}

/* Lists that a problem points to. */
static struct { int starts[16], lengths[16]; } lists;

static void pack(struct problem *problem, const int *lengths, int count) {
    problem->batch = 1;
    problem->sequences = count;
    problem->longest = 0;
    for (int s = 0; s < count; s++) {
        lists.starts[s + 1] = lists.starts[s] + lengths[s];
        if (lengths[s] > problem->longest) problem->longest = lengths[s];
    }
    problem->N_q = problem->N_kv = lists.starts[count];
    problem->starts = lists.starts;
}

static void put_in_pages(struct problem *problem, int page_size, const int *lengths) {
    for (int b = 0; b < problem->batch; b++) {
        lists.lengths[b] = lengths[b];
        if (lengths[b] > problem->N_kv) problem->N_kv = lengths[b];
    }
    problem->lengths = lists.lengths;
    problem->page_size = page_size;
}

static int at_most(uint64_t *state, int most) { return (int)(drawn_bits(state) % (unsigned)(most + 1)); }
static int one_of(uint64_t *state, const int *list, int count) { return list[drawn_bits(state) % (unsigned)count]; }
#define ONE_OF(state, ...)                                                                                             \
    one_of(state, (const int[]){__VA_ARGS__}, (int)(sizeof(const int[]){__VA_ARGS__} / sizeof(int)))

/* Problem number `index`, with variants that the step takes: each is asked for in a third of the problems, and about half of their
 * numbers are edges. */
static struct problem drawn_problem(uint64_t seed, unsigned index) {
    uint64_t state = seed * 1000003u + index;
    unsigned wanted = step->variants & (unsigned)(drawn_bits(&state) & drawn_bits(&state)); /* a quarter of each */
    wanted |= step->variants & 1u << drawn_bits(&state) % 7;
    int few = step->most_queries > 0 ? step->most_queries : 200, multiple = step->d_multiple > 1 ? step->d_multiple : 1;
    struct problem p = {
        .batch = 1 + at_most(&state, 2), .heads_kv = 1 + at_most(&state, 1), .causal = drawn_bits(&state) % 2 == 0};
    p.heads = p.heads_kv * (step->grouped_heads ? ONE_OF(&state, 1, 1, 2, 3, 8) : 1);
    p.N_q = ONE_OF(&state, 1, 2, 1 + at_most(&state, few - 1), 1 + at_most(&state, few - 1));
    p.N_kv = ONE_OF(&state, 1, 64, 128, 1 + at_most(&state, 250), 1 + at_most(&state, 250));
    p.d = ceil_div(ONE_OF(&state, 8, 64, 128, 1 + at_most(&state, MAX_HEAD_DIM - 1)), multiple) * multiple;
    do p.dtype = (enum dtype)(drawn_bits(&state) % DTYPES);
    while (!takes_dtype(step, p.dtype));
    p.scale = 0.25f * (float)(1 + drawn_bits(&state) % 6) / sqrtf((float)p.d);
    lower_queries(step, &p);
    if ((wanted & PACKED) != 0) {
        int lengths[8], count = 1 + at_most(&state, 7), rows = 0;
        for (int s = 0; s < count; s++) rows += lengths[s] = ONE_OF(&state, 0, 1, 16, 64, 65, at_most(&state, 130));
        if (rows == 0) lengths[0] = 1;
        pack(&p, lengths, count);
    } else if ((wanted & PAGES) != 0) {
        int lengths[3], size = 16 << at_most(&state, 4);
        for (int b = 0; b < p.batch; b++) {
            int edge = size * at_most(&state, 3) + at_most(&state, 2) - 1; /* around a page boundary */
            lengths[b] = drawn_bits(&state) % 2 == 0 ? (edge > 0 ? edge : 0) : at_most(&state, 400);
        }
        put_in_pages(&p, size, lengths);
    }
    if ((wanted & WINDOW) != 0) {
        p.windowed = true;
        p.left = ONE_OF(&state, 0, 1, 63, 64, at_most(&state, 200), p.N_q + p.N_kv);
        p.right = ONE_OF(&state, 0, 1, at_most(&state, 100), p.N_q + p.N_kv);
        if (p.left > p.N_q + p.N_kv) p.left = p.N_q + p.N_kv;
        if (p.right > p.N_q + p.N_kv) p.right = p.N_q + p.N_kv;
    }
    if ((wanted & SOFTCAP) != 0)
        p.softcap = ldexpf((float)ONE_OF(&state, 1, 2, 10, 60), ONE_OF(&state, -1, -6, 20, 120));
    p.alibi = (wanted & ALIBI) == 0 ? NO_ALIBI : p.heads % 2 == 0 ? ONE_FORMULA : RELEASED_RULE;
    if ((wanted & DROPOUT) != 0) p.dropout = (float)ONE_OF(&state, 1, 5, 17, 50, 97) / 100.0f;
    p.dropout_seed = drawn_bits(&state);
    if ((wanted & ROTARY) != 0 && p.d % 2 == 0) p.rotary = drawn_bits(&state) % 2 == 0 ? INTERLEAVED : HALVED;
    return p;
}

/* Whether the problem was tried; what the step refuses beyond its struct is not. */
static bool try_problem(const struct problem *problem) {
    if (step_refuses(step, problem, all_passes()) != NULL) return false;
    compare_passes(problem, INPUT_RANDOM);
    return true;
}

Test(grid, drawn, .init = needs_variants) {
    const char *grid = getenv("TEST_GRID"), *first = getenv("TEST_SEED");
    unsigned count = grid != NULL ? (unsigned)atoi(grid) : !is_last_rung ? 12 : takes_part() ? 7 : 60, tried = 0;
    uint64_t seed = first != NULL ? strtoull(first, NULL, 10) : 1;
    for (unsigned i = 0; i < count; i++) {
        struct problem problem = drawn_problem(seed, i);
        tried += try_problem(&problem);
    }
    cr_expect_geq(2 * tried, count, "%s refuses more than half of the grid: %u of %u tried", step->name, tried, count);
    if (grid != NULL) printf("%s: %u problems of the grid tried\n", step->name, tried);
}

/* A plain problem of this shape, in the step's usual type. */
static struct problem plain(int batch, int heads, int N_q, int N_kv, int d, bool causal) {
    return problem_for(step, &(struct shape){batch, heads, N_q, N_kv, d, causal, 1.0f, 0});
}

/* Each variant alone at its edges. */
Test(grid, edges, .init = needs_variants) {
    static const int sizes[][2] = {{1, 1}, {1, 130}, {130, 1}, {70, 70}, {65, 129}, {129, 65}};
    size_t stride = takes_part() ? 3 : 1;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i += stride)
        for (int causal = 0; causal < 2; causal++) {
            struct problem p = plain(1, 2, sizes[i][0], sizes[i][1], i % 2 == 0 ? 64 : 128, causal != 0), q;
            int all = p.N_q + p.N_kv;
            const int windows[][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}, {0, all}, {all, 0}, {all, all}, {63, 0}, {64, 1}};
            for (size_t w = takes_part() ? i % 2 : 0; (step->variants & WINDOW) != 0 && w < sizeof windows / sizeof *windows;
                 w += every(3) + (takes_part() ? 0 : (i + w) % 2)) {
                q = p, q.windowed = true, q.left = windows[w][0] < all ? windows[w][0] : all, q.right = windows[w][1];
                try_problem(&q);
            }
            q = p, q.softcap = i % 2 == 0 ? 0.25f : 50.0f;
            if ((step->variants & SOFTCAP) != 0) try_problem(&q);
            q = p, q.alibi = i % 2 == 0 ? ONE_FORMULA : RELEASED_RULE;
            if ((step->variants & ALIBI) != 0) try_problem(&q);
            q = p, q.dropout = i % 3 == 0 ? 0.5f : i % 3 == 1 ? 0.99f : 0x1p-30f, q.dropout_seed = ~0ull - i;
            if ((step->variants & DROPOUT) != 0) try_problem(&q);
            q = p, q.rotary = i % 2 == 0 ? HALVED : INTERLEAVED;
            if ((step->variants & ROTARY) != 0) try_problem(&q);
            static const int groups[] = {1, 3, 8};
            q = p, q.heads_kv = 2, q.heads = 2 * groups[i % 3];
            if (step->grouped_heads) try_problem(&q);
        }
    /* Windows that hold whole tiles, and begin or end within others. */
    for (int i = 0; (step->variants & WINDOW) != 0 && i < 4; i += every(3)) {
        struct problem p = plain(1, 1, 300, 300, i % 2 == 0 ? 64 : 128, false);
        p.windowed = true, p.left = i < 2 ? 130 : 0, p.right = i < 2 ? 0 : 130;
        try_problem(&p);
    }
    static const int lengths[][5] = {
        {1}, {1, 1, 1, 1, 1}, {64, 64, 0, 0, 64}, {0, 129, 1, 0, 63}, {0, 0, 65, 128, 0}, {37, 0, 5, 66, 130}};
    for (size_t i = 0; (step->variants & PACKED) != 0 && i < sizeof lengths / sizeof *lengths; i++) {
        struct problem p = plain(1, 2, 1, 1, i % 2 == 0 ? 128 : 64, i % 2 == 0);
        pack(&p, lengths[i], i == 0 ? 1 : 5);
        try_problem(&p);
    }
    for (int boundary = 0; (step->variants & PAGES) != 0 && boundary <= 65; boundary += every(5)) {
        struct problem p = plain(2, 2, 1 + boundary % 3, 70, boundary % 2 == 0 ? 64 : 128, boundary % 3 == 0);
        put_in_pages(&p, 16 << boundary % 3, (const int[]){boundary, 65 - boundary});
        try_problem(&p);
    }
}

/* With one key L is the score, so it shows what softcap makes of a product of any size, at any cap, and how exactly. */
Test(grid, softcap_keeps_its_accuracy, .init = needs_variants) {
    needs_forward();
    if ((step->variants & SOFTCAP) == 0) cr_skip_test("the step takes no softcap");
    for (float cap = 1e-3f; cap < 1e38f; cap *= cap < 100.0f ? 3.7f : 1e6f) {
        struct problem p = plain(1, 1, 123, 1, 8, false);
        p.scale = fminf(1.0f, cap), p.softcap = cap;
        struct run run = new_run(step, &p, INPUT_RANDOM);
        for (size_t i = 0; i < 8 * 123; i++) { /* one term per product, from 2^-20 to 2^20, of either sign */
            float size = ldexpf(1.0f + (float)(i / 8 % 25) / 32.0f, (int)(i / 8 % 41) - 20);
            run.host[TENSOR_Q][i] = i % 8 != 0 ? 0.0f : rounded_to(i / 8 % 2 == 0 ? size : -size, BF16);
            if (p.dtype == FP16)
                run.host[TENSOR_Q][i] = rounded_to(fminf(fmaxf(run.host[TENSOR_Q][i], -60000.0f), 60000.0f), FP16);
        }
        for (size_t i = 0; i < 8; i++) run.host[TENSOR_K][i] = 1.0f;
        cr_assert_eq(run_upload(&run), cudaSuccess);
        forward(&run, step);
        double worst = 0;
        for (size_t row = 0; row < 123; row++) {
            double x = (double)p.scale * (double)run.host[TENSOR_Q][8 * row] / (double)cap,
                   right = (double)cap * tanh(x);
            double error = fabs((double)run.host[TENSOR_L][row] - right) / fabs(right);
            if (!(error <= worst)) worst = isnan(error) ? (double)INFINITY : error;
        }
        cr_expect(worst <= 8 * 0x1p-23, "%s: softcap %g, a score is off by %g of itself", step->name, (double)cap,
                  worst);
        run_destroy(&run);
    }
}

/* Q = 0: every key that a row attends to weighs the same, so L is the logarithm of their number and O their mean: one key too many or
 * too few shows at once, a key of padding too. Key j of V is j + 1. Without what makes weights differ. */
Test(grid, mean_of_V, .init = needs_variants) {
    needs_forward();
    for (unsigned i = 0, tried = 0; i < 400 && tried < (is_last_rung && !takes_part() ? 24 : 8); i++) {
        struct problem p = drawn_problem(99, i);
        p.dropout = 0.0f, p.alibi = NO_ALIBI;
        if (variants_of(&p) == 0 && kv_heads(&p) == p.heads) continue;
        if (step_refuses(step, &p, all_passes()) != NULL) continue;
        tried++;
        struct run run = new_run(step, &p, INPUT_RANDOM);
        size_t d = (size_t)p.d, N_kv = (size_t)p.N_kv;
        for (size_t c = 0; c < tensor_elements(&p, TENSOR_Q); c++) run.host[TENSOR_Q][c] = 0.0f;
        for (size_t c = 0; c < tensor_elements(&p, TENSOR_V); c++) run.host[TENSOR_V][c] = (float)(c / d % N_kv + 1);
        cr_assert_eq(run_upload(&run), cudaSuccess);
        forward(&run, step);
        float *V = as_seen(&p, TENSOR_V, run.host[TENSOR_V]);
        for (size_t row = 0; row < tensor_rows(&p, TENSOR_Q); row++) {
            struct sight sight = sight_of_query(&p, row);
            double keys = (double)sight.keys, first = (double)(sight.first_row % N_kv),
                   mean = keys > 0 ? first + (keys + 1) / 2 : 0;
            bool is_rounded = p.dtype == FP8 || p.dtype == BF16; /* they do not hold each j + 1 */
            if (is_rounded) mean = 0.0;
            for (size_t j = 0; is_rounded && j < (size_t)sight.keys; j++)
                mean += (double)(p.dtype == FP8 ? V[(sight.first_row + j) * d]
                                                : rounded_to(V[(sight.first_row + j) * d], BF16)) /
                        keys;
            double L = (double)run.host[TENSOR_L][row];
            cr_assert(keys > 0 ? fabs(L - log(keys)) <= 1e-5 : isinf(L) && L < 0,
                      "%s: L of row %zu is %g, with %g keys", describe(&p), row, L, keys);
            for (size_t c = 0; c < d; c++)
                cr_assert_float_eq((double)run.host[TENSOR_O][row * d + c], mean, 1.0 / 256 * mean,
                                   "%s: O of row %zu is %g, not %g", describe(&p), row,
                                   (double)run.host[TENSOR_O][row * d + c], mean);
        }
        free(V);
        run_destroy(&run);
    }
}

/* A number in a table that leads outside of a tensor: the simulated device stops at the access, on a card the harness looks at the
 * tables before it runs the step. No run ends as if nothing were wrong. */
static void expect_found(struct problem *problem, enum table table, size_t index, int number, const char *says) {
    if (step_refuses(step, problem, all_passes()) != NULL) cr_skip_test("the step has no such table");
    struct run run = new_run(step, problem, INPUT_RANDOM);
    if (step->forward != NULL) forward(&run, step);
    int right = 0, *at = (int *)run.tables[table] + index;
    cr_assert_eq(cudaMemcpy(&right, at, sizeof right, cudaMemcpyDeviceToHost), cudaSuccess);
    cr_assert_neq(right, number);
    cr_assert_eq(cudaMemcpy(at, &number, sizeof number, cudaMemcpyHostToDevice), cudaSuccess);
    capture_stderr();
    cudaError_t error = run_forward(&run, step);
    char *text = captured_text();
    cr_expect_neq(error, cudaSuccess, "%s, %s: no error, with %d for %d", step->name, describe(problem), number, right);
    cr_expect_not_null(strstr(text, run.simulated ? "out of bounds" : says), "%s", text);
    free(text);
}

static struct problem paged(void) {
    struct problem problem = plain(2, 2, 2, 70, 64, false);
    put_in_pages(&problem, 16, (const int[]){70, 33});
    return problem;
}
static struct problem packed(void) {
    struct problem problem = plain(1, 2, 1, 1, 64, false);
    pack(&problem, (const int[]){37, 5, 90}, 3);
    return problem;
}
Test(grid, page_past_the_last, .init = needs_variants) {
    struct problem problem = paged();
    expect_found(&problem, TABLE_PAGES, 1, 1000, "page 1 of sequence 0 is 1000");
}
Test(grid, page_before_the_first, .init = needs_variants) {
    struct problem problem = paged();
    expect_found(&problem, TABLE_PAGES, 5, -1, "page 0 of sequence 1 is -1");
}
Test(grid, length_past_the_table, .init = needs_variants) {
    struct problem problem = paged();
    expect_found(&problem, TABLE_LENGTHS, 1, 300, "lengths[1] is 300");
}
Test(grid, sequence_past_the_end, .init = needs_variants) {
    struct problem problem = packed();
    expect_found(&problem, TABLE_STARTS, 3, 1000, "starts[3] is 1000");
}

/* The backward pass has as many blocks for each sequence as the longest one needs: where a grid cannot have so many, one line says so. */
Test(grid, too_many_sequences) {
    struct problem problem = packed();
    if (step->backward == NULL || step_refuses(step, &problem, all_passes()) != NULL)
        cr_skip_test("no packed sequences in a backward pass");
    problem.sequences = 1000, problem.longest = 16000000, problem.N_q = problem.N_kv = 16001000;
    const char *reason = step_refuses(step, &problem, all_passes());
    cr_expect_null(reason, "%s", reason);
    problem.sequences = 4000;
    cr_expect_not_null(step_refuses(step, &problem, all_passes()));
}
