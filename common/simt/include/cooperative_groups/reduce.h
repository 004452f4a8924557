#pragma once
#include "../cooperative_groups.h"

namespace cooperative_groups {
// clang-format off
template <typename T = void> struct plus { T operator()(T a, T b) const { return a + b; } };
template <typename T = void> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <typename T = void> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <typename T = void> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <typename T = void> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <typename T = void> struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };
// clang-format on

template <typename Group, typename T, typename F> static inline T reduce(const Group &group, T value, F operation, SIMT_HERE) {
    T result = group.shfl(value, 0, file, line);
    for (unsigned rank = 1; rank < group.size(); rank++) result = operation(result, group.shfl(value, (int)rank, file, line));
    return result;
}
} // namespace cooperative_groups
