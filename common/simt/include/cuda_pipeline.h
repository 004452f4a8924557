/* The toolkit's pipeline primitives, which are cp.async where a card has it and plain copies where it has not. */
#pragma once

#include "simt_abi.h"

static inline void __pipeline_memcpy_async(void *to_shared, const void *from_global, size_t bytes, size_t zero_bytes = 0) {
    simt_async_copy(to_shared, from_global, bytes, zero_bytes);
}
static inline void __pipeline_commit() { simt_async_commit(); }
static inline void __pipeline_wait_prior(size_t groups, const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    simt_async_wait((unsigned)groups, file, line);
}
