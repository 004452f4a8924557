/* Stamps: who accessed a word, and in which launch. A stamp of 0 means "nobody".
 *
 *     global memory:  launch | block | thread | flags        shared memory:  serial of the block | thread | flags
 *
 * Fields that name who (block, thread) hold all there are: a launch of more blocks is refused. Fields that order (the launch, the
 * serial of a worker's blocks, and the clocks beside the stamps) may run out: then what they ordered becomes older than all that
 * comes (shadow_next_order(), shadow_start_block(), age_block() in order.c), and they start again. So no two moments have one stamp. Their
 * widths may be chosen smaller, to test that. */
#pragma once

#include "machine.h"

#ifndef STAMP_LAUNCH_BITS
#define STAMP_LAUNCH_BITS 20
#define STAMP_SERIAL_BITS (STAMP_LAUNCH_BITS + STAMP_BLOCK_BITS)
#define STAMP_CLOCK_BITS 32
#endif

enum { STAMP_FLAG_BITS = 3, STAMP_THREAD_BITS = 10, STAMP_BLOCK_BITS = 31 };
enum { STAMP_OWNER_SHIFT = STAMP_FLAG_BITS + STAMP_THREAD_BITS, STAMP_LAUNCH_SHIFT = STAMP_OWNER_SHIFT + STAMP_BLOCK_BITS };
_Static_assert(STAMP_LAUNCH_SHIFT + STAMP_LAUNCH_BITS <= 64 && STAMP_OWNER_SHIFT + STAMP_SERIAL_BITS <= 64, "a stamp's width");
_Static_assert(MAX_BLOCK_THREADS <= 1 << STAMP_THREAD_BITS, "a stamp holds the thread's whole number");

static const uint64_t STAMP_LAUNCH_MAX = (1ull << STAMP_LAUNCH_BITS) - 1, STAMP_SERIAL_MAX = (1ull << STAMP_SERIAL_BITS) - 1,
                      STAMP_CLOCK_MAX = (1ull << STAMP_CLOCK_BITS) - 1, STAMP_BLOCKS_MAX = 1ull << STAMP_BLOCK_BITS;
static const uint64_t STAMP_FLAGS = (1u << STAMP_FLAG_BITS) - 1, STAMP_THREAD_AND_FLAGS = (1u << STAMP_OWNER_SHIFT) - 1;

/* Flags of a write stamp; marked: atomic or volatile. In shared memory, pending: cp.async under way. In global memory,
 * where races may be tolerated (tolerated.c), mixed: the launch has stored several values there that were not all atomic,
 * or more than 8 bytes at once: since the block's last barrier, or ever. */
enum { WRITE_MARKED = 1, WRITE_PENDING = 2, WRITE_VOLATILE = 4, WRITE_MIXED = 4, WRITE_EVER_MIXED = 2 };
/* Flags of a read stamp: others read it too. In shared memory the last says that the read was volatile. */
enum { READ_BY_LANES = 1, READ_BY_WARPS = 2, READ_BY_BLOCKS = 4, READ_VOLATILE = 4 };
static const uint64_t WRITTEN_BY_HOST = 4; /* in place of a write stamp; also of one of a launch that has aged */

/* The owner is launch and block, or the serial of a block of shared memory. */
static inline uint64_t stamp_make(uint64_t owner, unsigned thread) {
    return owner << STAMP_OWNER_SHIFT | (uint64_t)thread << STAMP_FLAG_BITS;
}
static inline uint64_t owner_make(uint64_t launch, uint64_t block) { return launch << STAMP_BLOCK_BITS | block; }
static inline uint64_t stamp_launch(uint64_t stamp) { return stamp >> STAMP_LAUNCH_SHIFT; }
static inline uint64_t stamp_owner(uint64_t stamp) { return stamp >> STAMP_OWNER_SHIFT; }
static inline uint64_t stamp_block(uint64_t stamp) { return stamp_owner(stamp) & (STAMP_BLOCKS_MAX - 1); }
static inline unsigned stamp_thread(uint64_t stamp) {
    return (unsigned)(stamp >> STAMP_FLAG_BITS) & ((1u << STAMP_THREAD_BITS) - 1);
}
static inline bool same_launch(uint64_t a, uint64_t b) { return stamp_launch(a ^ b) == 0; }
static inline bool same_owner(uint64_t a, uint64_t b) { return stamp_owner(a ^ b) == 0; }
/* The stamp as the thread has it in shared memory. */
static inline uint64_t stamp_in_shared(uint64_t stamp, const struct worker *worker) {
    return worker->shadow.shared_owner << STAMP_OWNER_SHIFT | (stamp & STAMP_THREAD_AND_FLAGS);
}
/* Is it of this launch, whichever of its barriers of the grid came before? */
static inline bool stamp_is_of(uint64_t stamp, const struct launch *launch) {
    return stamp_launch(stamp) >= launch->first_order && stamp_launch(stamp) <= launch->order;
}

/* ---- cells: what shadow.c writes beside each word of memory, and device_memory.c makes room for ---- */

/* What is remembered of one 4-byte word of global or shared memory, or of one byte of a word that is split: once threads
 * access less of a word than the whole, its four bytes have cells of their own. */
struct cell {
    uint64_t write, read;             /* stamps of the last write and of the last reads; 0: none */
    uint32_t write_clock, read_clock; /* of the block's own time, which collectives and barriers advance; 0: long ago */
    union {                           /* of the last write: relative to the program's start */
        struct {
            uint32_t write_pc : 29;
            uint32_t write_scope : 2;     /* of an atomic or volatile one: enum simt_scope, 0: the device */
            uint32_t write_under_way : 1; /* in global memory: a store or reduction of the async proxy that has not landed */
        };
        uint32_t write_place;
    };
    union {
        struct {
            uint32_t read_pc : 30;
            uint32_t read_elsewhere : 1; /* another one of several readers has read in another line */
            uint32_t split : 1;
        };
        uint32_t read_place; /* all three, to be stored at once: a load after two stores to parts of a word waits for both */
    };
};

/* The cells of some memory: one for each of its words, and behind them four for each. Those of words that are never split
 * lie in pages that are never touched. Behind all of them lies one number for each sector (shadow.h, settled). */
enum { SETTLED_BYTES = 32 };
static inline size_t cells_bytes(size_t bytes) {
    return (bytes + 3) / 4 * 5 * sizeof(struct cell) + bytes / SETTLED_BYTES * sizeof(uint64_t) + sizeof(uint64_t);
}
static inline uint64_t *settled_sectors(struct cell *cells, size_t bytes) { return (uint64_t *)(cells + (bytes + 3) / 4 * 5); }
static inline struct cell *byte_cells(struct cell *cells, size_t bytes, size_t word) {
    return cells + (bytes + 3) / 4 + 4 * word;
}
