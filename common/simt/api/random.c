/* XORWOW's five words after many steps. One step is linear over bits (G. Marsaglia, "Xorshift RNGs", 2003), so 2^k steps are a
 * matrix of 160 x 160 bits, and the matrix of twice as many is its square. */
#include "simt_abi.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { WORDS = 5, BITS = 32 * WORDS, SEQUENCE = 67, POWERS = SEQUENCE + 64 };
struct words {
    uint32_t at[WORDS];
};
static struct words matrices[POWERS][BITS]; /* row i: what bit i of the words becomes after 2^k steps */

static struct words multiply(struct words vector, const struct words matrix[BITS]) {
    struct words sum = {{0}};
    for (int bit = 0; bit < BITS; bit++)
        for (int i = 0; i < WORDS && (vector.at[bit / 32] >> bit % 32 & 1) != 0; i++) sum.at[i] ^= matrix[bit].at[i];
    return sum;
}

static void make_matrices(void) {
    for (int bit = 0; bit < BITS; bit++) {
        struct words v = {{0}};
        v.at[bit / 32] = 1u << bit % 32;
        uint32_t t = v.at[0] ^ v.at[0] >> 2, last = v.at[WORDS - 1];
        memmove(v.at, v.at + 1, (WORDS - 1) * sizeof *v.at);
        v.at[WORDS - 1] = last ^ last << 4 ^ t ^ t << 1;
        matrices[0][bit] = v;
    }
    for (int power = 1; power < POWERS; power++)
        for (int bit = 0; bit < BITS; bit++) matrices[power][bit] = multiply(matrices[power - 1][bit], matrices[power - 1]);
}

uint64_t simt_xorwow_skip(unsigned v0, unsigned v1, unsigned v2, unsigned v3, unsigned v4, unsigned long long n, int sequences,
                          int part) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_matrices);
    struct words words = {{v0, v1, v2, v3, v4}};
    for (int power = sequences ? SEQUENCE : 0; n != 0 && power < POWERS; n >>= 1, power++)
        if ((n & 1) != 0) words = multiply(words, matrices[power]);
    return part == 0   ? words.at[0] | (uint64_t)words.at[1] << 32
           : part == 1 ? words.at[2] | (uint64_t)words.at[3] << 32
                       : words.at[4];
}
