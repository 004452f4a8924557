#pragma once
#include "../cooperative_groups.h"

namespace cooperative_groups {
/* The group copies, each thread its share, and waits: until all of it is there, or all but the last GROUPS copies. */
template <typename Group> static inline void memcpy_async(const Group &group, void *to, const void *from, size_t bytes) {
    simt::copy_share(to, from, bytes, group.thread_rank(), group.size());
    simt_async_commit();
}
template <unsigned _GROUPS, typename Group> static inline void wait_prior(const Group &group, SIMT_HERE) {
    simt_async_wait(_GROUPS, file, line);
    group.sync(file, line);
}
template <typename Group> static inline void wait(const Group &group, SIMT_HERE) { wait_prior<0>(group, file, line); }
} // namespace cooperative_groups
