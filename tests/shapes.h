/* The shapes that every step is tested on. */
#ifndef SHAPES_H
#define SHAPES_H

#include "attention.h"

#include <math.h>

struct shape {
    int batch, heads, N_q, N_kv, d;
    bool causal;
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
};
enum { SHAPE_COUNT = sizeof shapes / sizeof *shapes };

static inline struct problem problem_of(const struct shape *shape) {
    return (struct problem){
        shape->batch, shape->heads, shape->N_q, shape->N_kv, shape->d, shape->causal, 1.0f / sqrtf((float)shape->d)};
}

#endif
