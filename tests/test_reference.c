/* The oracle against things that are not the oracle: a case worked by hand (docs/math.md), finite differences, and
 * identities that hold for attention whatever the input. */
#include "inputs.h"
#include "problem.h"
#include "reference.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- inputs ---- */

/* splitmix64 */
static uint64_t random_bits(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform multiples of 2^-16 in [-1, 1): coarse enough that adding or subtracting STEP is exact in float. */
static float random_value(uint64_t *state) {
    return ldexpf((float)(random_bits(state) >> 47) - 65536.0f, -16);
}

static const float STEP = 0x1p-16f;

static float *random_floats(size_t count, uint64_t *state) {
    float *values = malloc(count * sizeof *values);
    cr_assert_not_null(values);
    for (size_t n = 0; n < count; n++) {
        values[n] = random_value(state);
    }
    return values;
}

static double *nan_doubles(size_t count) {
    double *values = malloc(count * sizeof *values);
    cr_assert_not_null(values);
    for (size_t n = 0; n < count; n++) {
        values[n] = NAN; /* so that an element never written fails every comparison */
    }
    return values;
}

/* A problem with everything that either pass reads and writes. */
struct bench {
    struct problem problem;
    size_t heads, N_q, N_kv, d;   /* heads: batch * heads */
    size_t size_q, size_kv, rows; /* elements of Q, elements of K, rows of Q, each over all heads */
    float *Q, *K, *V, *dO;        /* shapes as in attention.h, as for the five below */
    double *O, *L, *dQ, *dK, *dV;
    double terms; /* returned by the forward pass */
};

static struct bench bench_new(struct problem problem, uint64_t seed) {
    struct bench b = {.problem = problem, .N_q = (size_t)problem.N_q, .N_kv = (size_t)problem.N_kv,
                      .d = (size_t)problem.d, .heads = (size_t)problem.batch * (size_t)problem.heads};
    b.rows = b.heads * b.N_q;
    b.size_q = b.rows * b.d;
    b.size_kv = tensor_rows(&problem, TENSOR_K) * b.d;
    b.Q = random_floats(b.size_q, &seed);
    b.K = random_floats(b.size_kv, &seed);
    b.V = random_floats(b.size_kv, &seed);
    b.dO = random_floats(b.size_q, &seed);
    b.O = nan_doubles(b.size_q);
    b.L = nan_doubles(b.rows);
    b.dQ = nan_doubles(b.size_q);
    b.dK = nan_doubles(b.size_kv);
    b.dV = nan_doubles(b.size_kv);
    return b;
}

static void bench_free(struct bench *b) {
    free(b->Q), free(b->K), free(b->V), free(b->dO);
    free(b->O), free(b->L), free(b->dQ), free(b->dK), free(b->dV);
}

static void forward(struct bench *b) {
    b->terms = reference_forward(&b->problem, b->Q, b->K, b->V, b->O, b->L);
}

static void backward(struct bench *b) {
    reference_backward(&b->problem, b->Q, b->K, b->V, b->dO, b->dQ, b->dK, b->dV);
}

/* Shapes that differ from each other in every way the code distinguishes. The last two have rows that see no key. */
static const struct problem SHAPES[] = {
    {.batch = 1, .heads = 1, .N_q = 1, .N_kv = 1, .d = 1, .causal = false, .scale = 0.5f},
    {.batch = 2, .heads = 2, .N_q = 5, .N_kv = 5, .d = 3, .causal = false, .scale = 0.75f},
    {.batch = 2, .heads = 2, .N_q = 5, .N_kv = 5, .d = 3, .causal = true, .scale = 0.75f},
    {.batch = 1, .heads = 2, .N_q = 3, .N_kv = 8, .d = 5, .causal = false, .scale = 0.5f},
    {.batch = 1, .heads = 2, .N_q = 3, .N_kv = 8, .d = 5, .causal = true, .scale = 0.5f},
    {.batch = 2, .heads = 1, .N_q = 8, .N_kv = 3, .d = 4, .causal = false, .scale = 0.5f},
    {.batch = 2, .heads = 1, .N_q = 8, .N_kv = 3, .d = 4, .causal = true, .scale = 0.5f},
    {.batch = 1, .heads = 3, .N_q = 7, .N_kv = 1, .d = 2, .causal = true, .scale = 2.0f},
};

enum { SHAPE_COUNT = sizeof SHAPES / sizeof SHAPES[0] };

/* ---- comparisons ---- */

/* Written so that NaN fails. */
static bool near(double got, double expected, double tolerance) {
    return got == expected || fabs(got - expected) <= tolerance;
}

#define EXPECT_NEAR(got, expected, tolerance, what, where)                                                             \
    do {                                                                                                               \
        double got_ = (got), expected_ = (expected);                                                                   \
        cr_expect(near(got_, expected_, (tolerance)), "%s[%zu]: got %.12g, expected %.12g", (what), (size_t)(where),   \
                  got_, expected_);                                                                                    \
    } while (0)

static bool same_bits(const double *x, const double *y, size_t count) {
    return memcmp(x, y, count * sizeof *x) == 0;
}

/* ---- the 4 x 4 case of docs/math.md ---- */

static float HAND_Q[4][4], HAND_K[4][4], HAND_V[4][4], HAND_dO[4][4];
static const float LN_2 = 0.693147180559945309f;

/* The example that programs get by --input example is the page's. */
static void read_example(void) {
    static const float page_Q[4][4] = {{0, 0, 1, 0}, {0, 0, 1, 1}, {1, 0, 0, 0}, {2, 1, 1, 0}};
    fill_input(&HAND_Q[0][0], &example_problem, TENSOR_Q, INPUT_EXAMPLE, 0);
    fill_input(&HAND_K[0][0], &example_problem, TENSOR_K, INPUT_EXAMPLE, 0);
    fill_input(&HAND_V[0][0], &example_problem, TENSOR_V, INPUT_EXAMPLE, 0);
    fill_input(&HAND_dO[0][0], &example_problem, TENSOR_dO, INPUT_EXAMPLE, 0);
    cr_assert_arr_eq(HAND_Q, page_Q, sizeof page_Q);
    cr_assert_eq(example_problem.scale, LN_2);
}

/* ln 2 in float is off by 2e-9; the scores are at most 3 of it and no value is above 5. */
static const double HAND_TOLERANCE = 1e-7;

static void check_by_hand(struct problem problem, const float *Q, const double O_hand[][4], const double exp_L_hand[]) {
    double O[16], L[4];
    for (size_t n = 0; n < 16; n++) {
        O[n] = NAN;
        L[n / 4] = NAN;
    }
    reference_forward(&problem, Q, &HAND_K[0][0], &HAND_V[0][0], O, L);
    for (size_t i = 0; i < (size_t)problem.N_q; i++) {
        EXPECT_NEAR(L[i], log(exp_L_hand[i]), HAND_TOLERANCE, "L", i);
        for (size_t c = 0; c < 4; c++) {
            EXPECT_NEAR(O[i * 4 + c], O_hand[i][c], HAND_TOLERANCE, "O", i * 4 + c);
        }
    }
}

static const double HAND_O_CAUSAL[4][4] = {
    {1, 0, 2, 0},
    {2.0 / 3, 1, 4.0 / 3, 1.0 / 3},
    {6.0 / 5, 6.0 / 5, 4.0 / 5, 0},
    {2.0 / 5, 4.0 / 3, -4.0 / 15, 14.0 / 5},
};
static const double HAND_EXP_L_CAUSAL[4] = {2, 3, 5.0 / 2, 15};

Test(reference, by_hand, .init = read_example) {
    struct problem problem = {.batch = 1, .heads = 1, .N_q = 4, .N_kv = 4, .d = 4, .scale = LN_2};
    const double O[4][4] = {{9.0 / 4, 1.0 / 2, 3.0 / 8, -1.0 / 4},
                            {17.0 / 6, 1.0 / 3, 1.0 / 4, -5.0 / 6},
                            {2.0 / 3, 10.0 / 9, 0, 20.0 / 9},
                            {2.0 / 5, 4.0 / 3, -4.0 / 15, 14.0 / 5}};
    const double exp_L[4] = {8, 12, 9.0 / 2, 15};
    check_by_hand(problem, &HAND_Q[0][0], O, exp_L);
}

/* With V = identity the output is P itself. */
Test(reference, by_hand_weights, .init = read_example) {
    struct problem problem = {.batch = 1, .heads = 1, .N_q = 4, .N_kv = 4, .d = 4, .scale = LN_2};
    const float identity[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    const double P_hand[2][16] = {
        {1.0 / 4, 1.0 / 8, 1.0 / 2, 1.0 / 8, 1.0 / 6, 1.0 / 12, 2.0 / 3, 1.0 / 12, 2.0 / 9, 2.0 / 9, 1.0 / 9, 4.0 / 9,
         2.0 / 15, 4.0 / 15, 1.0 / 15, 8.0 / 15},
        {1, 0, 0, 0, 2.0 / 3, 1.0 / 3, 0, 0, 2.0 / 5, 2.0 / 5, 1.0 / 5, 0, 2.0 / 15, 4.0 / 15, 1.0 / 15, 8.0 / 15}};

    for (int causal = 0; causal < 2; causal++) {
        double P[16], L[4];
        problem.causal = causal;
        reference_forward(&problem, &HAND_Q[0][0], &HAND_K[0][0], identity, P, L);
        for (size_t n = 0; n < 16; n++) {
            EXPECT_NEAR(P[n], P_hand[causal][n], HAND_TOLERANCE, "P", n);
        }
    }
}

Test(reference, by_hand_causal, .init = read_example) {
    struct problem problem = {.batch = 1, .heads = 1, .N_q = 4, .N_kv = 4, .d = 4, .causal = true, .scale = LN_2};
    check_by_hand(problem, &HAND_Q[0][0], HAND_O_CAUSAL, HAND_EXP_L_CAUSAL);
}

/* The last two queries alone against all keys are the last two rows of the full problem. */
Test(reference, by_hand_causal_more_keys_than_queries, .init = read_example) {
    struct problem problem = {.batch = 1, .heads = 1, .N_q = 2, .N_kv = 4, .d = 4, .causal = true, .scale = LN_2};
    check_by_hand(problem, HAND_Q[2], &HAND_O_CAUSAL[2], &HAND_EXP_L_CAUSAL[2]);
}

Test(reference, by_hand_causal_more_queries_than_keys, .init = read_example) {
    struct problem problem = {.batch = 1, .heads = 1, .N_q = 4, .N_kv = 2, .d = 4, .causal = true, .scale = LN_2};
    const double O[4][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}, {1, 0, 2, 0}, {1.0 / 3, 2, 2.0 / 3, 2.0 / 3}};
    const double exp_L[4] = {0, 0, 1, 6};
    check_by_hand(problem, &HAND_Q[0][0], O, exp_L);
}

/* ---- the same case backward ---- */

/* Half a unit of the last decimal that docs/math.md prints. That ln 2 in float is off by 2e-9 moves no gradient of this
 * case by more than 3e-9. */
static const double HAND_DECIMALS = 5e-9;

/* The steps of the backward pass, as the page has them; rows past N_q or N_kv, and columns past N_kv, are not read. */
struct hand_backward {
    double P[4][4], dS[4][4];       /* (N_q, N_kv) */
    double dQ_ln_2[4][4];           /* (N_q, d), divided by ln 2, as dK_ln_2 is */
    double dK_ln_2[4][4], dV[4][4]; /* (N_kv, d) */
};

/* P and dS are not outputs. Four more columns bring them out: Q and V are 0 there, so that no score, dP or D changes, K
 * holds the identity, and so does dO. Then dQ = scale dS K goes on with scale dS, and dV = P^T dO with P^T. */
static void check_backward_by_hand(struct problem problem, size_t first_query, const struct hand_backward *hand) {
    enum { WIDE = 8 };
    float Q[4][WIDE] = {{0}}, K[4][WIDE] = {{0}}, V[4][WIDE] = {{0}}, dO[4][WIDE] = {{0}};
    double dQ[4][WIDE], dK[4][WIDE], dV[4][WIDE];
    size_t N_q = (size_t)problem.N_q, N_kv = (size_t)problem.N_kv;
    for (size_t row = 0; row < 4; row++) {
        for (size_t c = 0; c < WIDE; c++) {
            dQ[row][c] = dK[row][c] = dV[row][c] = NAN;
        }
        K[row][4 + row] = dO[row][4 + row] = 1;
        for (size_t c = 0; c < 4; c++) {
            K[row][c] = HAND_K[row][c];
            V[row][c] = HAND_V[row][c];
            if (row < N_q) {
                Q[row][c] = HAND_Q[first_query + row][c];
                dO[row][c] = HAND_dO[first_query + row][c];
            }
        }
    }
    problem.d = WIDE;
    reference_backward(&problem, &Q[0][0], &K[0][0], &V[0][0], &dO[0][0], &dQ[0][0], &dK[0][0], &dV[0][0]);

    const double ln_2 = log(2);
    for (size_t i = 0; i < N_q; i++) {
        for (size_t c = 0; c < 4; c++) {
            EXPECT_NEAR(dQ[i][c], ln_2 * hand->dQ_ln_2[i][c], HAND_DECIMALS, "dQ", i * 4 + c);
        }
        for (size_t j = 0; j < N_kv; j++) {
            EXPECT_NEAR(dV[j][4 + i], hand->P[i][j], HAND_DECIMALS, "P", i * 4 + j);
            EXPECT_NEAR(dQ[i][4 + j], ln_2 * hand->dS[i][j], HAND_DECIMALS, "scale dS", i * 4 + j);
        }
    }
    for (size_t j = 0; j < N_kv; j++) {
        for (size_t c = 0; c < 4; c++) {
            EXPECT_NEAR(dK[j][c], ln_2 * hand->dK_ln_2[j][c], HAND_DECIMALS, "dK", j * 4 + c);
            EXPECT_NEAR(dV[j][c], hand->dV[j][c], HAND_DECIMALS, "dV", j * 4 + c);
        }
    }
}

Test(reference, by_hand_backward, .init = read_example) {
    struct problem problem = {.batch = 1, .heads = 1, .N_q = 4, .N_kv = 4, .scale = LN_2};
    const struct hand_backward hand = {
        .P = {{1.0 / 4, 1.0 / 8, 1.0 / 2, 1.0 / 8},
              {1.0 / 6, 1.0 / 12, 2.0 / 3, 1.0 / 12},
              {2.0 / 9, 2.0 / 9, 1.0 / 9, 4.0 / 9},
              {2.0 / 15, 4.0 / 15, 1.0 / 15, 8.0 / 15}},
        .dS = {{-5.0 / 16, -9.0 / 32, 7.0 / 8, -9.0 / 32},
               {1.0 / 12, 3.0 / 8, -1, 13.0 / 24},
               {4.0 / 9, 0, 0, -4.0 / 9},
               {-22.0 / 225, 76.0 / 225, 34.0 / 225, -88.0 / 225}},
        .dQ_ln_2 = {{-37.0 / 32, -27.0 / 32, 23.0 / 16, 7.0 / 8},
                    {37.0 / 24, 31.0 / 24, -23.0 / 12, -1},
                    {-4.0 / 9, -4.0 / 9, 4.0 / 9, 0},
                    {-122.0 / 225, 64.0 / 225, 46.0 / 225, 34.0 / 225}},
        .dK_ln_2 = {{56.0 / 225, -22.0 / 225, -1177.0 / 3600, 1.0 / 12},
                    {152.0 / 225, 76.0 / 225, 3107.0 / 7200, 3.0 / 8},
                    {68.0 / 225, 34.0 / 225, 47.0 / 1800, -1},
                    {-92.0 / 75, -88.0 / 225, -941.0 / 7200, 13.0 / 24}},
        .dV = {{23.0 / 60, 3.0 / 10, 2.0 / 9, 1.0 / 6},
               {47.0 / 120, 7.0 / 20, 2.0 / 9, 1.0 / 12},
               {17.0 / 30, 11.0 / 15, 1.0 / 9, 2.0 / 3},
               {79.0 / 120, 37.0 / 60, 4.0 / 9, 1.0 / 12}},
    };
    check_backward_by_hand(problem, 0, &hand);
}

Test(reference, by_hand_backward_causal, .init = read_example) {
    struct problem problem = {.batch = 1, .heads = 1, .N_q = 4, .N_kv = 4, .causal = true, .scale = LN_2};
    const struct hand_backward hand = {
        .P = {{1, 0, 0, 0},
              {2.0 / 3, 1.0 / 3, 0, 0},
              {2.0 / 5, 2.0 / 5, 1.0 / 5, 0},
              {2.0 / 15, 4.0 / 15, 1.0 / 15, 8.0 / 15}},
        .dS = {{0, 0, 0, 0},
               {-8.0 / 9, 8.0 / 9, 0, 0},
               {12.0 / 25, -8.0 / 25, -4.0 / 25, 0},
               {-22.0 / 225, 76.0 / 225, 34.0 / 225, -88.0 / 225}},
        .dQ_ln_2 = {{0, 0, 0, 0},
                    {0, 16.0 / 9, -8.0 / 9, 0},
                    {4.0 / 25, -16.0 / 25, 4.0 / 25, -4.0 / 25},
                    {-122.0 / 225, 64.0 / 225, 46.0 / 225, 34.0 / 225}},
        .dK_ln_2 = {{64.0 / 225, -22.0 / 225, -74.0 / 75, -8.0 / 9},
                    {16.0 / 45, 76.0 / 225, 92.0 / 75, 8.0 / 9},
                    {32.0 / 225, 34.0 / 225, 34.0 / 225, 0},
                    {-176.0 / 225, -88.0 / 225, -88.0 / 225, 0}},
        .dV = {{17.0 / 15, 4.0 / 5, 2.0 / 5, 2.0 / 3},
               {4.0 / 15, 3.0 / 5, 2.0 / 5, 1.0 / 3},
               {1.0 / 15, 1.0 / 15, 1.0 / 5, 0},
               {8.0 / 15, 8.0 / 15, 0, 0}},
    };
    check_backward_by_hand(problem, 0, &hand);
}

/* The last two queries alone: their dQ is that of the full problem, but dK and dV lack what the others gave. */
Test(reference, by_hand_backward_more_keys_than_queries, .init = read_example) {
    struct problem problem = {.batch = 1, .heads = 1, .N_q = 2, .N_kv = 4, .causal = true, .scale = LN_2};
    const struct hand_backward hand = {
        .P = {{2.0 / 5, 2.0 / 5, 1.0 / 5, 0}, {2.0 / 15, 4.0 / 15, 1.0 / 15, 8.0 / 15}},
        .dS = {{12.0 / 25, -8.0 / 25, -4.0 / 25, 0}, {-22.0 / 225, 76.0 / 225, 34.0 / 225, -88.0 / 225}},
        .dQ_ln_2 = {{4.0 / 25, -16.0 / 25, 4.0 / 25, -4.0 / 25}, {-122.0 / 225, 64.0 / 225, 46.0 / 225, 34.0 / 225}},
        .dK_ln_2 = {{64.0 / 225, -22.0 / 225, -22.0 / 225, 0},
                    {16.0 / 45, 76.0 / 225, 76.0 / 225, 0},
                    {32.0 / 225, 34.0 / 225, 34.0 / 225, 0},
                    {-176.0 / 225, -88.0 / 225, -88.0 / 225, 0}},
        .dV = {{2.0 / 15, 2.0 / 15, 2.0 / 5, 0},
               {4.0 / 15, 4.0 / 15, 2.0 / 5, 0},
               {1.0 / 15, 1.0 / 15, 1.0 / 5, 0},
               {8.0 / 15, 8.0 / 15, 0, 0}},
    };
    check_backward_by_hand(problem, 2, &hand);
}

/* Queries 0 and 1 see nothing, query 2 sees key 0 only. */
Test(reference, by_hand_backward_more_queries_than_keys, .init = read_example) {
    struct problem problem = {.batch = 1, .heads = 1, .N_q = 4, .N_kv = 2, .causal = true, .scale = LN_2};
    const struct hand_backward hand = {
        .P = {{0, 0}, {0, 0}, {1, 0}, {1.0 / 3, 2.0 / 3}},
        .dS = {{0, 0}, {0, 0}, {0, 0}, {-4.0 / 9, 4.0 / 9}},
        .dQ_ln_2 = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 8.0 / 9, -4.0 / 9, 0}},
        .dK_ln_2 = {{-8.0 / 9, -4.0 / 9, -4.0 / 9, 0}, {8.0 / 9, 4.0 / 9, 4.0 / 9, 0}},
        .dV = {{1.0 / 3, 1.0 / 3, 1, 0}, {2.0 / 3, 2.0 / 3, 0, 0}},
    };
    check_backward_by_hand(problem, 0, &hand);
}

/* The largest is that of query 3 with key 2, whose score is 0: the terms are -2 and 2 times ln 2. */
Test(reference, term_size, .init = read_example) {
    const double ln_2 = (double)LN_2;
    struct problem problem = {.batch = 1, .heads = 1, .N_q = 4, .N_kv = 4, .d = 4, .scale = LN_2};
    double O[16], L[4];
    EXPECT_NEAR(reference_forward(&problem, &HAND_Q[0][0], &HAND_K[0][0], &HAND_V[0][0], O, L), 4 * ln_2, 1e-12,
                "terms", 0);

    /* Without query 3 the largest term size is that of query 1 with key 2, which a causal mask hides. */
    problem.N_q = problem.N_kv = 3;
    EXPECT_NEAR(reference_forward(&problem, &HAND_Q[0][0], &HAND_K[0][0], &HAND_V[0][0], O, L), 3 * ln_2, 1e-12,
                "terms", 1);
    problem.causal = true;
    EXPECT_NEAR(reference_forward(&problem, &HAND_Q[0][0], &HAND_K[0][0], &HAND_V[0][0], O, L), 1 * ln_2, 1e-12,
                "terms", 2);

    /* A score that softcap leaves as it is has the terms that it had: its rounding does not grow with softcap. */
    problem.softcap = 9e8f;
    EXPECT_NEAR(reference_forward(&problem, &HAND_Q[0][0], &HAND_K[0][0], &HAND_V[0][0], O, L), 1 * ln_2, 1e-12,
                "terms", 4);
    problem.softcap = 0;

    /* Of the rows asked for only: query 2 alone has no term above ln 2. */
    const size_t row = 2;
    problem.N_q = problem.N_kv = 4;
    problem.causal = false;
    EXPECT_NEAR(reference_forward_rows(&problem, &HAND_Q[0][0], &HAND_K[0][0], &HAND_V[0][0], &row, 1, O, L), 1 * ln_2,
                1e-12, "terms", 3);
}

/* Slopes of 12 heads by the released rule: those of 8 heads, then every second one of 16. With Q = 0 a query at its own key and at the
 * one before has L = log(1 + exp(-slope)). */
Test(reference, released_slopes_of_alibi) {
    static const double exponents[12] = {1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5};
    struct problem problem = {.batch = 2, .heads = 12, .N_q = 1, .N_kv = 2, .d = 1, .scale = 1.0f, .alibi = RELEASED_RULE};
    const float Q[24] = {0}, K[48] = {0}, V[48] = {0};
    double O[24], L[24];
    reference_forward(&problem, Q, K, V, O, L);
    for (int h = 0; h < 24; h++) EXPECT_NEAR(-log(exp(L[h]) - 1), exp2(-exponents[h % 12]), 1e-12, "slope", h);
    problem.alibi = ONE_FORMULA;
    reference_forward(&problem, Q, K, V, O, L);
    EXPECT_NEAR(-log(exp(L[8]) - 1), exp2(-6), 1e-12, "slope of head", 8);
}

/* ---- gradients against finite differences ---- */

/* sum(dO o O), a scalar whose gradients are dQ, dK and dV. */
static double loss(struct bench *b) {
    forward(b);
    double sum = 0;
    for (size_t n = 0; n < b->size_q; n++) {
        sum += (double)b->dO[n] * b->O[n];
    }
    return sum;
}

/* Central difference in *x. Both neighbours of *x are exact in float. */
static double slope(struct bench *b, float *x) {
    float centre = *x;
    *x = centre + STEP;
    double above = loss(b);
    *x = centre - STEP;
    double below = loss(b);
    *x = centre;
    return (above - below) / (2 * (double)STEP);
}

/* Error of a central difference with step h: h^2/6 |f'''|, and rounding of f over h.
 * Along a coordinate of q_i, f = sum_j P_j g_j with g_j = dO_i . v_j, and the scores move with speeds r_j = scale k_jc.
 * f''' is a joint cumulant of g and three times r under the weights P, at most 4 (range of g) (range of r)^3. Entries
 * lie in [-1, 1), so r ranges over 2 scale and g over 2 d. A coordinate of k_j moves one score in each of N_q rows.
 * So |f'''| <= 4 (2 d) (2 scale)^3 N_q, which over SHAPES is at most 405, and 405 h^2/6 = 1.6e-8. (The last shape is
 * not counted: its rows see one key at most, and f does not depend on Q or K.) Rounding: f is a sum of at most 64 terms
 * of size d or less, good to some 1e-14, and 1e-14 / h = 6.6e-10. */
static const double SLOPE_TOLERANCE = 2e-8;

static const int starts[] = {0, 3, 3, 4, 11};
static const struct problem VARIANTS[] = {
    {.batch = 1, .heads = 2, .N_q = 7, .N_kv = 9, .d = 4, .scale = 0.5f, .windowed = true, .left = 2, .right = 1},
    {.batch = 1, .heads = 1, .N_q = 9, .N_kv = 6, .d = 4, .scale = 0.5f, .windowed = true, .left = 1, .right = 3, .causal = true},
    {.batch = 1, .heads = 2, .N_q = 5, .N_kv = 6, .d = 3, .scale = 0.5f, .softcap = 0.75f},
    {.batch = 2, .heads = 3, .N_q = 5, .N_kv = 8, .d = 3, .scale = 0.5f, .alibi = RELEASED_RULE},
    {.batch = 1, .heads = 4, .N_q = 6, .N_kv = 6, .d = 3, .scale = 0.5f, .alibi = ONE_FORMULA, .softcap = 0.5f, .causal = true},
    {.batch = 2, .heads = 6, .N_q = 4, .N_kv = 5, .d = 3, .scale = 0.5f, .heads_kv = 2, .causal = true},
    {.batch = 1, .heads = 2, .N_q = 9, .N_kv = 17, .d = 4, .scale = 0.5f, .dropout = 0.3f, .dropout_seed = 5},
    {.batch = 1, .heads = 2, .N_q = 11, .N_kv = 11, .d = 4, .scale = 0.5f, .starts = starts, .sequences = 4, .longest = 7},
    {.batch = 1, .heads = 4, .N_q = 11, .N_kv = 11, .d = 4, .scale = 0.5f, .starts = starts, .sequences = 4, .longest = 7, .heads_kv = 2,
     .causal = true, .windowed = true, .left = 3, .dropout = 0.5f, .dropout_seed = 1, .softcap = 1.0f, .alibi = ONE_FORMULA},
};
enum { VARIANT_COUNT = sizeof VARIANTS / sizeof VARIANTS[0] };

/* Of the variants, softcap makes no derivative of a score larger, and dropout makes a term 1 / (1 - p) times as large. */
Test(reference, gradients_match_finite_differences) {
    for (size_t shape = 0; shape < SHAPE_COUNT + VARIANT_COUNT; shape++) {
        struct bench b = bench_new(shape < SHAPE_COUNT ? SHAPES[shape] : VARIANTS[shape - SHAPE_COUNT], 100 + shape);
        backward(&b);
        for (size_t n = 0; n < b.size_q; n++) {
            EXPECT_NEAR(b.dQ[n], slope(&b, &b.Q[n]), SLOPE_TOLERANCE, "dQ", n);
        }
        for (size_t n = 0; n < b.size_kv; n++) {
            EXPECT_NEAR(b.dK[n], slope(&b, &b.K[n]), SLOPE_TOLERANCE, "dK", n);
            EXPECT_NEAR(b.dV[n], slope(&b, &b.V[n]), SLOPE_TOLERANCE, "dV", n);
        }
        bench_free(&b);
    }
}

/* ---- identities ---- */

/* Sums of at most a few hundred products of numbers below 1, in double. */
static const double SUM_TOLERANCE = 1e-13;

static double column_sum(const double *rows, size_t count, size_t d, size_t c) {
    double sum = 0;
    for (size_t n = 0; n < count; n++) {
        sum += rows[n * d + c];
    }
    return sum;
}

/* The number of first rows of a head that see no key. */
static size_t blind_rows(const struct bench *b) {
    return b->problem.causal && b->N_q > b->N_kv ? b->N_q - b->N_kv : 0;
}

/* dV_j = sum_i P_ij dO_i and each row of P sums to 1, so summed over keys: the sum of dO_i over the rows that see one.
 * dK_j = scale sum_i dS_ij q_i and each row of dS sums to 0, so the sum of dK over keys is 0. */
Test(reference, sums_of_dV_and_dK_over_keys) {
    for (size_t shape = 0; shape < SHAPE_COUNT; shape++) {
        struct bench b = bench_new(SHAPES[shape], 200 + shape);
        backward(&b);
        for (size_t head = 0; head < b.heads; head++) {
            for (size_t c = 0; c < b.d; c++) {
                double sum_dO = 0;
                for (size_t i = blind_rows(&b); i < b.N_q; i++) {
                    sum_dO += (double)b.dO[(head * b.N_q + i) * b.d + c];
                }
                const double *dK_head = b.dK + head * b.N_kv * b.d, *dV_head = b.dV + head * b.N_kv * b.d;
                EXPECT_NEAR(column_sum(dV_head, b.N_kv, b.d, c), sum_dO, SUM_TOLERANCE, "sum of dV", c);
                EXPECT_NEAR(column_sum(dK_head, b.N_kv, b.d, c), 0, SUM_TOLERANCE, "sum of dK", c);
            }
        }
        bench_free(&b);
    }
}

/* k_j + a for every key adds scale * q_i . a to all scores of row i: O stays, L moves by that much. The entries are
 * multiples of 2^-16 below 2, so the sums are exact in float. */
Test(reference, shifted_scores_change_nothing) {
    for (size_t shape = 0; shape < SHAPE_COUNT; shape++) {
        struct bench b = bench_new(SHAPES[shape], 300 + shape), shifted = bench_new(SHAPES[shape], 300 + shape);
        uint64_t seed = 77;
        float *a = random_floats(b.d, &seed);
        for (size_t n = 0; n < b.size_kv; n++) {
            shifted.K[n] += a[n % b.d];
        }
        forward(&b);
        forward(&shifted);
        for (size_t n = 0; n < b.size_q; n++) {
            EXPECT_NEAR(shifted.O[n], b.O[n], SUM_TOLERANCE, "O", n);
        }
        for (size_t row = 0; row < b.rows; row++) {
            double shift = 0;
            for (size_t c = 0; c < b.d; c++) {
                shift += (double)b.problem.scale * (double)b.Q[row * b.d + c] * (double)a[c];
            }
            EXPECT_NEAR(shifted.L[row], b.L[row] + shift, SUM_TOLERANCE, "L", row);
        }
        free(a);
        bench_free(&b);
        bench_free(&shifted);
    }
}

/* A causal row is a function of the keys up to its own; what the later ones hold, NaN included, must not reach it. */
Test(reference, causal_prefix_ignores_the_future) {
    struct problem problem = {.batch = 1, .heads = 1, .N_q = 12, .N_kv = 12, .d = 4, .causal = true, .scale = 0.5f};
    for (size_t prefix = 1; prefix < 12; prefix++) {
        struct bench b = bench_new(problem, 400), changed = bench_new(problem, 400);
        for (size_t n = prefix * b.d; n < b.size_kv; n++) {
            changed.K[n] = n % 2 ? NAN : 1000.0f;
            changed.V[n] = NAN;
        }
        forward(&b);
        forward(&changed);
        cr_expect(same_bits(b.O, changed.O, prefix * b.d), "O of the first %zu rows", prefix);
        cr_expect(same_bits(b.L, changed.L, prefix), "L of the first %zu rows", prefix);
        cr_expect(isnan(changed.O[prefix * b.d]), "row %zu should see the changed key", prefix);
        bench_free(&b);
        bench_free(&changed);
    }
}

Test(reference, rows_that_see_no_key) {
    struct problem problem = {.batch = 2, .heads = 2, .N_q = 9, .N_kv = 4, .d = 3, .causal = true, .scale = 0.5f};
    struct bench b = bench_new(problem, 500);
    forward(&b);
    backward(&b);
    for (size_t row = 0; row < b.rows; row++) {
        bool blind = row % b.N_q < blind_rows(&b);
        cr_expect(blind ? isinf(b.L[row]) && b.L[row] < 0 : (bool)isfinite(b.L[row]), "L[%zu] = %g", row, b.L[row]);
        for (size_t n = row * b.d; blind && n < (row + 1) * b.d; n++) {
            cr_expect(b.O[n] == 0 && b.dQ[n] == 0, "element %zu: O %g, dQ %g", n, b.O[n], b.dQ[n]);
        }
    }

    /* What a blind row holds must not reach dK and dV either. */
    struct bench other = bench_new(problem, 500);
    for (size_t n = 0; n < b.size_q; n++) {
        if (n / b.d % b.N_q < blind_rows(&b)) {
            other.Q[n] = 1000.0f;
            other.dO[n] = -1000.0f;
        }
    }
    backward(&other);
    cr_expect(same_bits(b.dK, other.dK, b.size_kv), "dK");
    cr_expect(same_bits(b.dV, other.dV, b.size_kv), "dV");
    bench_free(&b);
    bench_free(&other);
}

/* Scores up to +-1e4: exp() of most of them overflows or vanishes in double too. With V = 1 an output is the sum of a
 * row of P. A score is good to 1e4 * 2^-53 = 1e-12, and P, O and the gradients to some of that. */
Test(reference, large_logits) {
    struct problem problem = {.batch = 1, .heads = 2, .N_q = 16, .N_kv = 24, .d = 4, .scale = 2500.0f};
    for (int causal = 0; causal < 2; causal++) {
        problem.causal = causal;
        struct bench b = bench_new(problem, 600);
        for (size_t n = 0; n < b.size_kv; n++) {
            b.K[n] = b.K[n] < 0 ? -1.0f : 1.0f;
            b.V[n] = 1.0f;
        }
        for (size_t n = 0; n < b.size_q; n++) {
            b.Q[n] = b.Q[n] < 0 ? -1.0f : 1.0f;
        }
        /* The last query takes sides against every key: a row whose scores are all far below zero. */
        for (size_t n = (b.heads - 1) * b.N_kv * b.d; n < b.size_kv; n++) {
            b.K[n] = 1.0f;
        }
        for (size_t n = b.size_q - b.d; n < b.size_q; n++) {
            b.Q[n] = -1.0f;
        }
        forward(&b);
        backward(&b);
        EXPECT_NEAR(b.terms, 1e4, 0, "terms", 0);
        EXPECT_NEAR(b.L[b.rows - 1], -1e4 + log((double)b.N_kv), 1e-11, "L", b.rows - 1);
        for (size_t row = 0; row < b.rows; row++) {
            cr_expect(fabs(b.L[row]) <= 1e4 + log((double)b.N_kv), "L[%zu] = %g", row, b.L[row]);
        }
        for (size_t n = 0; n < b.size_q; n++) {
            EXPECT_NEAR(b.O[n], 1, 1e-12, "O", n);
            /* all values equal, so dP_ij = D_i: dS is rounding, at most some 1e-15, times scale and the row's keys */
            EXPECT_NEAR(b.dQ[n], 0, 1e-8, "dQ", n);
        }
        for (size_t n = 0; n < b.size_kv; n++) {
            EXPECT_NEAR(b.dK[n], 0, 1e-8, "dK", n);
            cr_expect(isfinite(b.dV[n]), "dV[%zu] = %g", n, b.dV[n]);
        }
        bench_free(&b);
    }
}

/* Each head by itself gives the same bits as all heads together. */
Test(reference, heads_are_independent) {
    struct problem problem = {.batch = 2, .heads = 3, .N_q = 6, .N_kv = 4, .d = 5, .causal = true, .scale = 0.5f};
    struct bench b = bench_new(problem, 700);
    forward(&b);
    backward(&b);
    for (size_t head = 0; head < b.heads; head++) {
        size_t at_q = head * b.N_q * b.d, at_kv = head * b.N_kv * b.d, head_q = b.N_q * b.d, head_kv = b.N_kv * b.d;
        problem.batch = problem.heads = 1;
        struct bench one = bench_new(problem, 0);
        memcpy(one.Q, b.Q + at_q, head_q * sizeof(float));
        memcpy(one.K, b.K + at_kv, head_kv * sizeof(float));
        memcpy(one.V, b.V + at_kv, head_kv * sizeof(float));
        memcpy(one.dO, b.dO + at_q, head_q * sizeof(float));
        forward(&one);
        backward(&one);
        cr_expect(same_bits(one.O, b.O + at_q, head_q), "O of head %zu", head);
        cr_expect(same_bits(one.L, b.L + head * b.N_q, b.N_q), "L of head %zu", head);
        cr_expect(same_bits(one.dQ, b.dQ + at_q, head_q), "dQ of head %zu", head);
        cr_expect(same_bits(one.dK, b.dK + at_kv, head_kv), "dK of head %zu", head);
        cr_expect(same_bits(one.dV, b.dV + at_kv, head_kv), "dV of head %zu", head);
        bench_free(&one);
    }
    bench_free(&b);
}

/* Heads that share K and V, beside K and V repeated for each head; any rows, one of them twice. */
Test(reference, grouped_heads_equal_repeated_ones) {
    static const int groups[][3] = {{2, 6, 2}, {1, 4, 1}, {3, 3, 3}, {2, 8, 4}}; /* batch, heads, heads_kv */
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        struct problem problem = {.batch = groups[g][0], .heads = groups[g][1], .N_q = 3, .N_kv = 5, .d = 4, .causal = true, .scale = 0.5f};
        struct bench b = bench_new(problem, 900 + g);
        size_t head = 5 * 4, H = (size_t)problem.heads, H_kv = (size_t)groups[g][2], heads = (size_t)problem.batch * H, group = H / H_kv;
        float *K = malloc(heads * head * sizeof *K), *V = malloc(heads * head * sizeof *V); /* (batch, heads_kv, 5, 4) */
        for (size_t batch = 0; batch < (size_t)problem.batch; batch++)
            for (size_t h = 0; h < H; h++) {
                size_t shared = (batch * H + h / group * group) * head, own = (batch * H + h) * head;
                memcpy(b.K + own, b.K + shared, head * sizeof *K);
                memcpy(b.V + own, b.V + shared, head * sizeof *V);
                memcpy(K + (batch * H_kv + h / group) * head, b.K + own, head * sizeof *K);
                memcpy(V + (batch * H_kv + h / group) * head, b.V + own, head * sizeof *V);
            }
        forward(&b);
        problem.heads_kv = (int)H_kv;
        const size_t rows[] = {0, heads * 3 - 1, 4, 4, 7};
        double O[5 * 4], L[5], *O_all = malloc(heads * 3 * 4 * sizeof *O_all), *L_all = malloc(heads * 3 * sizeof *L_all);
        double terms = reference_forward_rows(&problem, b.Q, K, V, rows, 5, O, L);
        cr_expect(terms > 0 && terms <= b.terms, "terms %g of the sample, %g of all", terms, b.terms);
        cr_expect_eq(reference_forward_rows(&problem, b.Q, K, V, NULL, heads * 3, O_all, L_all), b.terms);
        cr_expect(same_bits(O_all, b.O, heads * 3 * 4) && same_bits(L_all, b.L, heads * 3), "groups of case %zu", g);
        for (size_t r = 0; r < 5; r++)
            cr_expect(same_bits(O + r * 4, b.O + rows[r] * 4, 4) && same_bits(L + r, b.L + rows[r], 1), "row %zu", rows[r]);
        free(K), free(V), free(O_all), free(L_all);
        bench_free(&b);
    }
}

/* Any rows, in any order, one of them twice. */
Test(reference, a_sample_of_rows_equals_all_rows) {
    struct problem problem = {.batch = 2, .heads = 3, .N_q = 20, .N_kv = 17, .d = 6, .causal = true, .scale = 0.5f};
    struct bench b = bench_new(problem, 800);
    forward(&b);

    const size_t rows[] = {119, 0, 3, 20, 57, 57, 40, 19, 101};
    enum { COUNT = sizeof rows / sizeof rows[0] };
    double O_rows[COUNT * 6], L_rows[COUNT];
    double terms = reference_forward_rows(&problem, b.Q, b.K, b.V, rows, COUNT, O_rows, L_rows);
    for (size_t r = 0; r < COUNT; r++) {
        cr_expect(same_bits(O_rows + r * b.d, b.O + rows[r] * b.d, b.d), "O of row %zu", rows[r]);
        cr_expect(same_bits(L_rows + r, b.L + rows[r], 1), "L of row %zu", rows[r]);
    }
    cr_expect(terms > 0 && terms <= b.terms, "terms %g of the sample, %g of all", terms, b.terms);
    bench_free(&b);
}
