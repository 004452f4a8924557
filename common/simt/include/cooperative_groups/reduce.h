#pragma once
#include "../cooperative_groups.h"

namespace cooperative_groups {
// clang-format off
template <typename _T = void> struct plus { _T operator()(_T a, _T b) const { return a + b; } };
template <typename _T = void> struct less { _T operator()(_T a, _T b) const { return b < a ? b : a; } };
template <typename _T = void> struct greater { _T operator()(_T a, _T b) const { return a < b ? b : a; } };
template <typename _T = void> struct bit_and { _T operator()(_T a, _T b) const { return a & b; } };
template <typename _T = void> struct bit_or { _T operator()(_T a, _T b) const { return a | b; } };
template <typename _T = void> struct bit_xor { _T operator()(_T a, _T b) const { return a ^ b; } };
// clang-format on

template <typename Group, typename _T, typename _F>
static inline _T reduce(const Group &group, _T value, _F operation, SIMT_HERE) {
    _T result = group.shfl(value, 0, file, line);
    for (unsigned rank = 1; rank < group.size(); rank++) result = operation(result, group.shfl(value, (int)rank, file, line));
    return result;
}
} // namespace cooperative_groups
