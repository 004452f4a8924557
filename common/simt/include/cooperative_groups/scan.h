#pragma once
#include "reduce.h"

namespace cooperative_groups {
template <typename Group, typename T, typename F>
static inline T inclusive_scan(const Group &group, T value, F operation, SIMT_HERE) {
    T sum = value;
    for (unsigned delta = 1; delta < group.size(); delta *= 2) {
        T below = group.shfl_up(sum, delta, file, line);
        if (group.thread_rank() >= delta) sum = operation(below, sum);
    }
    return sum;
}
template <typename Group, typename T> static inline T inclusive_scan(const Group &group, T value, SIMT_HERE) {
    return inclusive_scan(group, value, plus<T>(), file, line);
}
template <typename Group, typename T, typename F>
static inline T exclusive_scan(const Group &group, T value, F operation, SIMT_HERE) {
    T below = group.shfl_up(inclusive_scan(group, value, operation, file, line), 1, file, line);
    return group.thread_rank() == 0 ? T() : below;
}
template <typename Group, typename T> static inline T exclusive_scan(const Group &group, T value, SIMT_HERE) {
    return exclusive_scan(group, value, plus<T>(), file, line);
}
} // namespace cooperative_groups
