#include "construct.h"
#include <cuda/atomic>
#include <atomic>
#include <memory>
#include <mutex>

namespace atomic_add {
__global__ void k(int *out) { atomicAdd(out, (int)threadIdx.x); }
CONSTRUCT(atomic_add, "6") { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_add

namespace atomic_add_block {
__global__ void k(int *out) { atomicAdd_block(out, (int)threadIdx.x); }
CONSTRUCT(atomic_add_block, "6") { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_add_block

namespace atomic_cas {
__global__ void k(int *out) { atomicCAS(out, 0, 1); }
CONSTRUCT(atomic_cas, "1") { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_cas

namespace atomic_dec_wraps {
__global__ void k(int *out) { atomicDec((unsigned *)out, 3); }
CONSTRUCT(atomic_dec_wraps, "0") { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_dec_wraps

namespace atomic_double {
__global__ void k(double *out) { atomicAdd(out, 0.25 * threadIdx.x); }
CONSTRUCT(atomic_double, "1.5") { return show<double>(1, [&](double *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_double

namespace atomic_exchange {
__global__ void k(int *out) { atomicExch(out, 8); }
CONSTRUCT(atomic_exchange, "8") { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_exchange

namespace atomic_float {
__global__ void k(float *out) { atomicAdd(out, 0.25f * threadIdx.x); }
CONSTRUCT(atomic_float, "1.5") { return show<float>(1, [&](float *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_float

namespace atomic_inc_wraps {
__global__ void k(int *out) { atomicInc((unsigned *)out, 2); }
CONSTRUCT(atomic_inc_wraps, "1") { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_inc_wraps

namespace atomic_lock {
__device__ int lock;
__global__ void k(int *out) {
    for (int turn = 0; turn < 4; turn++)
        if (threadIdx.x == turn) {
            while (atomicCAS(&lock, 0, 1) != 0) {}
            out[0] = out[0] + 1;
            __threadfence();
            atomicExch(&lock, 0);
        }
}
CONSTRUCT(atomic_lock, "4") { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_lock

namespace atomic_long {
__global__ void k(unsigned long long *out) { atomicAdd(out, (unsigned long long)threadIdx.x); }
CONSTRUCT(atomic_long, "6") { return show<unsigned long long>(1, [&](unsigned long long *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_long

namespace atomic_max {
__global__ void k(int *out) { atomicMax(out, (int)threadIdx.x); }
CONSTRUCT(atomic_max, "3") { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_max

namespace atomic_max_by_cas {
__global__ void k(float *out) {
    int *bits = (int *)out, old = atomicAdd(bits, 0), seen;
    do {
        seen = old;
        if (__int_as_float(seen) >= threadIdx.x) break;
        old = atomicCAS(bits, seen, __float_as_int((float)threadIdx.x));
    } while (old != seen);
}
CONSTRUCT(atomic_max_by_cas, "3") { return show<float>(1, [&](float *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_max_by_cas

namespace atomic_min {
__global__ void k(int *out) { atomicMin(out, -(int)threadIdx.x); }
CONSTRUCT(atomic_min, "-3") { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_min

namespace atomic_or {
__global__ void k(int *out) { atomicOr(out, 1 << threadIdx.x); }
CONSTRUCT(atomic_or, "15") { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_or

namespace atomic_signed_long {
__global__ void k(long long *out) {
    atomicMin(out, (long long)threadIdx.x - 3);
    atomicMax(out + 1, threadIdx.x == 1 ? 5000000000 : -1);
}
CONSTRUCT(atomic_signed_long, "-3 5e+09") { return show<long long>(2, [&](long long *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_signed_long

namespace atomic_sub {
__global__ void k(int *out) { atomicSub(out, (int)threadIdx.x); }
CONSTRUCT(atomic_sub, "-6") { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_sub

namespace atomic_xor {
__global__ void k(int *out) { atomicXor(out, 1 << threadIdx.x); }
CONSTRUCT(atomic_xor, "15") { return show<int>(1, [&](int *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_xor

namespace host_atomics {
static std::atomic<int> counter{0};
static std::once_flag flag;

static int devices() {
    int count;
    must(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    return count > 0;
}

static int ask_once() {
    static const int answer = devices(); // guarded by an atomic variable of the compiler's
    return answer;
}
CONSTRUCT(host_atomics, "1 1000 3 2 once") {
    for (int i = 0; i < 500; i++) counter += 2;
    int wanted = 1000;
    counter.compare_exchange_strong(wanted, 1000);
    auto value = std::make_shared<int>(3), other = value;
    printf("%d %d %d %ld", ask_once(), counter.load(), *value, value.use_count());
    std::call_once(flag, [] { printf(" once\n"); });
    return 0;
}
} // namespace host_atomics

namespace atomic_objects {
typedef cuda::atomic<int, cuda::thread_scope_device> counter;
__global__ void k(counter *count, int *out, float *sum) {
    count->fetch_add(2, cuda::memory_order_relaxed);
    cuda::atomic_ref<int, cuda::thread_scope_device>(out[1]).fetch_max((int)threadIdx.x);
    cuda::atomic_ref<float, cuda::thread_scope_device>(*sum).fetch_add(0.5f);
    int expected = 0;
    if (cuda::atomic_ref<int, cuda::thread_scope_device>(out[2]).compare_exchange_strong(expected, 9)) out[3] = 1;
}
CONSTRUCT(atomic_objects, "135 31 9 1 32 136") {
    counter *count = nullptr;
    int *out = nullptr;
    float *sum = nullptr;
    must(cudaMallocManaged(&count, sizeof *count), "cudaMallocManaged");
    must(cudaMallocManaged(&out, 4 * sizeof *out), "cudaMallocManaged");
    must(cudaMallocManaged(&sum, sizeof *sum), "cudaMallocManaged");
    new (count) counter(7);
    for (int i = 0; i < 4; i++) out[i] = 0;
    *sum = 0.0f;
    k<<<2, 32>>>(count, out, sum);
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    printf("%d %d %d %d %g", count->load(), out[1], out[2], out[3], *sum);
    printf(" %d\n", ++*count);
    return 0;
}
} // namespace atomic_objects

/* A flag that a release sets and an acquire reads orders the plain value before it. */
namespace message_by_an_atomic {
__global__ void k(int *value, cuda::atomic<int, cuda::thread_scope_device> *flag, int *out) {
    if (blockIdx.x == 0) {
        *value = 5;
        flag->store(1, cuda::memory_order_release);
    } else {
        while (flag->load(cuda::memory_order_acquire) == 0) {
        }
        *out = *value;
    }
}
CONSTRUCT(message_by_an_atomic, "5") {
    void *memory = nullptr;
    must(cudaMalloc(&memory, 8), "cudaMalloc");
    must(cudaMemset(memory, 0, 8), "cudaMemset");
    return show<int>(1, [&](int *out) {
        k<<<2, 1>>>((int *)memory, (cuda::atomic<int, cuda::thread_scope_device> *)memory + 1, out);
    });
}
} // namespace message_by_an_atomic

namespace atomic_cas_of_two_bytes {
__global__ void k(unsigned short *out) {
    for (unsigned short seen = 0, old; (old = atomicCAS(out + threadIdx.x % 2, seen, (unsigned short)(seen + 1))) != seen;) seen = old;
}
CONSTRUCT(atomic_cas_of_two_bytes, "32 32 0") { return show<unsigned short>(3, [&](unsigned short *out) { k<<<1, 64>>>(out); }); }
} // namespace atomic_cas_of_two_bytes

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
namespace atomic_floats {
__global__ void k(float *out) {
    float2 before = atomicAdd((float2 *)out + 2, make_float2(1, 2));
    atomicAdd((float4 *)out, make_float4(1, 2, 3, before.x < 4 ? 4 : 0));
}
CONSTRUCT(atomic_floats, "4 8 12 16 4 8") { return show<float>(6, [&](float *out) { k<<<1, 4>>>(out); }); }
} // namespace atomic_floats
#endif
