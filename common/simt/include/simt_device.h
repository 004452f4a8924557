/* The device side of CUDA C++ for the simulated device: keywords, built-in variables, vector types, barriers, warp
 * intrinsics, atomics, and launch(), into which the build rewrites kernel<<<...>>>(...) (rewrite/launch.c).
 *
 * A kernel file is compiled by g++ with -fsanitize=thread, so that every access to memory calls a hook (hooks/).
 * Whatever here is not an access of the kernel's own must therefore stay out of sight: it lives in the runtime, which is
 * compiled without that flag, or passes values in registers.
 */
#pragma once

#include <assert.h>
#include "simt_abi.h"
#include "simt_math.h"
#include "vector_types.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <cstring> /* now, since it takes the macro memcpy away */
#include <time.h>
#include <cmath>
#include <tuple>
#include <type_traits>
#include <utility>

#ifndef __CUDACC__ /* a C++ file that does not pass through simt_rewrite, which reads these words */
#define __global__
#define __device__
#define __host__
#define __constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#endif
#define __forceinline__ inline /* a kernel is flattened anyway */
#define __align__(n) __attribute__((aligned(n)))
#define __maxnreg__(n)
#define __builtin_align__(n) __align__(n)
#define __restrict __restrict__

/* The scheduler sets them when it resumes a thread. Constants, so that g++ puts no hook before their reads; of a plain
 * struct's type, since g++ hooks reads of constants whose type has constructors. */
extern "C" {
extern const __thread uint3 threadIdx, blockIdx, blockDim, gridDim;
void simt_launch_bounds(unsigned threads, unsigned blocks = 0, unsigned cluster = 0);
}
static constexpr int warpSize = 32;

#define SIMT_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

#if __cplusplus >= 201703L /* an older file is of the host alone */
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
static inline void __threadfence() { simt_fence(SIMT_DEVICE, SIMT_FENCE); }
static inline void __threadfence_block() { simt_fence(SIMT_CTA, SIMT_FENCE); }
static inline void __threadfence_system() { simt_fence(SIMT_DEVICE, SIMT_FENCE); }

/* ---- warp intrinsics: the lanes of `mask` that have not returned exchange values ------------------------------------ */
namespace simt {
template <typename _T> static inline uint64_t to_bits(_T value) {
    static_assert(sizeof(_T) <= 8, "a shuffle moves at most 8 bytes");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(_T));
    return bits;
}
template <typename _T> static inline _T from_bits(uint64_t bits) {
    _T value;
    __builtin_memcpy(&value, &bits, sizeof(_T));
    return value;
}

template <typename _T> struct atomic_type;
template <> struct atomic_type<int> { static constexpr simt_atomic_type value = SIMT_INT; };
template <> struct atomic_type<unsigned> { static constexpr simt_atomic_type value = SIMT_UNSIGNED; };
template <> struct atomic_type<unsigned long long> { static constexpr simt_atomic_type value = SIMT_LONG; };
template <> struct atomic_type<long long> { static constexpr simt_atomic_type value = SIMT_SIGNED_LONG; };
template <> struct atomic_type<float> { static constexpr simt_atomic_type value = SIMT_FLOAT; };
template <> struct atomic_type<double> { static constexpr simt_atomic_type value = SIMT_DOUBLE; };

template <typename _T> static inline _T atomic(simt_atomic_operation operation, _T *address, _T operand, _T compare) {
    return from_bits<_T>(simt_atomic(operation, atomic_type<_T>::value, address, to_bits(operand), to_bits(compare)));
}
template <typename _T> using same = std::common_type_t<_T>; /* from which no T is deduced */
} // namespace simt

static inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_HERE) { simt_meet(simt_syncwarp, mask, file, line); }
/* `from`: the lane to read, unless it is `outside` of what the instruction reaches; `by`: what the call names. */
#define SIMT_SHUFFLE(suffix, type, from, outside)                                                                              \
    template <typename _T> static inline _T __shfl##suffix##_sync(unsigned mask, _T value, type by, int width = 32, SIMT_HERE) {  \
        int lane = (int)simt_lane(), source = from;                                                                            \
        if (outside) source = lane;                                                                                            \
        return simt::from_bits<_T>(simt_exchange(simt_shfl##suffix, mask, simt::to_bits(value), source, file, line));          \
    }
SIMT_SHUFFLE(, int, (lane & ~(width - 1)) + (by & (width - 1)), false)
SIMT_SHUFFLE(_up, unsigned, lane - (int)by, source < (lane & ~(width - 1)))
SIMT_SHUFFLE(_down, unsigned, lane + (int)by, source > (lane | (width - 1)))
SIMT_SHUFFLE(_xor, int, lane ^ by, source > (lane | (width - 1)))
#define SIMT_VOTE(name, type)                                                                                                  \
    static inline type __##name##_sync(unsigned mask, int predicate, SIMT_HERE) {                                              \
        return (type)simt_exchange(simt_##name, mask, predicate != 0, 0, file, line);                                         \
    }
SIMT_VOTE(ballot, unsigned)
SIMT_VOTE(any, int)
SIMT_VOTE(all, int)
template <typename _T> static inline unsigned __match_any_sync(unsigned mask, _T value, SIMT_HERE) {
    return (unsigned)simt_exchange(simt_match_any, mask, simt::to_bits(value), 0, file, line);
}
template <typename _T> static inline unsigned __match_all_sync(unsigned mask, _T value, int *predicate, SIMT_HERE) {
    unsigned lanes = (unsigned)simt_exchange(simt_match_all, mask, simt::to_bits(value), 0, file, line);
    *predicate = lanes != 0;
    return lanes;
}
#define SIMT_REDUCE(operation, type, collective)                                                                               \
    static inline type __reduce_##operation##_sync(unsigned mask, type value, SIMT_HERE) {                                     \
        return (type)simt_exchange(simt_reduce_##collective, mask, (unsigned)value, 0, file, line);                           \
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
static inline unsigned __activemask(SIMT_HERE) { return simt_active_mask(file, line); }

/* ---- atomics: on global and shared memory; each returns the value before -------------------------------------------- */
#define SIMT_SCOPED(name)                                                                                                      \
    template <typename _T, typename... _V> static inline _T name##_block(_T *address, _V... values) {                               \
        simt::in_scope here(sizeof(_T) >= 4 ? SIMT_CTA : SIMT_NO_SCOPE); /* a half of a word */                                \
        return name(address, values...);                                                                                       \
    }                                                                                                                          \
    template <typename _T, typename... _V> static inline _T name##_system(_T *address, _V... values) {                              \
        return name(address, values...);                                                                                       \
    }
#define SIMT_ATOMIC(name, operation)                                                                                           \
    template <typename _T> static inline _T name(_T *address, simt::same<_T> operand) {                                            \
        return simt::atomic<_T>(operation, address, operand, _T());                                                              \
    }                                                                                                                          \
    SIMT_SCOPED(name)
SIMT_ATOMIC(atomicAdd, SIMT_ADD)
SIMT_ATOMIC(atomicMin, SIMT_MIN)
SIMT_ATOMIC(atomicMax, SIMT_MAX)
SIMT_ATOMIC(atomicAnd, SIMT_AND)
SIMT_ATOMIC(atomicOr, SIMT_OR)
SIMT_ATOMIC(atomicXor, SIMT_XOR)
SIMT_ATOMIC(atomicExch, SIMT_EXCHANGE)
template <typename _T> static inline _T atomicSub(_T *address, simt::same<_T> operand) {
    return simt::atomic<_T>(SIMT_ADD, address, _T(0) - operand, _T());
}
template <typename _T> static inline _T atomicCAS(_T *address, simt::same<_T> compare, simt::same<_T> value) {
    return simt::atomic<_T>(SIMT_COMPARE_AND_SWAP, address, value, compare);
}

/* atomicInc and atomicDec count around a bound. */
static inline unsigned atomicInc(unsigned *address, unsigned last) {
    return simt::atomic<unsigned>(SIMT_INCREMENT, address, last, 0);
}
static inline unsigned atomicDec(unsigned *address, unsigned last) {
    return simt::atomic<unsigned>(SIMT_DECREMENT, address, last, 0);
}
/* Within the 4 bytes around it, which it swaps where it finds its value. */
static inline unsigned short atomicCAS(unsigned short *address, unsigned short compare, unsigned short value) {
    unsigned *word = (unsigned *)((uintptr_t)address & ~(uintptr_t)3), shift = (uintptr_t)address % 4 * 8;
    for (unsigned old = atomicAdd(word, 0u), seen;;) {
        unsigned short before = (unsigned short)((seen = old) >> shift);
        if (before != compare) return before;
        old = atomicCAS(word, seen, (seen & ~(0xffffu << shift)) | (unsigned)value << shift);
        if (old == seen) return before;
    }
}
/* In global memory: one request, in which each float is added by itself. */
static inline float2 atomicAdd(float2 *address, float2 operand) {
    simt_floats before = simt_atomic_add_floats(&address->x, 2, operand.x, operand.y, 0, 0);
    return make_float2(before.x[0], before.x[1]);
}
static inline float4 atomicAdd(float4 *address, float4 operand) {
    simt_floats before = simt_atomic_add_floats(&address->x, 4, operand.x, operand.y, operand.z, operand.w);
    return make_float4(before.x[0], before.x[1], before.x[2], before.x[3]);
}
SIMT_SCOPED(atomicSub) SIMT_SCOPED(atomicCAS) SIMT_SCOPED(atomicInc) SIMT_SCOPED(atomicDec)

/* ---- loads and stores with a hint for the caches, which are not modelled -------------------------------------------- */
#define SIMT_LOAD(name)                                                                                                        \
    template <typename _T> static inline _T name(const _T *address) { return *address; }
template <typename _T> static inline _T __ldg(const _T *address) {
    simt_check_constant(address, sizeof *address);
    return *address;
}
SIMT_LOAD(__ldcg)
SIMT_LOAD(__ldca)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldlu)
SIMT_LOAD(__ldcv)
#define SIMT_STORE(name)                                                                                                       \
    template <typename _T> static inline void name(_T *address, simt::same<_T> value) { *address = value; }
SIMT_STORE(__stcg)
SIMT_STORE(__stcs)
SIMT_STORE(__stwb)
SIMT_STORE(__stwt)
static inline size_t __cvta_generic_to_shared(const void *pointer) { return simt_shared_address(pointer); }
static inline void *__cvta_shared_to_generic(size_t address) { return simt_shared_pointer(address); }
static inline unsigned __isShared(const void *pointer) { return simt_is_shared(pointer); }
static inline unsigned __isGlobal(const void *pointer) { return !simt_is_shared(pointer); }

/* ---- time, and the end of it: a clock counts for the thread alone, and says nothing about a card ---------------------- */
static inline long long clock64() { return simt_clock(); }
static inline void __nanosleep(unsigned) { simt_give_way(); }
static inline void __trap() { simt_trap(); }
static inline void __brkpt() { simt_trap(); }
#define __builtin_assume(condition) ((void)0)

#include "simt_simd.h"

/* As the two of simt_math.h: c + the products of four pairs of bytes. */
static inline int __dp4a(char4 a, char4 b, int c) { return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
static inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
    return c + (unsigned)(a.x * b.x) + (unsigned)(a.y * b.y) + (unsigned)(a.z * b.z) + (unsigned)(a.w * b.w);
}

#endif

/* ---- host side ------------------------------------------------------------------------------------------------------ */
/* The function of the API for a pointer of any type. */
#define SIMT_TYPED_POINTER(name, function, parameters, ...)                                                                    \
    template <typename _T> static inline cudaError_t name(_T **pointer, SIMT_UNPACK parameters) {                                \
        return function((void **)pointer, __VA_ARGS__);                                                                        \
    }
#define SIMT_UNPACK(...) __VA_ARGS__
SIMT_TYPED_POINTER(cudaMalloc, cudaMalloc, (size_t bytes), bytes)
SIMT_TYPED_POINTER(cudaMallocAsync, cudaMallocAsync, (size_t bytes, cudaStream_t stream), bytes, stream)
SIMT_TYPED_POINTER(cudaMallocManaged, cudaMallocManaged, (size_t bytes, unsigned flags = cudaMemAttachGlobal), bytes, flags)
SIMT_TYPED_POINTER(cudaMallocHost, cudaHostAlloc, (size_t bytes, unsigned flags = 0), bytes, flags)
SIMT_TYPED_POINTER(cudaHostAlloc, cudaHostAlloc, (size_t bytes, unsigned flags), bytes, flags)
SIMT_TYPED_POINTER(cudaHostGetDevicePointer, cudaHostGetDevicePointer, (void *host, unsigned flags), host, flags)
SIMT_TYPED_POINTER(cudaMallocPitch, cudaMallocPitch, (size_t *pitch, size_t width, size_t height), pitch, width, height)
static inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned flags) { return cudaEventCreateWithFlags(event, flags); }

/* And for a kernel by its name. */
#define SIMT_OF_KERNEL(name)                                                                                                   \
    template <typename... _A, typename... _V> static inline cudaError_t name(void (*kernel)(_A...), _V... values) {                \
        return name((const void *)kernel, values...);                                                                          \
    }
SIMT_OF_KERNEL(cudaFuncSetAttribute)
SIMT_OF_KERNEL(cudaFuncSetCacheConfig)
SIMT_OF_KERNEL(cudaFuncSetSharedMemConfig)
template <typename... _A> static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *of, void (*kernel)(_A...)) {
    return cudaFuncGetAttributes(of, (const void *)kernel);
}
template <typename _F>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, _F kernel, int threads, size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)kernel, threads, shared);
}
#define SIMT_CLUSTERS(name)                                                                                                    \
    template <typename _F> static inline cudaError_t name(int *count, _F kernel, const cudaLaunchConfig_t *config) {           \
        return name(count, (const void *)kernel, config);                                                                      \
    }
SIMT_CLUSTERS(cudaOccupancyMaxPotentialClusterSize)
SIMT_CLUSTERS(cudaOccupancyMaxActiveClusters)
template <typename _F>
static inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid, int *block, _F, size_t = 0, int limit = 0) {
    cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, 0);
    *block = limit > 0 && limit < properties.maxThreadsPerBlock ? limit : properties.maxThreadsPerBlock;
    *grid = properties.multiProcessorCount * (properties.maxThreadsPerMultiProcessor / *block);
    return error;
}
template <typename _F, typename _S>
static inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *grid, int *block, _F kernel, _S, int limit = 0) {
    return cudaOccupancyMaxPotentialBlockSize(grid, block, kernel, 0, limit);
}

/* A symbol is a __device__ or __constant__ variable. */
#define SIMT_SYMBOL_COPIES(suffix, stream, waits, ...)                                                                         \
    template <typename _T>                                                                                                      \
    static inline cudaError_t cudaMemcpyToSymbol##suffix(const _T &symbol, const void *from, size_t bytes, size_t offset = 0,   \
                                                         cudaMemcpyKind kind = cudaMemcpyHostToDevice __VA_ARGS__) {           \
        return simt_copy_symbol((const void *)&symbol, sizeof symbol, from, bytes, offset, kind,                               \
                                cudaMemcpyHostToDevice, stream, waits);                                                        \
    }                                                                                                                          \
    template <typename _T>                                                                                                      \
    static inline cudaError_t cudaMemcpyFromSymbol##suffix(void *to, const _T &symbol, size_t bytes, size_t offset = 0,         \
                                                           cudaMemcpyKind kind = cudaMemcpyDeviceToHost __VA_ARGS__) {         \
        return simt_copy_symbol((const void *)&symbol, sizeof symbol, to, bytes, offset, kind,                                 \
                                cudaMemcpyDeviceToHost, stream, waits);                                                        \
    }
SIMT_SYMBOL_COPIES(, 0, true)
SIMT_SYMBOL_COPIES(Async, stream, false, , cudaStream_t stream = 0)
template <typename _T> static inline cudaError_t cudaGetSymbolAddress(void **pointer, const _T &symbol) {
    *pointer = (void *)&symbol;
    return cudaSuccess;
}
template <typename _T> static inline cudaError_t cudaGetSymbolSize(size_t *bytes, const _T &) {
    *bytes = sizeof(_T);
    return cudaSuccess;
}

#if __cplusplus >= 201703L
namespace simt {
/* rewrite/main.c puts it before a call of the API whose result is dropped: ignored("cudaFree") = cudaFree(p); */
struct ignored {
    const char *call, *file;
    int line;
    ignored(const char *name, SIMT_HERE) : call(name), file(file), line(line) {}
    void operator=(cudaError_t error) const { simt_ignored_error(error, call, file, line); }
    template <typename _T> void operator=(const _T &) const {}
};

struct config {
    dim3 grid, block;
    size_t dynamic_shared_bytes;
    bool cooperative = false;
    dim3 cluster = dim3(1, 1, 1);
    cudaStream_t stream;
    config(dim3 g, dim3 b, size_t shared = 0, cudaStream_t s = 0)
        : grid(g), block(b), dynamic_shared_bytes(shared), stream(s) {}
};

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM /* simt-nvcc --default-stream per-thread */
static const int stream_per_thread = (simt_default_stream_per_thread(), 0);
#endif

static inline void cluster_dims(unsigned x, unsigned y = 1, unsigned z = 1) { simt_cluster_dims(x, y, z); }

/* Each site of a __shared__ declaration has its own Site type, so that `extents` is unique to it. */
template <typename _T, size_t alignment, typename Site> static inline _T &static_shared(Site, const char *name, SIMT_HERE) {
    static const size_t extents[] = {std::extent_v<_T, 0>, std::extent_v<_T, 1>, std::extent_v<_T, 2>, std::extent_v<_T, 3>, 0};
    return *(_T *)simt_static_shared(extents, sizeof(_T), alignment > alignof(_T) ? alignment : alignof(_T), name, file, line);
}

template <typename _T> constexpr size_t alignment() {
    if constexpr (std::is_void_v<_T>)
        return 1;
    else
        return alignof(_T);
}
/* The piece of a copy that one thread of `threads` moves, in words as wide as all of it allows. */
static inline void copy_share(void *to, const void *from, size_t bytes, size_t rank, size_t threads) {
    uintptr_t all = (uintptr_t)to | (uintptr_t)from | bytes;
    size_t width = all % 16 == 0 ? 16 : all % 8 == 0 ? 8 : all % 4 == 0 ? 4 : 1;
    for (size_t i = rank * width; i < bytes; i += threads * width) {
        char *here = (char *)to + i;
        const char *there = (const char *)from + i;
        if (width == 1 || !simt_is_shared(to))
            for (size_t byte = 0; byte < width; byte++) here[byte] = there[byte];
        else
            simt_async_copy(here, there, width, 0);
    }
}

/* kernel<<<grid, block>>>(a, b) becomes launch(config(grid, block), "kernel", kernel)(a, b): the arguments convert to the
 * kernel's parameters once, on the host, as in an ordinary call. */
/* A thread's own copy of an argument. The bytes of a class with a destructor are copied, and nothing destroys them: a card
 * runs the destructor on the host only. Such a class is passed by reference to its bytes, in a function's binary interface. */
template <typename _T> struct passed {
    static constexpr bool by_bytes = !std::is_trivially_destructible_v<_T>;
    typedef std::conditional_t<by_bytes, void *, _T> type;
    alignas(_T) unsigned char bytes[by_bytes ? sizeof(_T) : 1];
    __attribute__((no_sanitize("thread"), always_inline)) inline type of(_T &argument) {
        if constexpr (by_bytes)
            return __builtin_memcpy(bytes, (const void *)&argument, sizeof(_T));
        else
            return argument;
    }
};
template <typename Pack, typename... _P, size_t... _I>
__attribute__((no_sanitize("thread"))) static inline void call_kernel(Pack &pack, void (**)(_P...), std::index_sequence<_I...>) {
    ((void (*)(typename passed<_P>::type...))pack.body)(passed<_P>().of(std::get<_I>(pack.arguments))...);
}
template <typename Pack, typename Body, size_t... _I>
__attribute__((no_sanitize("thread"))) static inline void call_kernel(Pack &pack, Body *, std::index_sequence<_I...>) {
    pack.body(std::get<_I>(pack.arguments)...); /* not accesses of the kernel's own */
}
template <size_t _COUNT, typename Pack>
static inline void launch_pack(const config &shape, const void *kernel, const char *name, Pack &pack) {
    simt_launch_kernel(
        kernel, name, shape.grid, shape.block, shape.cluster, shape.dynamic_shared_bytes, shape.cooperative, shape.stream,
        [](void *data) { call_kernel(*(Pack *)data, (decltype(Pack::body) *)nullptr, std::make_index_sequence<_COUNT>()); },
        &pack, sizeof pack);
}
template <typename... _P> struct launcher {
    config shape;
    const char *name;
    void (*kernel)(_P...);
    void operator()(_P... arguments) const {
        struct { /* as one object, since all of it stands for a card's constant memory */
            void (*body)(_P...);
            std::tuple<_P...> arguments;
        } pack = {kernel, std::tuple<_P...>(arguments...)};
        launch_pack<sizeof...(_P)>(shape, (const void *)kernel, name, pack);
    }
#ifdef __cpp_concepts
    /* Arguments that do not fit are one line of the compiler's, at the launch, with both lists of types. */
    template <typename... _A>
        requires(sizeof...(_A) != sizeof...(_P))
    __attribute__((error("this launch passes more or fewer arguments than the kernel takes"))) void
    operator()(_A &&...) const;
    template <typename _A, typename _Q> static constexpr bool may_be_null = std::is_same_v<_A, int> && std::is_pointer_v<_Q>;
    template <typename... _A>
        requires(sizeof...(_A) == sizeof...(_P) && !((std::is_convertible_v<_A, _P> || may_be_null<_A, _P>) && ...))
    __attribute__((error("an argument of this launch has another type than the kernel's parameter"))) void
    operator()(_A &&...) const;
    /* An int that is not the literal 0, where a pointer must stand: any other function is preferred to this one. */
    __attribute__((error("an argument of this launch has another type than the kernel's parameter"))) void
    operator()(...) const
        requires(sizeof...(_P) > 0);
#endif
};
template <typename... _P> static inline launcher<_P...> launch(config shape, const char *name, void (*kernel)(_P...)) {
    return {shape, name, kernel};
}

/* The same for a kernel template whose arguments are deduced, and for an overloaded kernel: `body` calls it, and `address`
 * finds its code where the arguments have just the types of its parameters. */
template <typename Body, typename Address> struct deducing_launcher {
    config shape;
    const char *name;
    Body body;
    Address address;
    template <typename... _A> void operator()(_A... arguments) const {
        struct {
            Body body;
            std::tuple<_A...> arguments;
        } pack = {body, std::tuple<_A...>(arguments...)};
        launch_pack<sizeof...(_A)>(shape, address(arguments...), name, pack);
    }
};
template <typename Body, typename Address>
static inline deducing_launcher<Body, Address> launch_deduced(config shape, const char *name, Body body, Address address) {
    return {shape, name, body, address};
}

/* No source text names the kernel here: "<" has it looked up by its address. */
template <typename... _P, size_t... _I>
static inline cudaError_t launch_function(config shape, bool cooperative, void (*kernel)(_P...), void **arguments,
                                          std::index_sequence<_I...>) {
    shape.cooperative = cooperative;
    launch(shape, "kernel<>", kernel)((*(std::remove_reference_t<_P> *)arguments[_I])...);
    return (cudaError_t)simt_launch_error();
}
} // namespace simt

/* A launch as a function call; rewrite/launch.c has taken off a cast of the kernel to void *. */
#define SIMT_LAUNCH_FUNCTION(name, cooperative)                                                                                \
    template <typename... _P>                                                                                                   \
    static inline cudaError_t name(void (*kernel)(_P...), dim3 grid, dim3 block, void **arguments, size_t shared = 0,           \
                                   cudaStream_t stream = 0) {                                                                  \
        return simt::launch_function(simt::config(grid, block, shared, stream), cooperative, kernel, arguments,                \
                                     std::index_sequence_for<_P...>());                                                         \
    }
SIMT_LAUNCH_FUNCTION(cudaLaunchKernel, false)
SIMT_LAUNCH_FUNCTION(cudaLaunchCooperativeKernel, true)

/* The same with attributes: the size of clusters, and whether all blocks run at once. */
template <typename... _P, typename... _A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(_P...), _A &&...arguments) {
    simt::config shape(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream);
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const cudaLaunchAttributeValue &value = config->attrs[i].val;
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
            shape.cluster = dim3(value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
        else if (config->attrs[i].id == cudaLaunchAttributeCooperative)
            shape.cooperative = value.cooperative != 0;
        else if (config->attrs[i].id != cudaLaunchAttributeIgnore && config->attrs[i].id != cudaLaunchAttributePriority &&
                 config->attrs[i].id != cudaLaunchAttributeClusterSchedulingPolicyPreference)
            return cudaErrorNotSupported;
    }
    simt::launch(shape, "kernel<>", kernel)(std::forward<_A>(arguments)...);
    return (cudaError_t)simt_launch_error();
}

/* memcpy(): as loads and stores of a kernel, as wide as the types of the pointers allow. */
template <typename To, typename From> static inline void *simt_copy(To *to, From *from, size_t bytes) {
    constexpr size_t _WIDTH = simt::alignment<To>() < simt::alignment<From>() ? simt::alignment<To>() : simt::alignment<From>();
    typedef std::conditional_t<_WIDTH >= 8, uint64_t, std::conditional_t<_WIDTH >= 4, uint32_t, unsigned char>> unit;
    typedef unit any_unit __attribute__((may_alias));
    size_t i = 0;
    for (; i + sizeof(unit) <= bytes; i += sizeof(unit))
        *(any_unit *)((unsigned char *)to + i) = *(const any_unit *)((const unsigned char *)from + i);
    for (; i < bytes; i++) ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
    return (void *)to;
}

#ifdef __CUDACC__
namespace std { using ::simt_copy; } /* std::memcpy() */
#define memcpy(...) simt_copy(__VA_ARGS__)
#endif
#endif
