#pragma once
#include "../cooperative_groups.h"
#include "details/functional.h"

namespace cooperative_groups {
template <typename Group, typename T, typename F> static inline T reduce(const Group &group, T value, F operation, SIMT_HERE) {
    T result = group.shfl(value, 0, file, line);
    for (unsigned rank = 1; rank < group.size(); rank++) result = operation(result, group.shfl(value, (int)rank, file, line));
    return result;
}
} // namespace cooperative_groups
