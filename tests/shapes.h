/* The shapes that steps are tested on. */
#ifndef SHAPES_H
#define SHAPES_H

#include "attention.h"

#include <math.h>
#include <stdint.h>

struct shape {
    int batch, heads, N_q, N_kv, d;
    bool causal;
    float scale;  /* in units of 1 / sqrt(d); 0 is 1 */
    int heads_kv; /* 0: as many as heads */
};

/* Sizes around the edges of warps and tiles, alone and against each other. */
static const struct shape shapes[] = {
    /* as many keys as queries, with and without the mask */
    {1, 1, 1, 1, 64, false},
    {1, 1, 2, 2, 64, false},
    {1, 1, 31, 31, 64, false},
    {1, 1, 32, 32, 64, false},
    {1, 1, 33, 33, 64, false},
    {1, 1, 63, 63, 64, false},
    {1, 1, 64, 64, 64, false},
    {1, 1, 65, 65, 64, false},
    {1, 1, 127, 127, 64, false},
    {1, 1, 128, 128, 64, false},
    {1, 1, 129, 129, 64, false},
    {1, 1, 257, 257, 64, false},
    {1, 1, 1, 1, 64, true},
    {1, 1, 2, 2, 64, true},
    {1, 1, 31, 31, 64, true},
    {1, 1, 32, 32, 64, true},
    {1, 1, 33, 33, 64, true},
    {1, 1, 63, 63, 64, true},
    {1, 1, 64, 64, 64, true},
    {1, 1, 65, 65, 64, true},
    {1, 1, 127, 127, 64, true},
    {1, 1, 128, 128, 64, true},
    {1, 1, 129, 129, 64, true},
    {1, 1, 257, 257, 64, true},
    /* every head dimension, more keys than queries and the other way */
    {1, 1, 113, 203, 1, false},
    {1, 1, 113, 203, 8, false},
    {1, 1, 113, 203, 32, false},
    {1, 1, 113, 203, 40, false},
    {1, 1, 113, 203, 59, false},
    {1, 1, 113, 203, 64, false},
    {1, 1, 113, 203, 96, false},
    {1, 1, 113, 203, 111, false},
    {1, 1, 113, 203, 128, false},
    {1, 1, 65, 33, 1, false},
    {1, 1, 65, 33, 8, false},
    {1, 1, 65, 33, 32, true},
    {1, 1, 65, 33, 40, true},
    {1, 1, 65, 33, 59, false},
    {1, 1, 65, 33, 96, true},
    {1, 1, 65, 33, 111, true},
    {1, 1, 65, 33, 128, true},
    {1, 1, 31, 129, 8, true},
    {1, 1, 31, 129, 32, true},
    {1, 1, 31, 129, 40, true},
    {1, 1, 31, 129, 59, true},
    {1, 1, 31, 129, 96, true},
    {1, 1, 31, 129, 111, true},
    {1, 1, 31, 129, 128, true},
    /* one query or one key against many */
    {1, 1, 1, 257, 64, true},
    {1, 1, 1, 257, 128, false},
    {1, 1, 257, 1, 64, true},
    {1, 1, 257, 1, 128, false},
    {1, 1, 2, 63, 40, true},
    {1, 1, 63, 2, 40, true},
    {1, 1, 128, 257, 32, true},
    {1, 1, 257, 128, 32, true},
    /* several heads and batches */
    {2, 3, 113, 203, 59, true},
    {2, 3, 33, 65, 64, false},
    {3, 1, 65, 65, 32, true},
    {1, 5, 65, 31, 128, true},
    {4, 4, 17, 19, 8, false},
    {2, 2, 129, 127, 96, true},
    {7, 1, 2, 1, 1, true},
    {1, 7, 1, 2, 111, false},
    /* causal masks whose diagonal meets tiles at every offset, with several tiles of rows */
    {1, 2, 150, 187, 34, true, 0.5f},
    {1, 1, 200, 231, 66, true},
    {1, 1, 170, 143, 38, true, 2.0f},
    {1, 1, 300, 333, 90, true},
    {2, 1, 97, 210, 78, true, -1.0f},
    {1, 1, 260, 271, 126, true},
    {1, 1, 131, 150, 70, false, 1.7f},
    {1, 1, 83, 118, 36, true, 0.25f},
    {1, 1, 190, 209, 95, true},
    /* and at the offsets at which a tile is just masked or just not */
    {1, 1, 130, 192, 64, true},
    {1, 1, 150, 276, 104, true},
    {1, 1, 129, 192, 40, true},
    {1, 1, 190, 192, 80, true},
    {1, 1, 200, 198, 64, true},
    /* more than 512 rows */
    {1, 1, 640, 600, 34, true},
    {1, 1, 530, 545, 64, true, 0.7f},
    {1, 1, 120, 700, 33, false},
    {1, 1, 700, 120, 82, false},
    {1, 1, 600, 77, 128, true},
    /* more than 4096 keys, or rows */
    {1, 1, 3, 4200, 32, true},
    {1, 1, 4200, 3, 32, true},
};
enum { SHAPE_COUNT = sizeof shapes / sizeof *shapes };

/* For the rungs below a chapter's last one: tails, causal, rectangular, several heads. */
static const struct shape rung_shapes[] = {
    {1, 1, 1, 1, 64, false},         {1, 1, 64, 64, 64, true},          {1, 1, 129, 129, 64, false, 2.0f},
    {2, 3, 113, 203, 59, true},      {1, 1, 65, 33, 96, true},          {1, 1, 31, 129, 111, false},
    {1, 2, 150, 187, 34, true},      {1, 1, 257, 130, 128, false, 0.5f}, {1, 1, 300, 333, 66, true},
    {2, 1, 70, 33, 8, true},         {1, 1, 9, 63, 64, false},          {1, 1, 3, 127, 40, false},
    {1, 1, 150, 20, 64, true}, /* the first block has no keys */
    {1, 1, 330, 280, 24, true}, /* several tiles of keys, and more than two stages of queries for each */
    {1, 1, 3, 4200, 32, true},       {1, 1, 4200, 3, 32, true}, /* more than 4096 keys, or rows */
};
enum { RUNG_SHAPE_COUNT = sizeof rung_shapes / sizeof *rung_shapes };

/* For steps that take grouped heads: few queries, groups of 1 to 16, around the edges of tiles of 64 keys and 16 rows. */
static const struct shape grouped_shapes[] = {
    {1, 1, 1, 1, 64, false, 0.0f, 1},      {1, 2, 1, 2, 64, true, 0.0f, 1},       {1, 4, 1, 63, 128, false, 0.0f, 2},
    {2, 6, 1, 64, 128, true, 0.0f, 3},     {1, 8, 1, 65, 128, false, 0.0f, 1},    {3, 3, 1, 127, 40, true, 0.0f, 1},
    {1, 16, 1, 129, 64, true, 0.0f, 1},    {2, 17, 1, 191, 64, false, 0.0f, 1},   {1, 4, 2, 2, 128, true, 0.0f, 1},
    {1, 6, 2, 192, 128, true, 0.0f, 2},    {2, 8, 2, 1, 96, true, 0.0f, 1},       {1, 16, 2, 257, 128, true, 2.0f, 1},
    {1, 3, 3, 1, 64, true, 0.0f, 1},       {2, 6, 3, 130, 72, true, 0.0f, 3},     {1, 9, 3, 448, 64, false, 0.5f, 3},
    {1, 12, 4, 65, 128, true, 0.0f, 3},    {1, 8, 4, 640, 128, true, 0.0f, 2},    {2, 4, 5, 64, 8, true, 0.0f, 1},
    {1, 13, 5, 129, 64, true, 0.0f, 1},    {3, 4, 6, 66, 112, true, 0.0f, 2},     {1, 6, 7, 5, 64, true, 0.0f, 2},
    {1, 10, 7, 321, 128, true, 0.0f, 2},   {1, 2, 8, 3, 128, true, 0.0f, 1},      {2, 4, 8, 64, 64, true, 0.0f, 2},
    {1, 4, 8, 65, 128, true, 0.0f, 1},     {1, 8, 8, 71, 128, true, 0.0f, 2},     {1, 16, 8, 1000, 40, true, 0.0f, 2},
    {2, 9, 8, 200, 64, false, -1.0f, 1},   {1, 8, 8, 1, 64, true, 0.0f, 4},       {1, 6, 1, 4200, 128, false, 0.0f, 2},
    {1, 4, 4, 4200, 64, true, 0.0f, 1},    {1, 32, 1, 512, 128, false, 0.0f, 8},
    {1, 2, 5, 897, 64, true, 0.0f, 1}, /* 15 tiles, and a last one with keys of the last row only */
};
enum { GROUPED_SHAPE_COUNT = sizeof grouped_shapes / sizeof *grouped_shapes };

/* Shape number `index` of another endless list: 1 to 8 queries, up to 900 keys, 1 to 4 heads of K and V and groups of 1 to 12. */
static inline uint64_t drawn_bits(uint64_t *state) { /* splitmix64 */
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static inline struct shape drawn_grouped_shape(uint64_t seed, unsigned index) {
    uint64_t state = seed * 1000003u + index;
    struct shape shape = {.batch = 1 + (int)(drawn_bits(&state) % 3), .heads_kv = 1 + (int)(drawn_bits(&state) % 4)};
    shape.heads = shape.heads_kv * (1 + (int)(drawn_bits(&state) % 12));
    shape.N_q = 1 + (int)(drawn_bits(&state) % 8);
    shape.N_kv = 1 + (int)(drawn_bits(&state) % 900);
    shape.d = 1 + (int)(drawn_bits(&state) % MAX_HEAD_DIM);
    shape.causal = drawn_bits(&state) % 2 == 0;
    shape.scale = 0.25f * (float)(1 + drawn_bits(&state) % 8);
    return shape;
}

static inline struct problem problem_of(const struct shape *shape) {
    float scale = (shape->scale != 0.0f ? shape->scale : 1.0f) / sqrtf((float)shape->d);
    return (struct problem){.batch = shape->batch,
                            .heads = shape->heads,
                            .N_q = shape->N_q,
                            .N_kv = shape->N_kv,
                            .d = shape->d,
                            .causal = shape->causal,
                            .scale = scale,
                            .heads_kv = shape->heads_kv};
}

/* Shape number `index` of the endless list that `seed` begins: up to 320 queries and keys, any d, masks and scales of
 * every kind. */
static inline struct shape drawn_shape(uint64_t seed, unsigned index) {
    uint64_t state = seed * 1000003u + index;
    uint64_t bits[8];
    for (int i = 0; i < 8; i++) bits[i] = drawn_bits(&state);
    /* One batch with up to 3 heads, or 2 with one: the list above has more, and here the time goes to queries and keys. */
    int batch = 1 + (int)(bits[0] % 2), heads = batch == 1 ? 1 + (int)(bits[1] % 3) : 1;
    return (struct shape){batch,
                          heads,
                          1 + (int)(bits[2] % 320),
                          1 + (int)(bits[3] % 320),
                          1 + (int)(bits[4] % MAX_HEAD_DIM),
                          bits[5] % 2 == 0,
                          0.25f * (float)(1 + bits[6] % 8)};
}

#endif
