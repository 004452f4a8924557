/* The toolkit's mbarriers for C: __mbarrier_t in shared memory. */
#pragma once

#include "cuda_runtime.h"

typedef uint64_t __mbarrier_t;
typedef unsigned __mbarrier_token_t;

static inline void __mbarrier_init(__mbarrier_t *barrier, uint32_t expected) { simt_mbarrier_init(barrier, expected); }
static inline void __mbarrier_inval(__mbarrier_t *) {}
static inline __mbarrier_token_t __mbarrier_arrive(__mbarrier_t *barrier, SIMT_HERE) {
    return simt_mbarrier_arrive(barrier, 1, 0, "__mbarrier_arrive()", file, line);
}
static inline __mbarrier_token_t __mbarrier_arrive_and_drop(__mbarrier_t *barrier, SIMT_HERE) {
    return simt_mbarrier_arrive(barrier, 1, 1, "__mbarrier_arrive_and_drop()", file, line);
}
static inline bool __mbarrier_test_wait(__mbarrier_t *barrier, __mbarrier_token_t phase) {
    return simt_mbarrier_test(barrier, phase) != 0;
}
/* Is the phase whose number is odd (parity true) or even over? */
static inline bool __mbarrier_test_wait_parity(__mbarrier_t *barrier, bool parity) {
    return simt_mbarrier_test(barrier, simt_mbarrier_phase(barrier, parity)) != 0;
}
static inline uint32_t __mbarrier_maximum_count() { return (1 << 20) - 1; }
