/* patterns SEED COUNT: random requests of a warp, and what the meter's own code counts of each, one line of JSON per request:
 * [[address of each lane or null], bytes, "load" or "store", sectors, wavefronts]. The counting functions are not public, so the
 * file that has them is compiled here. */
#include "counts.c"

static uint64_t random_state;

static unsigned below(unsigned end) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % end;
}

/* Strides, few different addresses, pairs that agree, or any: what kernels do, and what they do not. */
static uintptr_t address_of(unsigned lane, unsigned kind, unsigned a, unsigned b, unsigned bytes, unsigned room) {
    switch (kind) {
    case 0: return (uintptr_t)(lane * a + b) % room * bytes;
    case 1: return (uintptr_t)((lane >> (1 + b % 2)) * a) % room * bytes;
    case 2: return (uintptr_t)((lane & ~(1u << b % 3)) * a) % room * bytes;
    case 3: return (uintptr_t)(lane / (1 + a % 8) * (32 + b % 8) + lane % (1 + a % 8)) % room * bytes;
    default: return (uintptr_t)below(1 + (kind == 4 ? a : room)) % room * bytes;
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    random_state = strtoull(argv[1], NULL, 10);
    printf("[");
    for (unsigned left = (unsigned)strtoul(argv[2], NULL, 10); left > 0; left--) {
        unsigned bytes = 4u << below(3), kind = below(6), a = below(40), b = below(40), lanes = below(3) == 0 ? below(1u << 31) * 2 + 1 : ~0u;
        bool is_load = below(2) == 0;
        uintptr_t addresses[WARP_SIZE], in_memory[WARP_SIZE]; /* nothing lies in the first sector of memory: it is not counted */
        for (unsigned lane = 0; lane < WARP_SIZE; lane++) addresses[lane] = address_of(lane, kind, a, b, bytes, 8192 / bytes);
        for (unsigned lane = 0; lane < WARP_SIZE; lane++) in_memory[lane] = addresses[lane] + (1u << 20);
        printf("[[");
        for (unsigned lane = 0; lane < WARP_SIZE; lane++) {
            if (lanes >> lane & 1)
                printf("%s%zu", lane > 0 ? "," : "", (size_t)addresses[lane]);
            else
                printf("%snull", lane > 0 ? "," : "");
        }
        printf("],%u,\"%s\",%u,%u]%s", bytes, is_load ? "load" : "store", count_sectors(in_memory, lanes, bytes),
               count_wavefronts(in_memory, lanes, bytes, is_load), left > 1 ? ",\n" : "]\n");
    }
    return 0;
}
