/* The variants of a problem (attention.h) on the host: which are asked for, whether they make sense, and what the oracle does not see:
 * rotary embedding, and the pages of a cache. */
#ifndef BORDER_H
#define BORDER_H

#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the problem asks for, as enum variant. */
unsigned variants_of(const struct problem *problem);

/* Why the variants that the step does not take, or their numbers, are refused, as for step_refuses(); NULL when they are not. */
const char *variants_refuse(const struct step *step, const struct problem *problem);

/* ", window 5,0, softcap 3" for reports; lasts until the next call in this thread. */
const char *variants_text(const struct problem *problem);

/* Why these tables cannot be a problem's: what a step would read outside of its tensors. Pointers in `problem` are the host's. */
const char *tables_refuse(const struct problem *problem);

/* Rows rows[0..count) of Q or K, all where rows is NULL, rotated by their positions: values (count, d). Back: dQ or dK, by the opposite
 * angles. With squares: of the size of each number, whose squares add up. */
void rotate_rows(const struct problem *problem, enum tensor tensor, const size_t *rows, size_t count, double *values, bool back,
                 bool squares);

/* Q or K as the oracle sees it: rotated and rounded to the type, for the caller to free. NULL: as it is. */
float *rotated(const struct problem *problem, enum tensor tensor, const float *values);

/* Pages for the lengths of the problem: sets page_count and a table of page numbers in an order that `seed` draws, with a few pages
 * that nobody uses. The table, (batch, pages_per_sequence()), is the caller's to free; entries of keys that do not exist are -1. */
int *make_pages(struct problem *problem, unsigned long long seed);

/* K or V (batch, kv_heads(), N_kv, d) as pages (page_count, kv_heads(), page_size, d), NaN where no key lies; the caller's to free. */
float *in_pages(const struct problem *problem, const float *values);

#ifdef __cplusplus
}
#endif

#endif
