/* The variants of a problem (attention.h) on the host: which are asked for, whether they make sense, and which keys a query attends to. */
#pragma once

#include "attention.h"

#include <stdint.h>

/* The variants that the problem has, as a sum of enum variant. */
unsigned variants_of(const struct problem *problem);

/* Why a problem is refused, as for step_refuses(): the text lasts until the next call in this thread. */
const char *refusal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Why the variants that the step does not take, or their numbers, are refused, as for step_refuses(); NULL when they are not. */
const char *variants_refuse(const struct step *step, const struct problem *problem);

/* ", window 5,0, softcap 3" for reports; lasts until the next call in this thread. */
const char *variants_text(const struct problem *problem);

/* Why these tables cannot be a problem's: what a step would read outside of its tensors. Pointers in `problem` are the host's. */
const char *tables_refuse(const struct problem *problem);

/* What one query row attends to: keys `first` to first + keys - 1 of its sequence, which are the rows from first_row on of K and V.
 * query and position: within the sequence; head: over the batch. */
struct sight {
    size_t head, first_row, keys;
    long long query, position, first;
    uint32_t sequence; /* of packed sequences, else 0 */
};
struct sight sight_of_query(const struct problem *problem, size_t row);
/* Query i of `head`, which reads head_kv of K and V, both over the batch. */
struct sight sight_within(const struct problem *problem, size_t batch, size_t head, size_t head_kv, long long i);
