#pragma once
#include "reduce.h"

namespace cooperative_groups {
template <typename Group, typename _T, typename _F>
static inline _T inclusive_scan(const Group &group, _T value, _F operation, SIMT_HERE) {
    _T sum = value;
    for (unsigned delta = 1; delta < group.size(); delta *= 2) {
        _T below = group.shfl_up(sum, delta, file, line);
        if (group.thread_rank() >= delta) sum = operation(below, sum);
    }
    return sum;
}
template <typename Group, typename _T> static inline _T inclusive_scan(const Group &group, _T value, SIMT_HERE) {
    return inclusive_scan(group, value, plus<_T>(), file, line);
}
template <typename Group, typename _T, typename _F>
static inline _T exclusive_scan(const Group &group, _T value, _F operation, SIMT_HERE) {
    _T below = group.shfl_up(inclusive_scan(group, value, operation, file, line), 1, file, line);
    return group.thread_rank() == 0 ? _T() : below;
}
template <typename Group, typename _T> static inline _T exclusive_scan(const Group &group, _T value, SIMT_HERE) {
    return exclusive_scan(group, value, plus<_T>(), file, line);
}
} // namespace cooperative_groups
