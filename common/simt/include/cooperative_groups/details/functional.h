#pragma once

namespace cooperative_groups {
// clang-format off
template <typename T = void> struct plus { T operator()(T a, T b) const { return a + b; } };
template <typename T = void> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <typename T = void> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <typename T = void> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <typename T = void> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <typename T = void> struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };
// clang-format on

} // namespace cooperative_groups
