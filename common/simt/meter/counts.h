/* Counts of one kernel's source lines, between the meter's own files. */
#pragma once

#include "meter.h"

enum { SECTOR = 32, BANKS = 32, SITE_TABLE = 2048, BLOCK_TABLE = 8192, MAX_TEXT = 300 };

struct site {
    const void *pc; /* NULL: this place in the table is free */
    enum access_kind kind;
    enum memory_space space;
    unsigned bytes; /* a lane's access */
    uint64_t requests, lanes, partial, sectors, wavefronts, least_wavefronts;
    /* One request of the site, the first with the most lanes, for pictures. */
    unsigned sample_lanes;
    uintptr_t sample[WARP_SIZE];
    char sample_names[2][80]; /* the lowest address and the highest, in words */
    size_t lowest, past;      /* of local memory: by stack_offset() */
};

struct event {
    const char *what, *file;
    int line;
    uint64_t count;
};

struct basic_block {
    const void *pc; /* NULL: this place in the table is free */
    uint64_t entered;
};

struct meter {
    struct site sites[SITE_TABLE];
    struct basic_block blocks[BLOCK_TABLE];
    struct event *events;
    unsigned event_count, event_room;
    uint64_t warp_requests[MAX_BLOCK_THREADS / WARP_SIZE]; /* of the block that runs */
    uint64_t basic_blocks; /* that threads have entered, also those that found no place in the table */
    union {                /* the same numbers by their names, and as a list to add up */
        struct {
            uint64_t barriers, collectives; /* once per block, once per warp */
            uint64_t barrier_phases;        /* of any other barrier than the block's: named, of a cluster, an mbarrier */
            uint64_t flag_accesses;         /* volatile, or atomic in shared memory: threads may wait for one another by them */
            uint64_t busiest_warp_requests; /* the most of any warp of a block, over the blocks before it */
            uint64_t copies, copy_accesses; /* asynchronous, and what their threads accessed between issue and arrival */
            uint64_t tensor_requests[TENSOR_TRAFFIC], tensor_sectors[TENSOR_TRAFFIC]; /* boxes and bytes that the TMA copies */
            uint64_t products, product_wavefronts; /* of warpgroups, and what they read of shared memory */
        };
        uint64_t sums[9 + 2 * TENSOR_TRAFFIC];
    };
    bool registers[STACK_BYTES / 4]; /* words of a stack in which a product had registers: those are no local memory */
    size_t shared_bytes;             /* of the block that had the most: static and dynamic */
};

struct kernel {
    const void *code;
    char name[MAX_TEXT];
    struct uint3 grid, block;
    uint64_t launches, blocks, metered_blocks;
    uint64_t words_read, words_written; /* different 4-byte words of global memory */
    struct meter *meter;
};

extern struct kernel *simt_kernels; /* that were launched under the meter */
extern unsigned simt_kernel_count;

uintptr_t lowest_of_sample(const struct site *site);
void meter_end_block(struct meter *meter); /* adds its busiest warp */
/* `access` is one of the lanes'; each has an address of its own and, if it is a copy, a destination. */
void meter_request(struct worker *worker, unsigned warp, const uintptr_t *addresses, const uint32_t *destinations,
                   unsigned lanes, unsigned live, const struct access *access);
