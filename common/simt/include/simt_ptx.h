/* Inline PTX: what each instruction does, by its type. rewrite/ptx.c turns asm("add.s32 %0, %1, 4;" : "=r"(y) : "r"(x)) into
 *
 *     simt_ptx::into((y)) = simt_ptx::add_<simt_ptx::mods<>, simt_ptx::s32>(simt_ptx::get<simt_ptx::s32>((x)), ...)
 *
 * for what rewrite/ptx_table.c lists, and refuses the rest. M: the modifiers; T, U: the types, in the instruction's order. Where the
 * function has a place, that is the asm's, or of a function around one asm (common/device/ptx.cuh has such) that of its call. */
#pragma once

#include "simt_device.h"

#include <limits>

/* A table of functions, one below the other. */
/* clang-format off */
namespace simt_ptx {

/* ---- types ------------------------------------------------------------ */
typedef bool pred;
typedef uint8_t b8, u8;
typedef int8_t s8;
typedef uint16_t b16, u16;
typedef int16_t s16;
typedef uint32_t b32, u32;
typedef int32_t s32;
typedef unsigned long long b64, u64;
typedef long long s64;
typedef float f32;
typedef double f64;
enum tf32 : uint32_t {};
struct f16 { uint16_t bits; };
struct bf16 { uint16_t bits; };
template <class H> struct pair { H low, high; };
struct e4m3 { uint8_t bits; };
struct e5m2 { uint8_t bits; };
typedef pair<f16> f16x2;
typedef pair<e4m3> e4m3x2;
typedef pair<e5m2> e5m2x2;
typedef pair<bf16> bf16x2;
typedef pair<u16> u16x2;
typedef pair<s16> s16x2;

template <class A, class B> constexpr bool is = std::is_same_v<A, B>;
template <class T> constexpr bool is_pair = false;
template <class H> constexpr bool is_pair<pair<H>> = true;
template <class T> constexpr bool is_half = is<T, f16> || is<T, bf16>;
template <class T> constexpr bool is_fp8 = is<T, e4m3> || is<T, e5m2>;
template <class T> constexpr bool is_float = is<T, f32> || is<T, f64> || is_half<T>;
template <class T> struct twice { typedef void type; };
template <> struct twice<u16> { typedef u32 type; };
template <> struct twice<s16> { typedef s32 type; };
template <> struct twice<u32> { typedef u64 type; };
template <> struct twice<s32> { typedef s64 type; };
template <> struct twice<u64> { typedef unsigned __int128 type; };
template <> struct twice<s64> { typedef __int128 type; };
template <class T> using twice_t = typename twice<T>::type;

/* ---- modifiers ------------------------------------------------------------ */
enum modifier {
    m_rn, m_rz, m_rm, m_rp, m_rni, m_rzi, m_rmi, m_rpi, m_rna, m_ftz, m_sat, m_relu, m_satfinite, m_NaN, m_xorsign, m_approx,
    m_hi, m_lo, m_cc, m_wide, m_l, m_r, m_clamp, m_wrap, m_shiftamt, m_f4e, m_b4e, m_rc8, m_ecl, m_ecr, m_rc16,
    m_eq, m_ne, m_lt, m_le, m_gt, m_ge, m_ls, m_hs, m_equ, m_neu, m_ltu, m_leu, m_gtu, m_geu, m_num, m_nan,
    m_and, m_or, m_xor, m_add, m_min, m_max, m_inc, m_dec, m_exch, m_cas, m_popc, m_any, m_all, m_uni, m_ballot, m_up, m_down, m_bfly, m_idx,
    m_finite, m_infinite, m_number, m_notanumber, m_normal, m_subnormal, m_v2, m_v4, m_x1, m_x2, m_x4, m_trans,
    m_shared, m_shared__cta, m_shared__cluster, m_global, m_local, m_const, m_to, m_nc, m_cv, m_volatile, m_relaxed, m_acquire, m_release, m_cta, m_cluster,
    m_acq_rel, m_read, m_parity, m_noinc, m_m16n8k4, m_m16n8k8, m_m16n8k16, m_m16n8k32, m_m8n8k16
};
template <modifier... M> struct mods {
    static constexpr bool has(modifier m) { return ((M == m) || ...); }
    static constexpr bool is_shared = has(m_shared) || has(m_shared__cta) || has(m_shared__cluster);
};

/* ---- operands ------------------------------------------------------------ */
struct place { const char *file; int line; };
static inline place here(SIMT_HERE) { return {file, line}; }
struct sink {}; /* a result that nobody wants: _ */

template <size_t> struct bits_of;
template <> struct bits_of<1> { typedef uint8_t type; };
template <> struct bits_of<2> { typedef uint16_t type; };
template <> struct bits_of<4> { typedef uint32_t type; };
template <> struct bits_of<8> { typedef uint64_t type; };

template <class T, class A> static inline T get(A a) {
    if constexpr (std::is_pointer_v<A>) return simt::bit_cast<T>((typename bits_of<sizeof(T)>::type)(uintptr_t)a);
    else if constexpr (is<T, A>) return a;
    else if constexpr (sizeof(T) == sizeof(A) && !(std::is_floating_point_v<A> && std::is_floating_point_v<T>)) return simt::bit_cast<T>(a);
    else if constexpr (std::is_floating_point_v<A>) return (T)a; /* a number of the text */
    else return simt::bit_cast<T>((typename bits_of<sizeof(T)>::type)a);
}
template <class D, class T> static inline void put(D &d, T v) {
    if constexpr (!is<std::remove_const_t<D>, sink>) {
        if constexpr (sizeof(D) == sizeof(T)) d = simt::bit_cast<D>(v);
        else if constexpr (std::is_arithmetic_v<T>) d = simt::bit_cast<D>((typename bits_of<sizeof(D)>::type)v); /* its sign, too */
        else d = simt::bit_cast<D>((typename bits_of<sizeof(D)>::type)simt::bit_cast<typename bits_of<sizeof(T)>::type>(v));
    }
}
/* Several results of one kind, and the bits that a register has for several. */
template <class T, int N> struct values { T x[N]; };
template <class T> static inline T element(simt_registers v, int i) { return simt::bit_cast<T>(v.r[i]); }
template <class... D> struct results;
template <class D> struct results<D> {
    D &d;
    template <class T> void operator=(T v) const { put(d, v); }
    template <class T> void operator=(values<T, 1> v) const { put(d, v.x[0]); }
    void operator=(simt_registers v) const { put(d, v.r[0]); }
    void operator=(simt_floats v) const { put(d, v.x[0]); }
};
template <class A, class B> struct results<A, B> {
    A &a;
    B &b;
    template <class T> void operator=(values<T, 2> v) const { put(a, v.x[0]), put(b, v.x[1]); }
    void operator=(simt_registers v) const { put(a, v.r[0]), put(b, v.r[1]); }
    void operator=(uint32_t v) const { put(a, (uint16_t)v), put(b, (uint16_t)(v >> 16)); }
    void operator=(u64 v) const { put(a, (uint32_t)v), put(b, (uint32_t)(v >> 32)); }
};
template <class A, class B, class C, class D> struct results<A, B, C, D> {
    A &a;
    B &b;
    C &c;
    D &d;
    template <class V> void of(const V &v) const { put(a, v[0]), put(b, v[1]), put(c, v[2]), put(d, v[3]); }
    template <class T> void operator=(values<T, 4> v) const { of(v.x); }
    void operator=(simt_registers v) const { of(v.r); }
    void operator=(simt_floats v) const { of(v.x); }
    void operator=(u64 v) const { put(a, (uint16_t)v), put(b, (uint16_t)(v >> 16)), put(c, (uint16_t)(v >> 32)), put(d, (uint16_t)(v >> 48)); }
};
template <class... D> static inline results<D...> into(D &&...d) { return {d...}; }

template <class P> static inline size_t address(P p) {
    if constexpr (std::is_pointer_v<P>) return (size_t)p;
    else return (size_t)(typename bits_of<sizeof(P)>::type)p;
}
template <class M> static inline void *pointer(size_t a) {
    if constexpr (M::is_shared) return simt_shared_pointer(a);
    else return (void *)a;
}
/* Of instructions whose address is shared memory's, by a generic address, too: those are larger. */
static inline size_t shared_address(size_t a) { return a >> 32 != 0 ? simt_shared_address((const void *)a) : a; }

/* ---- floating point: numbers of 16 bits are computed wide, and rounded once ----------------------------------------------------- */
static inline double wide(double a) { return a; }
static inline double wide(f16 a) { return simt_half_to_float(a.bits); }
static inline double wide(bf16 a) { return simt_bfloat16_to_float(a.bits); }
template <class M> constexpr simt_rounding rounding = M::has(m_rz) || M::has(m_rzi) ? SIMT_TOWARD_ZERO : M::has(m_rm) || M::has(m_rmi)
    ? SIMT_DOWN : M::has(m_rp) || M::has(m_rpi) ? SIMT_UP : SIMT_NEAREST;
template <class M> constexpr bool is_directed = rounding<M> != SIMT_NEAREST;
template <class T> static inline T narrow(double x, simt_rounding mode = SIMT_NEAREST) {
    if constexpr (is<T, f16>) return {simt_half_from_double(x, mode)};
    else if constexpr (is<T, bf16>) return {simt_bfloat16_from_double(x, mode)};
    else if constexpr (is<T, f32>) return mode == SIMT_NEAREST ? (float)x : simt_rounded_float(SIMT_CONVERT, mode, x, 0, 0);
    else return x;
}
template <class M, class T> static inline T flush(T x) {
    if constexpr (M::has(m_ftz) && is<T, f32>) return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x;
    else if constexpr (M::has(m_ftz) && is<T, f16>) return (x.bits & 0x7c00) == 0 ? f16{(uint16_t)(x.bits & 0x8000)} : x;
    else return x;
}
template <class M, class T> static inline T finish(T x) {
    if constexpr (M::has(m_sat)) return !(wide(x) > 0) ? T{} : wide(x) > 1 ? narrow<T>(1.0) : flush<M>(x);
    else if constexpr (M::has(m_relu)) return wide(x) < 0 ? T{} : x;
    else return flush<M>(x);
}
/* Rounded to a whole number. */
template <class M> static inline double to_whole(double x) {
    return M::has(m_rzi) ? trunc(x) : M::has(m_rmi) ? floor(x) : M::has(m_rpi) ? ceil(x) : nearbyint(x);
}
/* Of both halves of a pair, one by one. */
template <class F, class P, class... R> static inline P each(F f, P a, R... r) { return {f(a.low, r.low...), f(a.high, r.high...)}; }
#define SIMT_PTX_PAIRS(f, ...)                                                                                                 \
    if constexpr (is_pair<T>) return each([](auto h, auto... more) { return f<M, decltype(h)>(h, more...); }, __VA_ARGS__);        \
    else

/* ---- arithmetic ------------------------------------------------------------ */
/* By floating point, a, b and c flushed, and the result finished; c has no meaning for most. */
template <class M, class T> static inline T compute(simt_operation operation, T a, T b, T c = T{}) {
    a = flush<M>(a), b = flush<M>(b), c = flush<M>(c);
    if constexpr (is<T, f32> && is_directed<M>) return finish<M>(simt_rounded_float(operation, rounding<M>, a, b, c));
    else if constexpr (is<T, f64> && is_directed<M>) return simt_rounded_double(operation, rounding<M>, a, b, c);
    else if constexpr (is<T, f32> || is<T, f64>)
        return finish<M>(T(operation == SIMT_SUM          ? a + b
                           : operation == SIMT_DIFFERENCE ? a - b
                           : operation == SIMT_PRODUCT    ? a * b
                           : operation == SIMT_QUOTIENT   ? a / b
                                                          : std::fma(a, b, c)));
    else return finish<M>(narrow<T>(operation == SIMT_SUM ? wide(a) + wide(b) : operation == SIMT_DIFFERENCE ? wide(a) - wide(b)
        : wide(a) * wide(b) + wide(c)));
}
template <class M, class T> static inline T whole(__int128 x) {
    const __int128 lowest = std::numeric_limits<T>::min(), highest = std::numeric_limits<T>::max();
    return M::has(m_sat) || M::has(m_clamp) ? (T)(x < lowest ? lowest : x > highest ? highest : x) : (T)x;
}
#define SIMT_PTX_SUM(name, operation, op)                                                                                      \
    template <class M, class T> static inline T name(T a, T b) {                                                               \
        SIMT_PTX_PAIRS(name, a, b)                                                                                             \
        if constexpr (is_float<T>) return compute<M>(operation, a, b);                                                         \
        else return M::has(m_sat) ? whole<M, T>((__int128)a op b) : (T)((u64)a op(u64) b);                                     \
    }
SIMT_PTX_SUM(add_, SIMT_SUM, +)
SIMT_PTX_SUM(sub_, SIMT_DIFFERENCE, -)
template <class M, class T> static inline auto mul_(T a, T b) {
    SIMT_PTX_PAIRS(mul_, a, b)
    if constexpr (is_half<T>) return compute<M, T>(SIMT_FUSED, a, b, narrow<T>(-0.0));
    else if constexpr (is_float<T>) return compute<M, T>(SIMT_PRODUCT, a, b);
    else if constexpr (M::has(m_wide)) return (twice_t<T>)((twice_t<T>)a * (twice_t<T>)b);
    else if constexpr (M::has(m_hi)) return (T)(((twice_t<T>)a * (twice_t<T>)b) >> 8 * sizeof(T));
    else return (T)((u64)a * (u64)b);
}
template <class M, class T> static inline T fma_(T a, T b, T c) {
    SIMT_PTX_PAIRS(fma_, a, b, c)
    return compute<M, T>(SIMT_FUSED, a, b, c);
}
template <class M, class T, class C> static inline C mad_(T a, T b, C c) {
    if constexpr (is_float<T>) return fma_<M, T>(a, b, c);
    else if constexpr (M::has(m_sat)) return whole<M, T>((__int128)mul_<M, T>(a, b) + c);
    else return (C)((u64)mul_<M, T>(a, b) + (u64)c);
}
template <class M, class T> static inline T div_(T a, T b) {
    if constexpr (is_float<T>) return compute<M>(SIMT_QUOTIENT, a, b);
    else return b == 0 ? (T)-1 : b == (T)-1 && T(-1) < T(0) ? (T)(0 - (u64)a) : (T)(a / b);
}
template <class M, class T> static inline T rem_(T a, T b) { return b == 0 ? a : b == (T)-1 && T(-1) < T(0) ? T(0) : (T)(a % b); }
/* The carry lives from one instruction to the next. */
template <class M, class T> static inline T carried(unsigned __int128 sum, unsigned &carry, bool is_difference) {
    if (M::has(m_cc)) carry = is_difference ? (unsigned)(sum >> 127) : (unsigned)(sum >> 8 * sizeof(T)) & 1;
    return (T)sum;
}
template <class T> using plain = std::make_unsigned_t<T>;
#define SIMT_PTX_CARRY(name, op, in, is_difference)                                                                            \
    template <class M, class T> static inline T name(T a, T b, unsigned &carry) {                                              \
        return carried<M, T>((unsigned __int128)(plain<T>)a op(plain<T>) b op(in), carry, is_difference);                      \
    }
SIMT_PTX_CARRY(add_, +, 0, false)
SIMT_PTX_CARRY(addc_, +, carry, false)
SIMT_PTX_CARRY(sub_, -, 0, true)
SIMT_PTX_CARRY(subc_, -, carry, true)
template <class M, class T> static inline T mad_(T a, T b, T c, unsigned &carry) {
    return carried<M, T>((unsigned __int128)(plain<T>)mul_<M, T>(a, b) + (plain<T>)c, carry, false);
}
template <class M, class T> static inline T madc_(T a, T b, T c, unsigned &carry) {
    return carried<M, T>((unsigned __int128)(plain<T>)mul_<M, T>(a, b) + (plain<T>)c + carry, carry, false);
}
/* Of 24 bits: the lower or the upper 32 of 48. */
template <class M, class T> static inline T mul24_(T a, T b) {
    s64 product = (s64)((T)((u32)a << 8) >> 8) * (s64)((T)((u32)b << 8) >> 8);
    return (T)(M::has(m_hi) ? product >> 16 : product);
}
template <class M, class T> static inline T mad24_(T a, T b, T c) { return (T)((u32)mul24_<M, T>(a, b) + (u32)c); }
template <class M, class T> static inline T sad_(T a, T b, T c) { return (T)((u64)c + (a < b ? (u64)b - (u64)a : (u64)a - (u64)b)); }
template <class M, class T> static inline T neg_(T a) {
    SIMT_PTX_PAIRS(neg_, a)
    if constexpr (is_half<T>) return flush<M>(T{(uint16_t)(a.bits ^ 0x8000)});
    else if constexpr (is_float<T>) return flush<M>(-a);
    else return (T)(0 - (u64)a);
}
template <class M, class T> static inline T abs_(T a) {
    SIMT_PTX_PAIRS(abs_, a)
    if constexpr (is_half<T>) return flush<M>(T{(uint16_t)(a.bits & 0x7fff)});
    else if constexpr (is_float<T>) return flush<M>(std::fabs(a));
    else return a < 0 ? (T)(0 - (u64)a) : a;
}
template <class T> static inline bool is_nan(T a) { return wide(a) != wide(a); }
template <class T> static inline T a_nan() {
    if constexpr (is_half<T>) return {0x7fff};
    else return simt::bit_cast<T>((typename bits_of<sizeof(T)>::type)(sizeof(T) == 4 ? 0x7fffffff : 0x7fffffffffffffff));
}
/* -0 is less than +0; a number is chosen before NaN. */
template <class M, class T> static inline T choose(T a, T b, bool least) {
    if constexpr (is_float<T>) {
        bool negative = std::signbit(wide(a)) != std::signbit(wide(b));
        a = flush<M>(a), b = flush<M>(b);
        if constexpr (M::has(m_xorsign)) a = abs_<mods<>, T>(a), b = abs_<mods<>, T>(b);
        T chosen = is_nan(a) ? b : is_nan(b) ? a : (wide(a) == wide(b) ? std::signbit(wide(a)) : wide(a) < wide(b)) == least ? a : b;
        if ((M::has(m_NaN) && (is_nan(a) || is_nan(b))) || is_nan(chosen)) return a_nan<T>();
        return M::has(m_xorsign) && negative ? neg_<mods<>, T>(chosen) : chosen;
    } else {
        T chosen = (a < b) == least ? a : b;
        return M::has(m_relu) && chosen < T(0) ? T(0) : chosen;
    }
}
template <class M, class T> static inline T min_(T a, T b) {
    SIMT_PTX_PAIRS(min_, a, b)
    return choose<M, T>(a, b, true);
}
template <class M, class T> static inline T max_(T a, T b) {
    SIMT_PTX_PAIRS(max_, a, b)
    return choose<M, T>(a, b, false);
}
template <class M, class T> static inline T copysign_(T a, T b) { return std::copysign(b, a); }
template <class M, class T> static inline pred testp_(T a) {
    return M::has(m_finite) ? std::isfinite(a) : M::has(m_infinite) ? std::isinf(a) : M::has(m_number) ? !std::isnan(a)
         : M::has(m_notanumber) ? std::isnan(a) : M::has(m_normal) ? std::isnormal(a) : std::isfinite(a) && !std::isnormal(a) && a != 0;
}

/* Approximations: the C library's accurate functions. Those of book kernels keep the shape that recorded counts have. */
template <class M, class T> static inline T rcp_(T a) {
    if constexpr (M::has(m_approx)) return T(1) / a;
    else return compute<M, T>(SIMT_QUOTIENT, 1, a);
}
template <class M, class T> static inline T sqrt_(T a) {
    if constexpr (is_directed<M> && is<T, f32>) return finish<M>(simt_rounded_float(SIMT_ROOT, rounding<M>, flush<M>(a), 0, 0));
    else if constexpr (is_directed<M>) return simt_rounded_double(SIMT_ROOT, rounding<M>, a, 0, 0);
    else return std::sqrt(flush<M>(a));
}
template <class M, class T> static inline T rsqrt_(T a) { return T(1) / std::sqrt(a); }
#define SIMT_PTX_FUNCTION(name, function)                                                                                      \
    template <class M, class T> static inline T name(T a) {                                                                    \
        SIMT_PTX_PAIRS(name, a)                                                                                                \
        if constexpr (is_half<T>) return narrow<T>(function(wide(a)));                                                         \
        else return function(a);                                                                                               \
    }
SIMT_PTX_FUNCTION(sin_, std::sin)
SIMT_PTX_FUNCTION(cos_, std::cos)
SIMT_PTX_FUNCTION(lg2_, std::log2)
SIMT_PTX_FUNCTION(tanh_, std::tanh)
template <class M, class T> static inline T ex2_(T a) {
    SIMT_PTX_PAIRS(ex2_, a)
    if constexpr (is_half<T>) return narrow<T>(exp2(wide(a)));
    else if constexpr (M::has(m_ftz)) return a < -126.0f ? 0.0f : exp2f(a);
    else return exp2f(a);
}

/* ---- bits ------------------------------------------------------------ */
template <class M, class T> static inline T and_(T a, T b) { return (T)(a & b); }
template <class M, class T> static inline T or_(T a, T b) { return (T)(a | b); }
template <class M, class T> static inline T xor_(T a, T b) { return (T)(a ^ b); }
template <class M, class T> static inline T not_(T a) {
    if constexpr (is<T, pred>) return !a;
    else return (T)~a;
}
template <class M, class T> static inline T cnot_(T a) { return a == 0; }
template <class M, class T> static inline T shl_(T a, u32 n) { return n >= 8 * sizeof(T) ? T(0) : (T)((u64)a << n); }
template <class M, class T> static inline T shr_(T a, u32 n) { return n < 8 * sizeof(T) ? (T)(a >> n) : a < T(0) ? (T)-1 : T(0); }
/* Of the 64 bits b, a, shifted. */
template <class M, class T> static inline u32 shf_(u32 a, u32 b, u32 n) {
    n = M::has(m_clamp) ? (n > 32 ? 32 : n) : n & 31;
    u64 both = (u64)b << 32 | a;
    return M::has(m_l) ? (u32)(both << n >> 32) : (u32)(both >> n);
}
template <class M, class T> static inline u32 popc_(T a) { return (u32)__builtin_popcountll(a); }
template <class M, class T> static inline u32 clz_(T a) { return a == 0 ? 8 * sizeof(T) : (u32)__builtin_clzll(a) - (64 - 8 * sizeof(T)); }
template <class M, class T> static inline T brev_(T a) { return (T)(__brevll(a) >> (64 - 8 * sizeof(T))); }
template <class M, class T> static inline u32 bfind_(T a) {
    plain<T> x = (plain<T>)(a < T(0) ? ~a : a);
    u32 at = x == 0 ? ~0u : 63 - (u32)__builtin_clzll(x);
    return M::has(m_shiftamt) && at != ~0u ? 8 * sizeof(T) - 1 - at : at;
}
template <class M, class T> static inline T bfe_(T a, u32 from, u32 bits) {
    constexpr u32 most = 8 * sizeof(T);
    from &= 255, bits &= 255;
    if (bits == 0) return 0;
    bool sign = T(-1) < T(0) && (a >> (from + bits - 1 < most ? from + bits - 1 : most - 1) & 1) != 0;
    unsigned __int128 filled = (sign ? ~(unsigned __int128)0 << most : 0) | (plain<T>)a;
    plain<T> x = (plain<T>)(from >= most ? (sign ? ~(plain<T>)0 : 0) : (plain<T>)(filled >> from));
    if (bits >= most) return (T)x;
    plain<T> mask = (plain<T>)(((u64)1 << bits) - 1);
    return (T)(sign ? x | ~mask : x & mask);
}
template <class M, class T> static inline T bfi_(T a, T into, u32 from, u32 bits) {
    from &= 255, bits &= 255;
    if (from >= 8 * sizeof(T)) return into;
    T mask = (T)((bits >= 8 * sizeof(T) ? ~(u64)0 : ((u64)1 << bits) - 1) << from);
    return (T)((into & ~mask) | ((T)((u64)a << from) & mask));
}
template <class M, class T> static inline T szext_(T a, u32 bits) {
    if (!M::has(m_clamp)) bits &= 31;
    if (bits >= 32) return a;
    if (bits == 0) return 0;
    return (T)((T)((u32)a << (32 - bits)) >> (32 - bits));
}
template <class M, class T> static inline u32 bmsk_(u32 from, u32 bits) {
    if (!M::has(m_clamp)) from &= 31, bits &= 31;
    u32 ones = bits > 31 ? ~0u : (1u << bits) - 1;
    return from > 31 ? 0 : ones << from;
}
/* The place of the n-th bit from `base` on that is set: upwards, for n < 0 downwards. */
template <class M, class T> static inline u32 fns_(u32 mask, u32 base, s32 n) {
    for (int at = (int)base, left = n < 0 ? -n : n; at >= 0 && at < 32; at += n < 0 ? -1 : 1)
        if ((mask >> at & 1) != 0 && (left == 0 || --left == 0)) return (u32)at;
    return ~0u;
}
template <class M, class T, class U> static inline u32 dp4a_(T a, U b, u32 c) {
    for (int i = 0; i < 32; i += 8) c += (u32)((T)((u32)a >> i << 24) >> 24) * (u32)((U)((u32)b >> i << 24) >> 24);
    return c;
}
template <class M, class T, class U> static inline u32 dp2a_(T a, U b, u32 c) {
    for (int i = 0; i < 2; i++) {
        u32 byte = (u32)b >> (8 * i + (M::has(m_hi) ? 16 : 0));
        c += (u32)((T)((u32)a >> 16 * i << 16) >> 16) * (u32)((U)(byte << 24) >> 24);
    }
    return c;
}
template <class M, class T> static inline u32 lop3_(u32 a, u32 b, u32 c, u32 table) {
    u32 result = 0;
    for (int i = 0; i < 8; i++)
        if ((table >> i & 1) != 0) result |= ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
    return result;
}
/* A selector's 8: the byte's sign in all its bits. */
template <class M, class T> static inline u32 prmt_(u32 a, u32 b, u32 selector) {
    u32 n = selector & 3;
    if constexpr (M::has(m_f4e)) selector = 0x3210 + n * 0x1111;
    else if constexpr (M::has(m_b4e)) selector = (5 + n) % 8 << 12 | (6 + n) % 8 << 8 | (7 + n) % 8 << 4 | n;
    else if constexpr (M::has(m_rc8)) selector = n * 0x1111;
    else if constexpr (M::has(m_ecl)) selector = 0x3000 | (n > 2 ? n : 2) << 8 | (n > 1 ? n : 1) << 4 | n;
    else if constexpr (M::has(m_ecr)) selector = n << 12 | (n < 2 ? n : 2) << 8 | (n < 1 ? n : 1) << 4;
    else if constexpr (M::has(m_rc16)) selector = n % 2 * 0x2222 + 0x1010;
    u32 result = __byte_perm(a, b, selector);
    if constexpr (!M::has(m_f4e) && !M::has(m_b4e) && !M::has(m_rc8) && !M::has(m_ecl) && !M::has(m_ecr) && !M::has(m_rc16))
        for (int i = 0; i < 32; i += 8)
            if ((selector >> i / 2 & 8) != 0) result = (result & ~(255u << i)) | ((result >> i & 128) != 0 ? 255u << i : 0);
    return result;
}

/* ---- comparisons ------------------------------------------------------------ */
template <class M, class T> static inline bool compare(T a, T b) {
    if constexpr (is_float<T>) {
        double x = wide(flush<M>(a)), y = wide(flush<M>(b));
        bool unordered = x != x || y != y;
        return M::has(m_eq) ? x == y : M::has(m_ne) ? x != y && !unordered : M::has(m_lt) ? x < y : M::has(m_le) ? x <= y : M::has(m_gt) ? x > y
             : M::has(m_ge) ? x >= y : M::has(m_num) ? !unordered : M::has(m_nan) ? unordered
             : unordered || (M::has(m_equ) ? x == y : M::has(m_neu) ? x != y : M::has(m_ltu) ? x < y : M::has(m_leu) ? x <= y : M::has(m_gtu)
                 ? x > y : x >= y);
    } else {
        return M::has(m_eq) ? a == b : M::has(m_ne) ? a != b : M::has(m_lt) || M::has(m_lo) ? a < b : M::has(m_le) || M::has(m_ls) ? a <= b
             : M::has(m_gt) || M::has(m_hi) ? a > b : a >= b;
    }
}
template <class M> static inline bool combine(bool a, bool b) { return M::has(m_and) ? a && b : M::has(m_or) ? a || b : M::has(m_xor) ? a != b : a; }
template <class M, class T, class P, class Q> static inline void setp_(P &&p, Q &&q, T a, T b, pred c = true) {
    bool other;
    if constexpr (is_pair<T>) put(p, compare<M>(a.low, b.low)), other = compare<M>(a.high, b.high);
    else {
        bool result = compare<M>(a, b);
        put(p, combine<M>(result, c)), other = combine<M>(!result, c);
    }
    put(q, other);
}
template <class M, class D, class T> static inline D set_(T a, T b) {
    if constexpr (is_pair<T>) return each([](auto x, auto y) { return narrow<decltype(x)>(compare<M>(x, y)); }, a, b);
    else return compare<M>(a, b) ? is<D, f32> ? D(1) : (D)-1 : D(0);
}
template <class M, class T> static inline T selp_(T a, T b, pred p) { return p ? a : b; }
template <class M, class T, class U> static inline T slct_(T a, T b, U c) { return flush<M>(c) >= U(0) ? a : b; }

/* ---- moves and conversions ------------------------------------------------------------ */
template <class M, class T> static inline T mov_(T a) { return a; }
template <class M, class T, class... E> static inline T mov_pack_(E... e) {
    u64 bits = 0, at = 0;
    ((bits |= (u64)e << at, at += 8 * sizeof e), ...);
    return (T)bits;
}
template <class M, class D, class T> static inline D cvt_(T a) {
    if constexpr (is_fp8<D>) { /* to nearest even, and saturating */
        double x = wide(a);
        return {x != x ? (uint8_t)0x7f : simt_fp8_from_double(M::has(m_relu) && x < 0 ? 0.0 : x, is<D, e5m2>, true)};
    } else if constexpr (is<D, tf32>) { /* 10 bits of fraction stay */
        u32 bits = simt::bit_cast<u32>(finish<M>(a)), half = M::has(m_rna) ? 0x1000 : M::has(m_rn) ? 0xfff + (bits >> 13 & 1) : 0;
        return (D)((bits & 0x7f800000) == 0x7f800000 ? bits : (bits + half) & ~0x1fffu);
    } else if constexpr (is_float<T> && is_float<D>) {
        double x = wide(flush<M>(a));
        if (M::has(m_rni) || M::has(m_rzi) || M::has(m_rmi) || M::has(m_rpi)) x = to_whole<M>(x);
        if (x != x) return M::has(m_sat) ? D{} : a_nan<D>();
        return finish<M>(narrow<D>(x, rounding<M>));
    } else if constexpr (is_float<T>) {
        return simt::saturate<D>(to_whole<M>(wide(flush<M>(a))));
    } else if constexpr (is<D, f32> || is<D, f64>) {
        if constexpr (!is_directed<M>) return finish<M>((D)a);
        else if constexpr (is<D, f32>) return finish<M>(simt_rounded_float(SIMT_CONVERT, rounding<M>, a, 0, 0));
        else return finish<M>(simt_rounded_double(SIMT_CONVERT, rounding<M>, a, 0, 0));
    } else if constexpr (is_float<D>) {
        return finish<M>(narrow<D>((double)a, rounding<M>));
    } else {
        return whole<M, D>((__int128)a);
    }
}
/* Of a pair, the first operand is the upper half. */
template <class M, class D, class T> static inline D cvt_(T upper, T lower) {
    return {cvt_<M, decltype(D::low)>(lower), cvt_<M, decltype(D::low)>(upper)};
}

/* Of pairs between fp16 and 8 bits. */
template <class M, class H, class T> static inline H of_fp8(T x) {
    return finish<M>(narrow<H>((double)simt_fp8_to_float(x.bits, is<T, e5m2>)));
}
template <class M, class D, class T> static inline D cvt_fp8_(T a) {
    if constexpr (is<T, f16x2>) return {cvt_<M, decltype(D::low)>(a.low), cvt_<M, decltype(D::low)>(a.high)};
    else return {of_fp8<M, f16>(a.low), of_fp8<M, f16>(a.high)};
}

#include "simt_ptx_memory.h"
#include "simt_hopper.h"
} // namespace simt_ptx
