/* What the simulated device must refuse, with the CUDA error code and a report that names the line. On a card these tests are
 * skipped, since it need not notice. */
#include "device_test.h"
#include "processor.h"

#include <ctype.h>

void check_indices(dim3 grid, dim3 block); /* of simt_threads.cu: launches one kernel, whose results must be right */

/* Two arrays of COUNT zeros; `floats` lies lower, so that nothing but guard pages and foreign memory comes before it. */
enum { COUNT = 10 };
static float *floats, *second;
static int *ints; /* floats once more */

static void make_arrays() {
    floats = filled_on_device<float>(0, COUNT);
    second = filled_on_device<float>(0, COUNT);
    if (second < floats) std::swap(floats, second);
    ints = reinterpret_cast<int *>(floats);
}

static void prepare() {
    need_simulated_device();
    capture_stderr();
    setenv("SIMT_WATCHDOG_SECONDS", "0.3", 1);
    make_arrays();
}
TestSuite(simt_errors, .init = prepare, .timeout = 60); /* the watchdog counts processor time */

static void report_says(const char *words) {
    cr_assert_not_null(strstr(report(), words), "no \"%s\" in the report:\n%s", words, report());
}

/* MARK(name) stands on the line that is at fault and tells REPORT_NAMES(name) its number: hence functions of one line. */
#define MARK(name) const int line_##name = __LINE__;
#define REPORT_NAMES(mark) report_names_line(#mark, line_##mark)
#define EXPECT_FAULT(error, mark) (EXPECT_ERROR(cudaDeviceSynchronize(), error), REPORT_NAMES(mark))

/* "simt_errors.cu:LINE", with no digit after it. */
static void report_names_line(const char *mark, int line) {
    char wanted[100];
    size_t length = (size_t)snprintf(wanted, sizeof wanted, "simt_errors.cu:%d", line);
    const char *found = report();
    while ((found = strstr(found, wanted)) != nullptr && isdigit((unsigned char)found[length])) found++;
    cr_assert_not_null(found, "no \"%s\" (%s) in the report:\n%s", wanted, mark, report());
}

// clang-format off
/* ---- addresses --------------------------------------------------------------------------------------------------- */

MARK(read_at) __global__ void read_at(const float *in, float *out, long i) { if (threadIdx.x == 33) out[0] = in[i]; }

Test(simt_errors, read_past_the_end) {
    read_at<<<dim3(1, 2), 64>>>(floats, second, COUNT);
    EXPECT_FAULT(cudaErrorIllegalAddress, read_at);
    report_says("read of 4 bytes out of bounds");
    report_says("byte 40 of");
    report_says("has 40 bytes: element 10, counted in 4-byte elements\n");
    report_says("kernel read_at");
    report_says("block (0,");
    report_says("thread (33,0,0)");
    report_says("cudaErrorIllegalAddress");
}

Test(simt_errors, read_before_the_start) {
    read_at<<<1, 64>>>(floats, second, -1);
    EXPECT_FAULT(cudaErrorIllegalAddress, read_at);
    report_says("4 bytes before the start of memory (cudaMalloc, tests/device_test.h:");
}

Test(simt_errors, read_before_the_start_of_the_second_array) {
    read_at<<<1, 64>>>(second, floats, -1);
    EXPECT_FAULT(cudaErrorIllegalAddress, read_at);
    report_says("4 bytes before the start of memory (cudaMalloc, tests/device_test.h:");
}

static void check_pointer(const void *pointer, const char *words) {
    read_at<<<1, 64>>>((const float *)pointer, floats, 3);
    EXPECT_FAULT(cudaErrorIllegalAddress, read_at);
    report_says(words);
}

Test(simt_errors, null_pointer) { check_pointer(nullptr, "null pointer"); }

Test(simt_errors, pointer_to_the_hosts_heap) {
    void *heap = calloc(10, sizeof(float));
    check_pointer(heap, "host pointer");
    free(heap);
}

Test(simt_errors, pointer_to_the_hosts_stack) {
    float stack[10] = {0};
    check_pointer(stack, "host pointer");
}

static float host_array[10] = {1};
Test(simt_errors, pointer_to_a_static_array_of_the_host) { check_pointer(host_array, "host pointer"); }

Test(simt_errors, use_after_free) {
    EXPECT_OK(cudaFree(second));
    check_pointer(second, "freed");
}

MARK(write_at) __global__ void write_at(float *out, long i) { if (threadIdx.x == 33) out[i] = 1.0f; }

Test(simt_errors, write_past_the_end) {
    write_at<<<1, 64>>>(floats, COUNT);
    EXPECT_FAULT(cudaErrorIllegalAddress, write_at);
    report_says("write of 4 bytes out of bounds");
    report_says("has 40 bytes");
}

Test(simt_errors, write_far_away) {
    write_at<<<1, 64>>>(floats, 1L << 42);
    EXPECT_FAULT(cudaErrorIllegalAddress, write_at);
    report_says("write of 4 bytes");
    report_says("which is no device memory (a host pointer");
}

MARK(add_at) __global__ void add_at(int *out, long i) { atomicAdd(&out[i], 1); }

Test(simt_errors, atomic_past_the_end) {
    add_at<<<1, 1>>>(ints, COUNT);
    EXPECT_FAULT(cudaErrorIllegalAddress, add_at);
    report_says("has 40 bytes");
}

MARK(read_vector) __global__ void read_vector(const float *in, float4 *out) { *out = *(const float4 *)in; }

Test(simt_errors, vector_past_the_end) {
    read_vector<<<1, 1>>>(floats + 8, (float4 *)second); /* its first half is inside */
    EXPECT_FAULT(cudaErrorIllegalAddress, read_vector);
    report_says("read of 16 bytes");
    report_says("it begins inside and ends past the end");
}

Test(simt_errors, misaligned_float4) {
    read_vector<<<1, 1>>>(floats + 1, (float4 *)second);
    EXPECT_FAULT(cudaErrorMisalignedAddress, read_vector);
    report_says("multiple of 16");
}

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

MARK(past_static) __device__ float past_static(const float *small, int i) { return small[i]; }
__global__ void read_past_static(float *out, int i) {
    __shared__ float small[24];
    small[threadIdx.x % 24] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = past_static(small, i);
}

Test(simt_errors, past_a_static_shared_array) {
    read_past_static<<<1, 10>>>(floats, 24);
    EXPECT_FAULT(cudaErrorIllegalAddress, past_static);
    report_says("bounds: 1 element past the end of the __shared__ array small[24] of 96 bytes\n");
}

MARK(past_first) __device__ void past_first(float *left, int i) { left[i] = 2.0f; }
__global__ void write_past_first(float *out, int i) {
    __shared__ float left[8], right[8];
    left[threadIdx.x] = right[threadIdx.x] = 1.0f;
    __syncthreads();
    if (threadIdx.x == 0) past_first(left, i);
    __syncthreads();
    out[threadIdx.x] = left[threadIdx.x] + right[threadIdx.x];
}

Test(simt_errors, past_the_first_of_two_shared_arrays) {
    write_past_first<<<1, 8>>>(floats, 8); /* on a card: lands in the second, silently */
    EXPECT_FAULT(cudaErrorIllegalAddress, past_first);
    report_says("write of 4 bytes out of bounds: 1 element past the end of the __shared__ array left[8] of 32 bytes and "
                "56 elements before the start of the __shared__ array right[8] of 32 bytes");
}

MARK(dynamic_at) __device__ float dynamic_at(const float *dynamic, int i) { return dynamic[i]; }
__global__ void read_dynamic_at(float *out, int i) {
    extern __shared__ float dynamic_sized[];
    dynamic_sized[threadIdx.x] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = dynamic_at(dynamic_sized, i);
}

Test(simt_errors, past_dynamic_shared_memory) {
    read_dynamic_at<<<1, 10, 80>>>(floats, 20);
    EXPECT_FAULT(cudaErrorIllegalAddress, dynamic_at);
    report_says("dynamic shared memory");
    report_says("80 bytes");
}

Test(simt_errors, before_dynamic_shared_memory) {
    read_dynamic_at<<<1, 10, 80>>>(floats, -1);
    EXPECT_FAULT(cudaErrorIllegalAddress, dynamic_at);
    report_says("shared memory");
}

#ifdef __SIMT__ /* nvcc refuses this one itself */
MARK(too_much_static) __device__ float *too_much_static() { __shared__ float too_large[12289]; return too_large; }
__global__ void declare_too_much() { too_much_static()[threadIdx.x] = 1.0f; }

Test(simt_errors, too_much_static_shared_memory) {
    declare_too_much<<<1, 32>>>();
    EXPECT_FAULT(cudaErrorLaunchFailure, too_much_static);
    report_says("too_large");
    report_says("49156 bytes");
}
#else
Test(simt_errors, too_much_static_shared_memory) {} /* skipped by name, as the others are */
#endif

/* ---- memory that nobody has written ------------------------------------------------------------------------------ */

MARK(read_unwritten_global) __global__ void read_unwritten_global(const int *in, int *out) { out[threadIdx.x] = in[9]; }

Test(simt_errors, read_of_device_memory_that_nobody_has_written) {
    int *fresh = nullptr;
    EXPECT_OK(cudaMalloc(&fresh, COUNT * sizeof *fresh));
    EXPECT_OK(cudaMemset(fresh, 0, (COUNT - 1) * sizeof *fresh)); /* all but the last */
    read_unwritten_global<<<1, 10>>>(fresh, ints);
    EXPECT_FAULT(cudaErrorLaunchFailure, read_unwritten_global);
    report_says("nobody has written");
    report_says("[9]");
}

__global__ void fill_shared(int n) {
    extern __shared__ volatile float filled[];
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) filled[i] = 1.0f;
}

MARK(unwritten_shared) __device__ int unwritten_shared(const int *nothing) { return nothing[5]; }
__global__ void read_unwritten_shared(int *out) {
    extern __shared__ int nothing[];
    out[threadIdx.x] = unwritten_shared(nothing);
}

Test(simt_errors, read_of_shared_memory_that_nobody_has_written) {
    fill_shared<<<64, 32, 3000 * sizeof(float)>>>(3000); /* what earlier kernels wrote does not count */
    EXPECT_OK(cudaDeviceSynchronize());
    read_unwritten_shared<<<1, 10, 40>>>(ints);
    EXPECT_FAULT(cudaErrorLaunchFailure, unwritten_shared);
    report_says("nobody has written");
    report_says("byte 20 of the block's dynamic shared memory");
}

/* ---- barriers ---------------------------------------------------------------------------------------------------- */

MARK(barrier_of_half) __device__ void barrier_of_half() { __syncthreads(); }
MARK(barrier_of_all) __device__ void barrier_of_all() { __syncthreads(); }
__global__ void half_at_barrier(float *out) {
    if (threadIdx.x % 2 == 0) barrier_of_half();
    if (threadIdx.x < 10) out[threadIdx.x] = 1.0f;
    barrier_of_all();
}

Test(simt_errors, barrier_that_half_the_threads_take) {
    half_at_barrier<<<1, 64>>>(floats);
    EXPECT_FAULT(cudaErrorLaunchFailure, barrier_of_half);
    REPORT_NAMES(barrier_of_all);
    report_says("divergent barrier");
    report_says("__syncthreads()");
}

MARK(barrier_then) __device__ void barrier_then() { __syncthreads(); }
MARK(barrier_else) __device__ void barrier_else() { __syncthreads(); }
__global__ void two_barriers() {
    if (threadIdx.x < 40) barrier_then();
    else barrier_else();
}

Test(simt_errors, barriers_in_two_branches) {
    two_barriers<<<1, 64>>>();
    EXPECT_FAULT(cudaErrorLaunchFailure, barrier_then);
    REPORT_NAMES(barrier_else);
    report_says("divergent barrier");
}

MARK(access_before_return) __device__ bool is_needed(const int *limit) { return (int)threadIdx.x < limit[0]; }
MARK(barrier_after_return) __device__ void barrier_after_return() { __syncthreads(); }
__global__ void early_return(const int *limit, int *out) {
    if (!is_needed(limit)) return;
    out[threadIdx.x] = 1;
    barrier_after_return();
}

static void return_early() {
    EXPECT_OK(cudaMemset(ints, 1, 1)); /* as an int: 1, so that thread 0 alone goes on */
    early_return<<<1, 64>>>(ints, (int *)second);
}

Test(simt_errors, return_before_a_barrier) {
    return_early();
    EXPECT_FAULT(cudaErrorLaunchFailure, barrier_after_return);
    REPORT_NAMES(access_before_return);
    report_says("has returned from the kernel");
    report_says("__syncthreads()");
    report_says("thread (0,0,0)");
    report_says("thread (1,0,0)");
}

MARK(barrier_of_most) __device__ void barrier_of_most() { __syncthreads(); }
__global__ void return_without_access() { if (threadIdx.x != 50) barrier_of_most(); }

Test(simt_errors, return_without_an_access) {
    return_without_access<<<1, 64>>>();
    EXPECT_FAULT(cudaErrorLaunchFailure, barrier_of_most);
    report_says("has returned from the kernel (it made no access to memory)");
    report_says("thread (50,0,0)");
}

MARK(barrier_in_loop) __device__ void barrier_in_loop() { __syncthreads(); }
MARK(barrier_after_loop) __device__ void barrier_after_loop() { __syncthreads(); }
__global__ void unequal_loops() {
    for (unsigned i = 0; i < 3 + threadIdx.x / 32; i++) barrier_in_loop();
    barrier_after_loop();
}

Test(simt_errors, loops_of_unequal_length_with_a_barrier) {
    unequal_loops<<<1, 64>>>();
    EXPECT_FAULT(cudaErrorLaunchFailure, barrier_in_loop);
    REPORT_NAMES(barrier_after_loop);
}

/* ---- warps ------------------------------------------------------------------------------------------------------- */

__device__ void put_once(int *out, int x) { if (threadIdx.x == 0) *out = x; }
MARK(absent_lane) __device__ int absent_lane(int x) { return __shfl_down_sync(0xffffffffu, x, 4); }
__global__ void read_absent_lane(int *out) { put_once(out, absent_lane((int)threadIdx.x)); }

Test(simt_errors, shuffle_from_an_absent_lane) {
    read_absent_lane<<<1, 48>>>(ints);
    EXPECT_FAULT(cudaErrorLaunchFailure, absent_lane);
    report_says("__shfl_down_sync()");
    report_says("lane 12 reads lane 16");
}

MARK(lane_outside_mask) __device__ int lane_outside_mask(int x) { return __shfl_sync(0x0000ffffu, x, 20); }
__global__ void read_outside_mask(int *out) { if (threadIdx.x < 16) put_once(out, lane_outside_mask((int)threadIdx.x)); }

Test(simt_errors, shuffle_from_a_lane_outside_the_mask) {
    read_outside_mask<<<1, 32>>>(ints);
    EXPECT_FAULT(cudaErrorLaunchFailure, lane_outside_mask);
    report_says("reads lane 20");
    report_says("0x0000ffff");
}

MARK(caller_outside_mask) __device__ int caller_outside_mask(int x) { return __shfl_sync(0x0000ffffu, x, 2); }
__global__ void call_outside_mask(int *out) { put_once(out, caller_outside_mask((int)threadIdx.x)); }

Test(simt_errors, shuffle_by_a_lane_outside_its_mask) {
    call_outside_mask<<<1, 32>>>(ints);
    EXPECT_FAULT(cudaErrorLaunchFailure, caller_outside_mask);
    report_says("lane 16");
    report_says("0x0000ffff");
}

MARK(shuffle_then) __device__ int shuffle_then(int x) { return __shfl_xor_sync(0xffffffffu, x, 1); }
MARK(shuffle_else) __device__ int shuffle_else(int x) { return __shfl_xor_sync(0xffffffffu, x, 2); }
__global__ void two_shuffles(int *out) {
    int x = (int)threadIdx.x;
    put_once(out, x < 16 ? shuffle_then(x) : shuffle_else(x));
}

Test(simt_errors, shuffles_in_two_branches_never_meet) {
    two_shuffles<<<1, 32>>>(ints);
    EXPECT_FAULT(cudaErrorLaunchFailure, shuffle_then);
    REPORT_NAMES(shuffle_else);
    report_says("__shfl_xor_sync()");
}

MARK(different_masks) __global__ void different_masks() { __syncwarp(threadIdx.x < 16 ? 0xffffffffu : 0xfffffff0u); }

Test(simt_errors, lanes_with_different_masks_never_meet) {
    different_masks<<<1, 32>>>();
    EXPECT_FAULT(cudaErrorLaunchFailure, different_masks);
    report_says("__syncwarp()");
    report_says("mask");
}

__global__ void barrier_meets_shuffle(int *out) {
    if (threadIdx.x < 16) barrier_of_half();
    else out[threadIdx.x - 16] = shuffle_else(1);
}

Test(simt_errors, barrier_and_shuffle_never_meet) {
    barrier_meets_shuffle<<<1, 32>>>(ints);
    EXPECT_FAULT(cudaErrorLaunchFailure, barrier_of_half);
    REPORT_NAMES(shuffle_else);
}

/* ---- endless kernels --------------------------------------------------------------------------------------------- */

MARK(endless_reads) __global__ void endless_reads(const volatile int *flag) { while (flag[0] >= 0) {} }

Test(simt_errors, endless_loop_that_reads) {
    endless_reads<<<1, 32>>>(ints);
    EXPECT_FAULT(cudaErrorLaunchTimeout, endless_reads);
    report_says("endless loop");
}

MARK(spin) __device__ void spin(int n) { while (n >= 0) asm volatile("" : "+r"(n)); }
__global__ void endless_spin(int n) { spin(n); }

Test(simt_errors, endless_loop_without_memory) {
    endless_spin<<<1, 32>>>(1);
    EXPECT_FAULT(cudaErrorLaunchTimeout, spin);
    report_says("endless loop");
}

__device__ void write_before_spin(int *out) { out[0] = 1; }
__global__ void spin_after_write(int *out, int n) {
    if (threadIdx.x == 5) write_before_spin(out);
    if (threadIdx.x == 5) spin(n);
    __syncthreads();
}

Test(simt_errors, endless_loop_of_one_thread_after_an_access) {
    spin_after_write<<<1, 32>>>(ints, 1);
    EXPECT_FAULT(cudaErrorLaunchTimeout, spin); /* where it is stuck, not where it was before */
    report_says("thread (5,0,0)");
}

MARK(endless_barriers) __global__ void endless_barriers(int n) { while (n >= 0) __syncthreads(); }

Test(simt_errors, endless_loop_of_barriers) {
    endless_barriers<<<1, 64>>>(1);
    EXPECT_FAULT(cudaErrorLaunchTimeout, endless_barriers);
}

MARK(endless_shuffles) __global__ void endless_shuffles(int n) { while (n >= 0) n = __shfl_sync(0xffffffffu, n, 0); }

Test(simt_errors, endless_loop_of_shuffles) {
    endless_shuffles<<<1, 64>>>(1);
    EXPECT_FAULT(cudaErrorLaunchTimeout, endless_shuffles);
}

MARK(endless_atomics) __global__ void endless_atomics(int *lock) { while (atomicAdd(lock, 0) >= 0) {} }

Test(simt_errors, endless_loop_of_atomics) {
    endless_atomics<<<1, 32>>>(ints);
    EXPECT_FAULT(cudaErrorLaunchTimeout, endless_atomics);
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

__device__ int touch(volatile char *big, int n) { big[n] = 1; return big[n / 2]; }
__global__ void large_local_array(int *out, int n) {
    volatile char big[100000];
    out[0] = touch(big, n);
}

Test(simt_errors, stack_overflow_by_a_large_array) {
    large_local_array<<<1, 1>>>(ints, 1);
    EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    report_says("local memory");
    report_says("simt_errors.cu:"); /* the kernel's first line, or that of its first access */
}

MARK(endless_recursion) __device__ __noinline__ int recurse(int n) { return n < 0 ? 0 : 1 + recurse(n + 1) * 3; }
__global__ void endless_recursion(int *out, int n) { out[0] = recurse(n); }

Test(simt_errors, stack_overflow_by_recursion) {
    endless_recursion<<<1, 1>>>(ints, 1);
    EXPECT_FAULT(cudaErrorLaunchFailure, endless_recursion);
    report_says("local memory");
}

MARK(division_by_zero) __global__ void division_by_zero(int *out, int n) { out[0] = 10 / n; }

Test(simt_errors, integer_division_by_zero) {
    if (!DIVISION_TRAPS) cr_skip_test("the processor gives 0");
    division_by_zero<<<1, 1>>>(ints, 0);
    EXPECT_FAULT(cudaErrorLaunchFailure, division_by_zero);
    report_says("division by zero");
}
// clang-format on

Test(simt_errors, device_works_again_after_each_kind_of_error) {
    static const struct {
        void (*launch)();
        cudaError_t error;
    } faults[] = {{[] { read_at<<<dim3(1, 2), 64>>>(floats, second, COUNT); }, cudaErrorIllegalAddress},
                  {[] { two_barriers<<<1, 64>>>(); }, cudaErrorLaunchFailure},
                  {return_early, cudaErrorLaunchFailure},
                  {[] { different_masks<<<1, 32>>>(); }, cudaErrorLaunchFailure},
                  {[] { endless_spin<<<1, 32>>>(1); }, cudaErrorLaunchTimeout},
                  {[] { division_by_zero<<<1, 1>>>(ints, 0); }, cudaErrorLaunchFailure},
                  {[] { endless_reads<<<1, 32>>>(ints); }, cudaErrorLaunchTimeout},
                  {[] { read_vector<<<1, 1>>>(floats + 1, (float4 *)second); }, cudaErrorMisalignedAddress}};
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 8; i++) {
            if (i == 5 && !DIVISION_TRAPS) continue;
            faults[i].launch();
            EXPECT_ERROR(cudaDeviceSynchronize(), faults[i].error);
            EXPECT_OK(cudaDeviceReset());
            check_indices(dim3(40), dim3(100));
            make_arrays();
        }
    }
}
