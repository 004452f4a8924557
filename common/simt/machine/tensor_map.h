/* What a CUtensorMap holds here: api/ encodes it on the host, collectives/ copy by it. */
#pragma once

#include "machine.h"

/* Of a map's address. g++ keeps 64 for a parameter that is passed by value on x86-64, and 16 on 64-bit Arm and in confined code. */
#ifdef __aarch64__
#define TENSOR_MAP_ALIGNMENT 16
#else
#define TENSOR_MAP_ALIGNMENT (IS_CONFINED ? 16 : 64)
#endif
enum { TENSOR_MAP_MAGIC = 0x544d4150, MOST_DIMENSIONS = 5 };

struct tensor_map {
    uint32_t magic;
    uint8_t rank, element_bytes,
        swizzle; /* swizzle: the bytes after which it repeats, 128 / 16 = 8 for the 128-byte one; or 1 */
    uint64_t address;
    uint64_t sizes[MOST_DIMENSIONS];   /* elements, the innermost first */
    uint64_t strides[MOST_DIMENSIONS]; /* bytes, [0]: of an element */
    uint16_t box[MOST_DIMENSIONS];
};
_Static_assert(sizeof(struct tensor_map) <= 128, "it fits into a CUtensorMap");

/* Could the driver have made it? Its bytes are the program's, which may have written anything there. */
static inline int tensor_map_is_sound(const struct tensor_map *map) {
    int sound = map->magic == TENSOR_MAP_MAGIC && map->rank >= 1 && map->rank <= MOST_DIMENSIONS;
    sound = sound && map->element_bytes >= 1 && map->element_bytes <= 8 && (map->element_bytes & (map->element_bytes - 1)) == 0;
    sound = sound && map->swizzle >= 1 && map->swizzle <= 8 && (map->swizzle & (map->swizzle - 1)) == 0;
    for (int d = 0; sound && d < map->rank; d++) sound = map->box[d] >= 1 && map->box[d] <= 256;
    return sound && map->box[0] * map->element_bytes % 16 == 0;
}

/* Where 16 bytes of a swizzled tile lie: the bits from 4 on are exchanged by those from 7 on. */
static inline uint32_t swizzled_address(uint32_t address, unsigned swizzle) {
    return address ^ ((address >> 7 & (swizzle - 1)) << 4);
}
