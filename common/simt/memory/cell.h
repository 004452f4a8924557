/* Cells: what shadow.c writes beside each word of memory, and device_memory.c makes room for. */
#ifndef SIMT_CELL_H
#define SIMT_CELL_H

#include <stddef.h>
#include <stdint.h>

/* What is remembered of one 4-byte word of global or shared memory, or of one byte of a word that is split: once threads
 * access less of a word than the whole, its four bytes have cells of their own. */
struct cell {
    uint64_t write, read;             /* stamps of the last write and of the last reads; 0: none */
    uint32_t write_clock, read_clock; /* of the block's own time, which collectives and barriers advance; 0: long ago */
    union {                           /* of the last write: relative to the program's start */
        struct {
            uint32_t write_pc : 31;
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
 * lie in pages that are never touched. */
static inline size_t cells_bytes(size_t bytes) { return (bytes + 3) / 4 * 5 * sizeof(struct cell); }
static inline struct cell *byte_cells(struct cell *cells, size_t bytes, size_t word) {
    return cells + (bytes + 3) / 4 + 4 * word;
}

#endif
