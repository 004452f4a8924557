/* The 8 bytes of an mbarrier: mbarrier.c has those of cuda::barrier, transaction.c those that PTX names. */
#pragma once

#include "collectives.h"
#include "shadow.h"

struct mbarrier {
    uint64_t expected : 20, pending : 20, phase : 24;
};
enum { MOST_ARRIVALS = (1 << 20) - 1, PHASE_BITS = 24 };

static inline bool mbarrier_is_over(const struct mbarrier *barrier, unsigned phase) {
    return ((barrier->phase - phase) & ((1u << PHASE_BITS) - 1)) - 1 < 1u << (PHASE_BITS - 1);
}
/* The barrier, if it can be one; the access is judged. */
struct mbarrier *mbarrier_check(void *address, enum access_kind kind, const char *what, const void *pc);
void mbarrier_init(void *address, unsigned expected, const void *pc);
