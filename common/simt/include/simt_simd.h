/* Integers of 8 and 16 bits that lie side by side in 32, and the functions of three operands that CUDA calls DPX. A part of
 * simt_device.h. */
#pragma once

namespace simt {
/* One by one: f takes the numbers as int, and of its result the lower bits are kept. */
template <typename _T, typename _F, typename... _R> static inline unsigned of_each(_F f, _R... operands) {
    unsigned result = 0;
    for (unsigned bit = 0; bit < 32; bit += 8 * sizeof(_T))
        result |= (unsigned)(std::make_unsigned_t<_T>)f((int)(_T)(operands >> bit)...) << bit;
    return result;
}
template <typename _T> static inline int within(int x) {
    const int lowest = _T(-1) < _T(0) ? -(1 << (8 * sizeof(_T) - 1)) : 0, highest = lowest + (1 << 8 * sizeof(_T)) - 1;
    return x < lowest ? lowest : x > highest ? highest : x;
}
} // namespace simt

/* NAME2 of 16 bits and NAME4 of 8: the result for the operands a, or a and b. */
#define SIMT_SIMD_OF(name, type, expression)                                                                                   \
    static inline unsigned name(unsigned first) {                                                                              \
        using _T [[maybe_unused]] = type;                                                                                      \
        return simt::of_each<_T>([](int a) { return expression; }, first);                                                     \
    }
#define SIMT_SIMD_OF_TWO(name, type, expression)                                                                               \
    static inline unsigned name(unsigned first, unsigned second) {                                                             \
        using _T [[maybe_unused]] = type;                                                                                      \
        return simt::of_each<_T>([](int a, int b) { return expression; }, first, second);                                      \
    }
#define SIMT_SIMD_SIGNED(of, name, expression) of(name##2, int16_t, expression) of(name##4, int8_t, expression)
#define SIMT_SIMD_UNSIGNED(of, name, expression) of(name##2, uint16_t, expression) of(name##4, uint8_t, expression)
SIMT_SIMD_SIGNED(SIMT_SIMD_OF, __vabs, a < 0 ? -a : a)
SIMT_SIMD_SIGNED(SIMT_SIMD_OF, __vabsss, simt::within<_T>(a < 0 ? -a : a))
SIMT_SIMD_SIGNED(SIMT_SIMD_OF, __vneg, -a)
SIMT_SIMD_SIGNED(SIMT_SIMD_OF, __vnegss, simt::within<_T>(-a))
SIMT_SIMD_UNSIGNED(SIMT_SIMD_OF_TWO, __vadd, a + b)
SIMT_SIMD_SIGNED(SIMT_SIMD_OF_TWO, __vaddss, simt::within<_T>(a + b))
SIMT_SIMD_UNSIGNED(SIMT_SIMD_OF_TWO, __vaddus, simt::within<_T>(a + b))
SIMT_SIMD_UNSIGNED(SIMT_SIMD_OF_TWO, __vsub, a - b)
SIMT_SIMD_SIGNED(SIMT_SIMD_OF_TWO, __vsubss, simt::within<_T>(a - b))
SIMT_SIMD_UNSIGNED(SIMT_SIMD_OF_TWO, __vsubus, simt::within<_T>(a - b))
SIMT_SIMD_SIGNED(SIMT_SIMD_OF_TWO, __vabsdiffs, a < b ? b - a : a - b)
SIMT_SIMD_UNSIGNED(SIMT_SIMD_OF_TWO, __vabsdiffu, a < b ? b - a : a - b)
SIMT_SIMD_SIGNED(SIMT_SIMD_OF_TWO, __vavgs, (a + b + (a + b >= 0)) >> 1) /* half away from 0 */
SIMT_SIMD_UNSIGNED(SIMT_SIMD_OF_TWO, __vavgu, (a + b + 1) >> 1)
SIMT_SIMD_UNSIGNED(SIMT_SIMD_OF_TWO, __vhaddu, (a + b) >> 1)
SIMT_SIMD_SIGNED(SIMT_SIMD_OF_TWO, __vmaxs, a < b ? b : a)
SIMT_SIMD_UNSIGNED(SIMT_SIMD_OF_TWO, __vmaxu, a < b ? b : a)
SIMT_SIMD_SIGNED(SIMT_SIMD_OF_TWO, __vmins, a < b ? a : b)
SIMT_SIMD_UNSIGNED(SIMT_SIMD_OF_TWO, __vminu, a < b ? a : b)
/* cmp: all bits of what compares so; set: 1. */
#define SIMT_SIMD_COMPARE(compare, signedness, op)                                                                             \
    SIMT_SIMD_##signedness(SIMT_SIMD_OF_TWO, __vcmp##compare, -(a op b))                                                       \
        SIMT_SIMD_##signedness(SIMT_SIMD_OF_TWO, __vset##compare, a op b)
SIMT_SIMD_COMPARE(eq, UNSIGNED, ==)
SIMT_SIMD_COMPARE(ne, UNSIGNED, !=)
SIMT_SIMD_COMPARE(ges, SIGNED, >=)
SIMT_SIMD_COMPARE(geu, UNSIGNED, >=)
SIMT_SIMD_COMPARE(gts, SIGNED, >)
SIMT_SIMD_COMPARE(gtu, UNSIGNED, >)
SIMT_SIMD_COMPARE(les, SIGNED, <=)
SIMT_SIMD_COMPARE(leu, UNSIGNED, <=)
SIMT_SIMD_COMPARE(lts, SIGNED, <)
SIMT_SIMD_COMPARE(ltu, UNSIGNED, <)
/* The sum of the differences. */
#define SIMT_SIMD_SUM(name, type)                                                                                              \
    static inline unsigned name(unsigned a, unsigned b) {                                                                      \
        unsigned sum = 0;                                                                                                      \
        for (unsigned bit = 0; bit < 32; bit += 8 * sizeof(type))                                                              \
            sum += (unsigned)::abs((int)(type)(a >> bit) - (int)(type)(b >> bit));                                             \
        return sum;                                                                                                            \
    }
SIMT_SIMD_SUM(__vsads2, int16_t)
SIMT_SIMD_SUM(__vsads4, int8_t)
SIMT_SIMD_SUM(__vsadu2, uint16_t)
SIMT_SIMD_SUM(__vsadu4, uint8_t)

/* ---- DPX: numbers of 32 bits, and two of 16; relu: at least 0. A sum wraps. ---- */
#define SIMT_DPX_WORD(name, suffix, type, op, low)                                                                             \
    static inline type __viadd##name##_##suffix(type a, type b, type c) {                                                      \
        type sum = (type)((unsigned)a + (unsigned)b), best = sum op c ? sum : c;                                               \
        return best < low ? low : best;                                                                                        \
    }                                                                                                                          \
    static inline type __vi##name##3_##suffix(type a, type b, type c) {                                                        \
        type best = a op b ? a : b;                                                                                            \
        best = best op c ? best : c;                                                                                           \
        return best < low ? low : best;                                                                                        \
    }
#define SIMT_DPX_PAIR(name, suffix, type, op, low)                                                                             \
    static inline unsigned __viadd##name##_##suffix(unsigned a, unsigned b, unsigned c) {                                      \
        return simt::of_each<type>([](int x, int y, int z) { return std::max((type)(x + y) op z ? (type)(x + y) : z, low); },  \
                                   a, b, c);                                                                                   \
    }                                                                                                                          \
    static inline unsigned __vi##name##3_##suffix(unsigned a, unsigned b, unsigned c) {                                        \
        return simt::of_each<type>(                                                                                            \
            [](int x, int y, int z) {                                                                                          \
                int best = x op y ? x : y;                                                                                     \
                return std::max(best op z ? best : z, low);                                                                    \
            },                                                                                                                 \
            a, b, c);                                                                                                          \
    }
/* Of two; the predicate says whether the first one is it (of equal ones, too). */
#define SIMT_DPX_CHOICE(name, op)                                                                                              \
    static inline int __vib##name##_s32(int a, int b, bool *first) { return (*first = a op## = b) ? a : b; }                   \
    static inline unsigned __vib##name##_u32(unsigned a, unsigned b, bool *first) { return (*first = a op## = b) ? a : b; }    \
    SIMT_DPX_CHOICES(name, s16x2, int16_t, op) SIMT_DPX_CHOICES(name, u16x2, uint16_t, op)
#define SIMT_DPX_CHOICES(name, suffix, type, op)                                                                               \
    static inline unsigned __vib##name##_##suffix(unsigned a, unsigned b, bool *high, bool *low) {                             \
        *high = (type)(a >> 16) op## = (type)(b >> 16), *low = (type)a op## = (type)b;                                         \
        return ((*high ? a : b) & 0xffff0000) | ((*low ? a : b) & 0xffff);                                                     \
    }
/* clang-format off */
#define SIMT_DPX(name, op)                                                                                                     \
    SIMT_DPX_WORD(name, s32, int, op, INT_MIN)                                                                                 \
    SIMT_DPX_WORD(name, s32_relu, int, op, 0)                                                                                  \
    SIMT_DPX_WORD(name, u32, unsigned, op, 0u)                                                                                 \
    SIMT_DPX_PAIR(name, s16x2, int16_t, op, INT_MIN)                                                                           \
    SIMT_DPX_PAIR(name, s16x2_relu, int16_t, op, 0)                                                                            \
    SIMT_DPX_PAIR(name, u16x2, uint16_t, op, 0)                                                                                \
    SIMT_DPX_CHOICE(name, op)                                                                                                  \
    static inline int __vi##name##_s32_relu(int a, int b) { return __vi##name##3_s32_relu(a, a, b); }                          \
    static inline unsigned __vi##name##_s16x2_relu(unsigned a, unsigned b) { return __vi##name##3_s16x2_relu(a, a, b); }
/* clang-format on */
SIMT_DPX(max, >)
SIMT_DPX(min, <)
