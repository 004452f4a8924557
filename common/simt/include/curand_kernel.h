/* cuRAND's generators XORWOW and Philox4x32-10 for device code: the words, uniform and normal numbers of curand_init(seed, subsequence,
 * offset, state), as its manual defines them (docs.nvidia.com/cuda/curand). XORWOW: G. Marsaglia, "Xorshift RNGs", 2003; Philox: Salmon
 * et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. The normal numbers differ from a card's in the last bits. */
#pragma once

#include "cuda_runtime.h"
#include <cmath>

/* Box and Muller's method gives two numbers; the second waits for the next call. */
struct simt_second_of_two {
    float normal, log_normal;
    double normal_double;
    bool has_normal, has_log_normal, has_normal_double;
};

struct curandStateXORWOW {
    unsigned d, v[5];
    simt_second_of_two second;
};
typedef struct curandStateXORWOW curandStateXORWOW_t, curandState_t, curandState;

struct curandStatePhilox4_32_10 {
    unsigned counter[4], output[4], key[2], next;
    simt_second_of_two second;
};
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

/* ---- XORWOW ------------------------------------------------------------------------------------------------------------------ */

static inline unsigned curand(curandStateXORWOW_t *state) {
    unsigned *v = state->v, t = v[0] ^ v[0] >> 2;
    for (int i = 0; i < 4; i++) v[i] = v[i + 1];
    v[4] = v[4] ^ v[4] << 4 ^ t ^ t << 1;
    return v[4] + (state->d += 362437);
}
static inline void simt_skip(curandStateXORWOW_t *state, unsigned long long n, int sequences) {
    unsigned *v = state->v, old[] = {v[0], v[1], v[2], v[3], v[4]};
    for (int i = 0; i < 5 && n != 0; i++)
        v[i] = (unsigned)(simt_xorwow_skip(old[0], old[1], old[2], old[3], old[4], n, sequences, i / 2) >> i % 2 * 32);
}
static inline void skipahead(unsigned long long n, curandStateXORWOW_t *state) {
    simt_skip(state, n, 0);
    state->d += 362437 * (unsigned)n;
}
static inline void skipahead_sequence(unsigned long long n, curandStateXORWOW_t *state) { simt_skip(state, n, 1); }
static inline void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                               curandStateXORWOW_t *state) {
    unsigned low = 1099087573 * ((unsigned)seed ^ 0xaad26b49), high = 2591861531 * ((unsigned)(seed >> 32) ^ 0xf7dcefdd);
    *state = {6615241 + high + low, {123456789 + low, 362436069 ^ low, 521288629 + high, 88675123 ^ high, 5783321 + low}, {}};
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
}

/* ---- Philox ------------------------------------------------------------------------------------------------------------------- */

static inline void simt_philox(curandStatePhilox4_32_10_t *state) {
    unsigned x[4], key[2] = {state->key[0], state->key[1]};
    for (int i = 0; i < 4; i++) x[i] = state->counter[i];
    for (int round = 0; round < 10; round++, key[0] += 0x9E3779B9, key[1] += 0xBB67AE85) {
        unsigned long long a = 0xD2511F53ull * x[0], b = 0xCD9E8D57ull * x[2];
        unsigned to[4] = {(unsigned)(b >> 32) ^ x[1] ^ key[0], (unsigned)b, (unsigned)(a >> 32) ^ x[3] ^ key[1], (unsigned)a};
        for (int i = 0; i < 4; i++) x[i] = to[i];
    }
    for (int i = 0; i < 4; i++) state->output[i] = x[i];
}
/* n is added to the counter's words from `word` on; a subsequence is the upper half. */
static inline void simt_count(curandStatePhilox4_32_10_t *state, unsigned long long n, int word) {
    for (; word < 4; word++) {
        unsigned long long sum = (n & 0xffffffff) + state->counter[word];
        state->counter[word] = (unsigned)sum;
        n = (n >> 32) + (sum >> 32);
    }
}
static inline void skipahead(unsigned long long n, curandStatePhilox4_32_10_t *state) {
    state->next += (unsigned)(n & 3);
    simt_count(state, n / 4 + state->next / 4, 0);
    state->next %= 4;
    simt_philox(state);
}
static inline void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t *state) {
    simt_count(state, n, 2);
    simt_philox(state);
}
static inline void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                               curandStatePhilox4_32_10_t *state) {
    *state = {{}, {}, {(unsigned)seed, (unsigned)(seed >> 32)}, 0, {}};
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
}
static inline unsigned curand(curandStatePhilox4_32_10_t *state) {
    unsigned word = state->output[state->next];
    skipahead(1, state);
    return word;
}
static inline uint4 curand4(curandStatePhilox4_32_10_t *state) {
    unsigned words[4];
    for (unsigned &word : words) word = curand(state);
    return make_uint4(words[0], words[1], words[2], words[3]);
}

/* ---- numbers of words ---------------------------------------------------------------------------------------------------------- */

static inline float simt_uniform(unsigned word) { return (float)word * 0x1p-32f + 0x1p-33f; } /* in (0, 1] */
static inline double simt_uniform_double(unsigned low, unsigned high) {
    return (double)(low ^ (unsigned long long)high << 21) * 0x1p-53 + 0x1p-54;
}
template <typename _State> static inline float curand_uniform(_State *state) { return simt_uniform(curand(state)); }
static inline double curand_uniform_double(curandStateXORWOW_t *state) {
    unsigned low = curand(state);
    return simt_uniform_double(low, curand(state));
}
static inline double curand_uniform_double(curandStatePhilox4_32_10_t *state) {
    return (double)curand(state) * 0x1p-32 + 0x1p-32;
}
static inline float4 curand_uniform4(curandStatePhilox4_32_10_t *state) {
    uint4 words = curand4(state);
    return make_float4(simt_uniform(words.x), simt_uniform(words.y), simt_uniform(words.z), simt_uniform(words.w));
}

static inline float2 simt_normal2(unsigned x, unsigned y) {
    const float turn = 0x1p-32f * 6.2831855f;
    float angle = (float)y * turn + turn / 2, size = sqrtf(-2.0f * logf(simt_uniform(x)));
    return make_float2(sinf(angle) * size, cosf(angle) * size);
}
template <typename _State> static inline float2 curand_normal2(_State *state) {
    unsigned x = curand(state);
    return simt_normal2(x, curand(state));
}
static inline float4 curand_normal4(curandStatePhilox4_32_10_t *state) {
    float2 a = curand_normal2(state), b = curand_normal2(state);
    return make_float4(a.x, a.y, b.x, b.y);
}
template <typename _State> static inline double2 curand_normal2_double(_State *state) {
    unsigned words[4];
    for (unsigned &word : words) word = curand(state);
    double angle = 2 * M_PI * simt_uniform_double(words[2], words[3]),
           size = sqrt(-2.0 * log(simt_uniform_double(words[0], words[1])));
    return make_double2(sin(angle) * size, cos(angle) * size);
}
template <typename _State> static inline float curand_normal(_State *state) {
    simt_second_of_two *second = &state->second;
    if ((second->has_normal = !second->has_normal) == false) return second->normal;
    float2 two = curand_normal2(state);
    return second->normal = two.y, two.x;
}
template <typename _State> static inline double curand_normal_double(_State *state) {
    simt_second_of_two *second = &state->second;
    if ((second->has_normal_double = !second->has_normal_double) == false) return second->normal_double;
    double2 two = curand_normal2_double(state);
    return second->normal_double = two.y, two.x;
}
template <typename _State> static inline float2 curand_log_normal2(_State *state, float mean, float deviation) {
    float2 two = curand_normal2(state);
    return make_float2(expf(mean + deviation * two.x), expf(mean + deviation * two.y));
}
template <typename _State> static inline float curand_log_normal(_State *state, float mean, float deviation) {
    simt_second_of_two *second = &state->second;
    if ((second->has_log_normal = !second->has_log_normal) == false) return second->log_normal;
    float2 two = curand_log_normal2(state, mean, deviation);
    return second->log_normal = two.y, two.x;
}
