/* CUDA's vector types, dim3, and make_TYPE(). Copies go through a compiler vector where a card moves the type at once, so that
 * a float4 moved to or from memory is one 16-byte access here too; as a plain struct g++ would split it into four. */
#pragma once

#include "simt_abi.h"

#ifdef __cplusplus
namespace simt {
template <int _BYTES> struct vector_bits;
template <> struct vector_bits<2> { typedef unsigned short type __attribute__((may_alias)); };
template <> struct vector_bits<4> { typedef unsigned type __attribute__((may_alias)); };
template <> struct vector_bits<8> { typedef float type __attribute__((vector_size(8), may_alias)); };
template <> struct vector_bits<16> { typedef float type __attribute__((vector_size(16), may_alias)); };
} // namespace simt

#define SIMT_COPIED_AT_ONCE(name, bytes)                                                                                       \
    typedef simt::vector_bits<bytes>::type simt_bits;                                                                          \
    name() = default;                                                                                                          \
    name(const name &other) { *(simt_bits *)this = *(const simt_bits *)&other; }                                               \
    name &operator=(const name &other) {                                                                                       \
        *(simt_bits *)this = *(const simt_bits *)&other;                                                                       \
        return *this;                                                                                                          \
    }
#define SIMT_VECTOR2(name, element, bytes)                                                                                     \
    struct alignas(bytes) name {                                                                                               \
        element x, y;                                                                                                          \
        SIMT_COPIED_AT_ONCE(name, bytes)                                                                                       \
        constexpr name(element x_, element y_ = 0) : x(x_), y(y_) {}                                                           \
    };                                                                                                                         \
    static inline name make_##name(element x, element y) { return name(x, y); }
#define SIMT_VECTOR4(name, element, bytes)                                                                                     \
    struct alignas(bytes) name {                                                                                               \
        element x, y, z, w;                                                                                                    \
        SIMT_COPIED_AT_ONCE(name, bytes)                                                                                       \
        constexpr name(element x_, element y_ = 0, element z_ = 0, element w_ = 0) : x(x_), y(y_), z(z_), w(w_) {}             \
    };                                                                                                                         \
    static inline name make_##name(element x, element y, element z, element w) { return name(x, y, z, w); }
/* Those that a card moves in parts. */
#define SIMT_VECTOR1(name, element)                                                                                            \
    struct name {                                                                                                              \
        element x;                                                                                                             \
    };                                                                                                                         \
    static inline name make_##name(element x) { return {x}; }
#define SIMT_VECTOR3(name, element)                                                                                            \
    struct name {                                                                                                              \
        element x, y, z;                                                                                                       \
    };                                                                                                                         \
    static inline name make_##name(element x, element y, element z) { return {x, y, z}; }
#define SIMT_VECTOR_OF_TWO(name, element, half)                                                                                \
    struct alignas(16) name {                                                                                                  \
        element x, y, z, w;                                                                                                    \
    };                                                                                                                         \
    static inline name make_##name(element x, element y, element z, element w) { return {x, y, z, w}; }

#define SIMT_VECTORS(prefix, element, bytes)                                                                                   \
    SIMT_VECTOR1(prefix##1, element)                                                                                           \
    SIMT_VECTOR2(prefix##2, element, 2 * bytes)                                                                                \
    SIMT_VECTOR3(prefix##3, element)                                                                                           \
    SIMT_VECTOR4(prefix##4, element, 4 * bytes)
#define SIMT_WIDE_VECTORS(prefix, element)                                                                                     \
    SIMT_VECTOR1(prefix##1, element)                                                                                           \
    SIMT_VECTOR2(prefix##2, element, 16)                                                                                       \
    SIMT_VECTOR3(prefix##3, element)                                                                                           \
    SIMT_VECTOR_OF_TWO(prefix##4, element, prefix##2)
SIMT_VECTORS(char, signed char, 1)
SIMT_VECTORS(uchar, unsigned char, 1)
SIMT_VECTORS(short, short, 2)
SIMT_VECTORS(ushort, unsigned short, 2)
SIMT_VECTORS(int, int, 4)
SIMT_VECTORS(float, float, 4)
SIMT_VECTOR1(uint1, unsigned)
SIMT_VECTOR2(uint2, unsigned, 8)
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
SIMT_VECTOR4(uint4, unsigned, 16)
SIMT_WIDE_VECTORS(long, long)
SIMT_WIDE_VECTORS(ulong, unsigned long)
SIMT_WIDE_VECTORS(longlong, long long)
SIMT_WIDE_VECTORS(ulonglong, unsigned long long)
SIMT_WIDE_VECTORS(double, double)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 u) : x(u.x), y(u.y), z(u.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};
#else
typedef struct uint3 uint3;
typedef struct dim3 {
    unsigned x, y, z;
} dim3;
#endif
