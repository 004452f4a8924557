/* Where the blocks of chapters 12 and 13 work (common/device/order.cuh), on the host: every head and tile once, also where the grid or
 * the section is as large as struct problem allows. */
#include "device_test.h"

#include "order.cuh"
#include "problem.h"

TestSuite(block_order, .timeout = 60);

/* The definition, without a shorter type: section after section, in each tile after tile of all its heads. */
static block_place by_index(long long x, long long y, long long tiles, long long heads, long long section) {
    long long index = y * tiles + x, first_head = index / (section * tiles) * section,
              in_section = index - first_head * tiles;
    long long own_heads = section < heads - first_head ? section : heads - first_head;
    return {(int)(first_head + in_section % own_heads), (int)(in_section / own_heads)};
}

static void expect_place(int x, int y, int tiles, int heads, int section) {
    block_place got = place_of_block(x, y, tiles, heads, section), expected = by_index(x, y, tiles, heads, section);
    cr_assert(got.head == expected.head && got.tile == expected.tile,
              "block (%d, %d) of %d x %d, %d heads per section: head %d, tile %d instead of head %d, tile %d", x, y,
              tiles, heads, section, got.head, got.tile, expected.head, expected.tile);
}

Test(block_order, every_place_once) {
    for (int tiles = 1; tiles < 8; tiles++)
        for (int heads = 1; heads < 9; heads++)
            for (int section = 1; section <= heads; section++) {
                bool seen[8][9] = {};
                for (int y = 0; y < heads; y++)
                    for (int x = 0; x < tiles; x++) {
                        expect_place(x, y, tiles, heads, section);
                        block_place own = place_of_block(x, y, tiles, heads, section);
                        cr_assert(own.head >= 0 && own.head < heads && own.tile >= 0 && own.tile < tiles);
                        cr_assert_not(seen[own.tile][own.head]);
                        seen[own.tile][own.head] = true;
                    }
            }
}

/* Bytes of a head: 4 N d in chapter 12, 8 N d in chapter 13, with N the length that the tiles do not cover. */
Test(block_order, largest_grids) {
    static const int all_heads[] = {1, 2, 255, 16383, MAX_BATCH_HEADS}, lengths[] = {1, 64, 6710912, MAX_LENGTH},
                     rows_per_tile[] = {64, 128, 192, 384};
    for (int heads : all_heads)
        for (int covered : {1, 786432, 4194304, 6710912, (int)MAX_LENGTH})
            for (int rows : rows_per_tile)
                for (int length : lengths)
                    for (size_t bytes_per_row : {4 * 8, 8 * 8, 8 * MAX_HEAD_DIM}) {
                        int tiles = ceil_div(covered, rows);
                        int section = heads_of_section(40 << 20, bytes_per_row * length, heads, tiles);
                        cr_assert(section >= 1 && section <= heads && (long long)section * tiles <= INT_MAX,
                                  "%d heads, %d tiles: %d per section", heads, tiles, section);
                        for (int y : {0, 1, section - 1, section, heads / 2, heads - 1})
                            for (int x : {0, 1, tiles / 2, tiles - 1})
                                if (x < tiles && y < heads) expect_place(x, y, tiles, heads, section);
                    }
}
