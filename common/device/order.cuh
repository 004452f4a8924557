/* Where a block works, when the order of the blocks is that of a section: some heads, whose rows of K and V (or of Q and dO) the L2
 * cache holds together. Chapters 12 and 13. */
#ifndef ORDER_CUH
#define ORDER_CUH

#include <limits.h>

#include "attention.h"

struct block_place {
    int head, tile;
};

/* Blocks start in the order of their index, x first: here section by section, and in a section the first tile of all its heads, then the
 * second. (x, y): the block in a grid of (tiles, heads) blocks. No product is larger than section * tiles. */
__host__ __device__ inline block_place place_of_block(int x, int y, int tiles, int heads, int section) {
    int first_head = y / section * section, in_section = (y - first_head) * tiles + x;
    int own_heads = section < heads - first_head ? section : heads - first_head;
    return {first_head + in_section % own_heads, in_section / own_heads};
}

/* How many of the heads have their rows in so many bytes; at least one, and so few that section * tiles is an int. */
inline int heads_of_section(size_t bytes, size_t bytes_per_head, int heads, int tiles) {
    size_t fit = bytes / bytes_per_head, most = (size_t)(heads < INT_MAX / tiles ? heads : INT_MAX / tiles);
    return fit < 1 ? 1 : fit < most ? (int)fit : (int)most;
}

#endif
