/* The device side of CUDA C++ for the simulated device: keywords, built-in variables, vector types, barriers, warp
 * intrinsics, atomics, and launch(), into which the build rewrites kernel<<<...>>>(...) (rewrite.c).
 *
 * A kernel file is compiled by g++ with -fsanitize=thread, so that every access to memory calls a hook (hooks/).
 * Whatever here is not an access of the kernel's own must therefore stay out of sight: it lives in the runtime, which is
 * compiled without that flag, or passes values in registers.
 */
#ifndef SIMT_DEVICE_H
#define SIMT_DEVICE_H

#include "simt_abi.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#ifndef __CUDACC__ /* a C++ file that does not pass through rewrite.c, which reads these words */
#define __global__
#define __device__
#define __host__
#define __constant__
#endif
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

/* ---- vector types -------------------------------------------------------------------------------------------------
 * Copies go through a compiler vector, so that a float4 moved to or from memory is one 16-byte access here as it is on
 * a card; as a plain struct g++ would split it into four. */
#define SIMT_VECTOR2(name, type, bytes)                                                                                \
    struct alignas(bytes) name {                                                                                       \
        type x, y;                                                                                                     \
        typedef type simt_bits __attribute__((vector_size(bytes), may_alias));                                         \
        name() = default;                                                                                              \
        constexpr name(type x_, type y_) : x(x_), y(y_) {}                                                             \
        name(const name &other) { *(simt_bits *)this = *(const simt_bits *)&other; }                                   \
        name &operator=(const name &other) {                                                                           \
            *(simt_bits *)this = *(const simt_bits *)&other;                                                           \
            return *this;                                                                                              \
        }                                                                                                              \
    };                                                                                                                 \
    static inline name make_##name(type x, type y) { return name(x, y); }
#define SIMT_VECTOR4(name, type, bytes)                                                                                \
    struct alignas(bytes) name {                                                                                       \
        type x, y, z, w;                                                                                               \
        typedef type simt_bits __attribute__((vector_size(bytes), may_alias));                                         \
        name() = default;                                                                                              \
        constexpr name(type x_, type y_, type z_, type w_) : x(x_), y(y_), z(z_), w(w_) {}                             \
        name(const name &other) { *(simt_bits *)this = *(const simt_bits *)&other; }                                   \
        name &operator=(const name &other) {                                                                           \
            *(simt_bits *)this = *(const simt_bits *)&other;                                                           \
            return *this;                                                                                              \
        }                                                                                                              \
    };                                                                                                                 \
    static inline name make_##name(type x, type y, type z, type w) { return name(x, y, z, w); }

SIMT_VECTOR2(float2, float, 8)
SIMT_VECTOR4(float4, float, 16)
SIMT_VECTOR2(int2, int, 8)
SIMT_VECTOR4(int4, int, 16)
SIMT_VECTOR2(uint2, unsigned, 8)
SIMT_VECTOR4(uint4, unsigned, 16)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 u) : x(u.x), y(u.y), z(u.z) {}
};

/* The scheduler sets them when it resumes a thread. Constants, so that g++ puts no hook before their reads; of a plain
 * struct's type, since g++ hooks reads of constants whose type has constructors. */
extern "C" {
extern const __thread uint3 threadIdx, blockIdx, blockDim, gridDim;
}
static constexpr int warpSize = 32;

#define SIMT_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

/* ---- barriers and votes over a block ------------------------------------------------------------------------------- */
static inline void __syncthreads(SIMT_HERE) { simt_block_barrier("__syncthreads()", 0, file, line); }
static inline int __syncthreads_count(int predicate, SIMT_HERE) {
    return simt_block_barrier("__syncthreads_count()", predicate != 0, file, line);
}
static inline int __syncthreads_or(int predicate, SIMT_HERE) {
    return simt_block_barrier("__syncthreads_or()", predicate != 0, file, line) != 0;
}
static inline int __syncthreads_and(int predicate, SIMT_HERE) {
    return simt_block_barrier("__syncthreads_and()", predicate == 0, file, line) == 0;
}
static inline void __threadfence() { simt_fence(); }
static inline void __threadfence_block() { simt_fence(); }

/* ---- warp intrinsics: the lanes of `mask` that have not returned exchange values ------------------------------------ */
namespace simt {
template <typename T> static inline uint64_t to_bits(T value) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return bits;
}
template <typename T> static inline T from_bits(uint64_t bits) {
    T value;
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}
} // namespace simt

static inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_HERE) {
    simt_meet(&simt_syncwarp, mask, nullptr, nullptr, file, line);
}
template <typename T> static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIMT_HERE) {
    int lane = (int)simt_lane(), first = lane & ~(width - 1);
    return simt::from_bits<T>(
        simt_exchange(&simt_shfl, mask, simt::to_bits(value), first + (source & (width - 1)), file, line));
}
template <typename T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_HERE) {
    int lane = (int)simt_lane(), source = lane - (int)delta;
    if (source < (lane & ~(width - 1))) source = lane;
    return simt::from_bits<T>(simt_exchange(&simt_shfl_up, mask, simt::to_bits(value), source, file, line));
}
template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SIMT_HERE) {
    int lane = (int)simt_lane(), source = lane + (int)delta;
    if (source > (lane | (width - 1))) source = lane;
    return simt::from_bits<T>(simt_exchange(&simt_shfl_down, mask, simt::to_bits(value), source, file, line));
}
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, SIMT_HERE) {
    int lane = (int)simt_lane(), source = lane ^ lane_mask;
    if (source > (lane | (width - 1))) source = lane;
    return simt::from_bits<T>(simt_exchange(&simt_shfl_xor, mask, simt::to_bits(value), source, file, line));
}
static inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_HERE) {
    return (unsigned)simt_exchange(&simt_ballot, mask, predicate != 0, 0, file, line);
}
static inline int __any_sync(unsigned mask, int predicate, SIMT_HERE) {
    return (int)simt_exchange(&simt_any, mask, predicate != 0, 0, file, line);
}
static inline int __all_sync(unsigned mask, int predicate, SIMT_HERE) {
    return (int)simt_exchange(&simt_all, mask, predicate != 0, 0, file, line);
}
template <typename T> static inline unsigned __match_any_sync(unsigned mask, T value, SIMT_HERE) {
    return (unsigned)simt_exchange(&simt_match_any, mask, simt::to_bits(value), 0, file, line);
}
template <typename T> static inline unsigned __match_all_sync(unsigned mask, T value, int *predicate, SIMT_HERE) {
    unsigned lanes = (unsigned)simt_exchange(&simt_match_all, mask, simt::to_bits(value), 0, file, line);
    *predicate = lanes != 0;
    return lanes;
}
#define SIMT_REDUCE(operation, type, collective)                                                                       \
    static inline type __reduce_##operation##_sync(unsigned mask, type value, SIMT_HERE) {                             \
        return (type)simt_exchange(&simt_reduce_##collective, mask, (unsigned)value, 0, file, line);                   \
    }
SIMT_REDUCE(add, unsigned, add)
SIMT_REDUCE(add, int, add)
SIMT_REDUCE(min, unsigned, min)
SIMT_REDUCE(min, int, min_signed)
SIMT_REDUCE(max, unsigned, max)
SIMT_REDUCE(max, int, max_signed)
SIMT_REDUCE(and, unsigned, and)
SIMT_REDUCE(or, unsigned, or)
SIMT_REDUCE(xor, unsigned, xor)
static inline unsigned __activemask() { return simt_active_mask(); }

/* ---- atomics: on global and shared memory; each returns the value before -------------------------------------------- */
namespace simt {
template <typename T> struct atomic_type;
template <> struct atomic_type<int> { static constexpr simt_atomic_type value = SIMT_INT; };
template <> struct atomic_type<unsigned> { static constexpr simt_atomic_type value = SIMT_UNSIGNED; };
template <> struct atomic_type<unsigned long long> { static constexpr simt_atomic_type value = SIMT_LONG; };
template <> struct atomic_type<float> { static constexpr simt_atomic_type value = SIMT_FLOAT; };
template <> struct atomic_type<double> { static constexpr simt_atomic_type value = SIMT_DOUBLE; };

template <typename T> static inline T atomic(simt_atomic_operation operation, T *address, T operand, T compare) {
    return from_bits<T>(simt_atomic(operation, atomic_type<T>::value, address, to_bits(operand), to_bits(compare)));
}
template <typename T> using same = std::type_identity_t<T>;
} // namespace simt

#define SIMT_ATOMIC(name, operation)                                                                                   \
    template <typename T> static inline T name(T *address, simt::same<T> operand) {                                    \
        return simt::atomic<T>(operation, address, operand, T());                                                      \
    }
SIMT_ATOMIC(atomicAdd, SIMT_ADD)
SIMT_ATOMIC(atomicMin, SIMT_MIN)
SIMT_ATOMIC(atomicMax, SIMT_MAX)
SIMT_ATOMIC(atomicAnd, SIMT_AND)
SIMT_ATOMIC(atomicOr, SIMT_OR)
SIMT_ATOMIC(atomicXor, SIMT_XOR)
SIMT_ATOMIC(atomicExch, SIMT_EXCHANGE)
template <typename T> static inline T atomicSub(T *address, simt::same<T> operand) {
    return simt::atomic<T>(SIMT_ADD, address, T(0) - operand, T());
}
template <typename T> static inline T atomicCAS(T *address, simt::same<T> compare, simt::same<T> value) {
    return simt::atomic<T>(SIMT_COMPARE_AND_SWAP, address, value, compare);
}

/* ---- arithmetic ----------------------------------------------------------------------------------------------------- */
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
static inline long min(long a, long b) { return a < b ? a : b; }
static inline long max(long a, long b) { return a > b ? a : b; }
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
#define __expf(x) expf(x) /* the C library has private functions of these names */
#define __logf(x) logf(x)
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
template <typename T> static inline T __ldg(const T *address) { return *address; }

/* ---- host side ------------------------------------------------------------------------------------------------------ */
template <typename T> static inline cudaError_t cudaMalloc(T **pointer, size_t bytes) {
    return cudaMalloc((void **)pointer, bytes);
}
template <typename... A>
static inline cudaError_t cudaFuncSetAttribute(void (*kernel)(A...), cudaFuncAttribute attribute, int value) {
    return cudaFuncSetAttribute((const void *)kernel, attribute, value);
}

namespace simt {
struct config {
    dim3 grid, block;
    size_t dynamic_shared_bytes;
    config(dim3 g, dim3 b, size_t shared = 0, cudaStream_t = nullptr)
        : grid(g), block(b), dynamic_shared_bytes(shared) {}
};

/* Each site of a __shared__ declaration has its own Site type, so that `declaration` is unique to it. */
template <typename T, typename Site> static inline T &static_shared(Site, const char *name, SIMT_HERE) {
    static const char declaration = 0;
    typedef std::remove_all_extents_t<T> element;
    return *(T *)simt_static_shared(&declaration, sizeof(T), name, sizeof(element), std::extent_v<T, 1>, file, line);
}

/* kernel<<<grid, block>>>(a, b) becomes launch(config(grid, block), "kernel", kernel)(a, b): the arguments convert to the
 * kernel's parameters once, on the host, as in an ordinary call. */
template <typename Pack, size_t... I>
__attribute__((no_sanitize("thread"))) static inline void call_kernel(Pack &pack, std::index_sequence<I...>) {
    pack.body(std::get<I>(pack.arguments)...); /* not accesses of the kernel's own */
}
template <size_t COUNT, typename Pack>
static inline void launch_pack(const config &shape, const void *kernel, const char *name, Pack &pack) {
    unsigned grid[3] = {shape.grid.x, shape.grid.y, shape.grid.z};
    unsigned block[3] = {shape.block.x, shape.block.y, shape.block.z};
    simt_launch_kernel(
        kernel, name, grid, block, shape.dynamic_shared_bytes,
        [](void *data) { call_kernel(*(Pack *)data, std::make_index_sequence<COUNT>()); }, &pack, sizeof pack);
}
template <typename... P> struct launcher {
    config shape;
    const char *name;
    void (*kernel)(P...);
    void operator()(P... arguments) const {
        struct { /* as one object, since all of it stands for a card's constant memory */
            void (*body)(P...);
            std::tuple<P...> arguments;
        } pack = {kernel, std::tuple<P...>(arguments...)};
        launch_pack<sizeof...(P)>(shape, (const void *)kernel, name, pack);
    }
};
template <typename... P> static inline launcher<P...> launch(config shape, const char *name, void (*kernel)(P...)) {
    return {shape, name, kernel};
}

/* The same for a kernel template whose arguments are deduced, and for an overloaded kernel: `body` calls it, and `address`
 * finds its code where the arguments have just the types of its parameters. */
template <typename Body, typename Address> struct deducing_launcher {
    config shape;
    const char *name;
    Body body;
    Address address;
    template <typename... A> void operator()(A... arguments) const {
        struct {
            Body body;
            std::tuple<A...> arguments;
        } pack = {body, std::tuple<A...>(arguments...)};
        launch_pack<sizeof...(A)>(shape, address(arguments...), name, pack);
    }
};
template <typename Body, typename Address>
static inline deducing_launcher<Body, Address> launch_deduced(config shape, const char *name, Body body,
                                                              Address address) {
    return {shape, name, body, address};
}
} // namespace simt

/* A launch as a function call. No source text names the kernel here: "<" has it looked up by its address. */
template <typename... Parameters, std::size_t... I>
static inline void simt_launch_with(simt::config shape, void (*kernel)(Parameters...), void **arguments,
                                    std::index_sequence<I...>) {
    simt::launch(shape, (const void *)kernel, "kernel<>",
                 [kernel](Parameters... values) { kernel(values...); })(*(Parameters *)arguments[I]...);
}
template <typename... Parameters>
static inline cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void **arguments,
                                           size_t dynamic_shared_bytes = 0, cudaStream_t stream = nullptr) {
    simt_launch_with(simt::config(grid, block, dynamic_shared_bytes, stream), kernel, arguments,
                     std::index_sequence_for<Parameters...>());
    return cudaGetLastError();
}

#endif
