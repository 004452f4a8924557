/* layouts SEED COUNT: random matrices of wgmma and tiles of the TMA, and where the simulated device's own code finds an element of each:
 * [[descriptor in hexadecimal, "K" or "MN", i, k, byte], ...] and [[row, column, pitch, span, byte], ...]. These functions are not
 * public, so the file that has them is compiled here. */
#include "tensor_map.h"
#include "wgmma.c"

#include <stdio.h>

static uint64_t random_state;

static unsigned below(unsigned end) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % end;
}

/* Offsets as kernels have them, or any. */
static uint64_t field(void) { return below(2) == 0 ? 8ull << below(9) : below(1u << 14); }

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    random_state = strtoull(argv[1], NULL, 10);
    unsigned count = (unsigned)strtoul(argv[2], NULL, 10);
    printf("[[");
    for (unsigned n = 0; n < count; n++) {
        uint64_t descriptor =
            below(1u << 14) | field() << 16 | field() << 32 | (uint64_t)below(below(2) == 0 ? 1 : 8) << 49;
        descriptor |= (uint64_t)below(4) << 62;
        unsigned i = below(256), k = below(DEPTH);
        bool transposed = below(2) == 0;
        struct layout layout = decode(descriptor, SIMT_BF16, transposed);
        uint32_t byte = transposed ? unit_address(&layout, i / 8 * 8, k) + i % 8 * 2
                                   : unit_address(&layout, i, k / 8 * 8) + k % 8 * 2;
        printf("%s[\"%016lx\",\"%s\",%u,%u,%u]", n > 0 ? ",\n" : "", (unsigned long)descriptor, transposed ? "MN" : "K",
               i, k, byte);
    }
    printf("],[");
    for (unsigned n = 0; n < count; n++) {
        unsigned pitch = 16 * (1 + below(32)), row = below(256), column = below(pitch / 2), span = 16u << below(4);
        printf("%s[%u,%u,%u,%u,%u]", n > 0 ? ",\n" : "", row, column, pitch, span,
               swizzled_address(row * pitch + 2 * column, span / 16));
    }
    printf("]]\n");
    return 0;
}
