/* Shuffles and votes without a mask, as before CUDA 9: of the lanes that are here. */
#pragma once
#include "simt_device.h"

#define SIMT_OLD_SHUFFLE(suffix, type)                                                                                         \
    template <typename _T> static inline _T __shfl##suffix(_T value, type by, int width = 32, SIMT_HERE) {                     \
        return __shfl##suffix##_sync(simt_active_mask(file, line), value, by, width, file, line);                              \
    }
SIMT_OLD_SHUFFLE(, int)
SIMT_OLD_SHUFFLE(_up, unsigned)
SIMT_OLD_SHUFFLE(_down, unsigned)
SIMT_OLD_SHUFFLE(_xor, int)
static inline unsigned __ballot(int predicate, SIMT_HERE) {
    return __ballot_sync(simt_active_mask(file, line), predicate, file, line);
}
static inline int __any(int predicate, SIMT_HERE) { return __any_sync(simt_active_mask(file, line), predicate, file, line); }
static inline int __all(int predicate, SIMT_HERE) { return __all_sync(simt_active_mask(file, line), predicate, file, line); }
