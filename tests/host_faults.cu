/* The host takes a device pointer for its own, calls a kernel, divides by zero, or launches what cannot be launched; assertions. */
#include "faults.h"

#include <cassert>
#include <cstdio>
#include <cstring>

/* ---- the host takes a device pointer for its own ------------------------------------------------------------------ */

__global__ void plus_one(int *out) { out[threadIdx.x]++; }

template <bool CORRECT> static void host_reads_device(const int *in, int *out) {
    int first = 0;
    plus_one<<<1, 1>>>(out);
    if (CORRECT)
        cudaMemcpy(&first, in, sizeof first, cudaMemcpyDeviceToHost);
    else
        first = in[3]; // here
    cudaMemcpy(out, &first, sizeof first, cudaMemcpyHostToDevice);
}
FAULT(host_reads_device, FAULT_OF_HOST, "the host reads device memory at", FIRST(1, in[0]),
      host_reads_device<CORRECT>(in, out))

/* Before anything was launched. */
template <bool CORRECT> static void host_writes_device(const int *in, int *out) {
    int value = 5;
    (void)in;
    if (CORRECT)
        cudaMemcpy(out, &value, sizeof value, cudaMemcpyHostToDevice);
    else
        out[0] = value; // here
}
FAULT(host_writes_device, FAULT_OF_HOST, "the host writes device memory at", FIRST(1, 5),
      host_writes_device<CORRECT>(in, out))

/* Inside a function of the C library: the line is that of the call. */
template <bool CORRECT> static void host_copies_device(const int *in, int *out) {
    static int values[ELEMENTS];
    if (CORRECT)
        cudaMemcpy(values, in, sizeof values, cudaMemcpyDeviceToHost);
    else
        memcpy(values, in, sizeof values); // here
    cudaMemcpy(out, values, sizeof values, cudaMemcpyHostToDevice);
}
FAULT(host_copies_device, FAULT_OF_HOST, "the host reads device memory at", FIRST(ELEMENTS, in[i]),
      host_copies_device<CORRECT>(in, out))

template <bool CORRECT> __global__ void copy_to(const int *in, int *out) {
    __shared__ int row[T];
    row[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = row[T - 1 - threadIdx.x];
}
template <bool CORRECT> static void host_calls_kernel(const int *in, int *out) {
    void (*kernel)(const int *, int *) = copy_to<CORRECT>; // nvcc would refuse the call of a name
    if (CORRECT)
        kernel<<<1, T>>>(in, out);
    else
        kernel(in, out); // here
}
FAULT(host_calls_kernel, FAULT_OF_HOST, "without <<<grid, block>>>", FIRST(T, in[T - 1 - i]),
      host_calls_kernel<CORRECT>(in, out))

/* As where a student's constant is 0: the number of blocks cannot be computed. The program ends by the signal, as it does on
 * a card, but says where. */
template <bool CORRECT> static void host_divides_by_zero(const int *in, int *out) {
    volatile int threads = CORRECT ? T : 0;
    int blocks = T / threads; // here
    copy_to<CORRECT><<<blocks, threads>>>(in, out);
}
FAULT(host_divides_by_zero, SIGNAL_OF_HOST, "integer division by zero on the host", FIRST(T, in[T - 1 - i]),
      host_divides_by_zero<CORRECT>(in, out))

template <bool CORRECT> __global__ void assertion_fails(const int *in, int *out) {
    int t = (int)threadIdx.x;
    assert(CORRECT || t != 77); // here
    out[t] = in[t];
}
FAULT(assertion_fails, cudaErrorAssert, "thread (77,0,0)", FIRST(T, in[i]), assertion_fails<CORRECT><<<1, T>>>(in, out))

/* Rows of 20 elements, 32 threads each: the last twelve reach the next row. */
template <bool CORRECT> __global__ void row_without_bounds_check(const int *in, int *out) {
    int row = (int)blockIdx.x, col = (int)threadIdx.x;
    if (CORRECT ? col < 20 : col < 32) out[row * 20 + col] = in[col] + row; // here
}
FAULT(row_without_bounds_check, cudaErrorLaunchFailure, "does an index leave its row", FIRST(200, in[i % 20] + i / 20),
      row_without_bounds_check<CORRECT><<<10, 32>>>(in, out))

__global__ void copy_ints(const int *in, int *out) { out[threadIdx.x % T] = in[threadIdx.x % T]; }
__global__ void double_ints(const int *copied, int *out) { out[threadIdx.x] = 2 * copied[threadIdx.x]; }
/* out[i] = in[i] in a block of so many threads, then out[i] += out[i] in one of 128: only when the first has run is there
 * something to add. */
static void launch_copy_then_double(int threads, const int *in, int *out) {
    int *copied = new_ints(T);
    copy_ints<<<1, threads>>>(in, copied);
    double_ints<<<1, T>>>(copied, out);
}

Test(messages, launch_with_too_many_threads) {
    struct arrays arrays;
    make_arrays(&arrays);
    launch_copy_then_double(2048, arrays.in, arrays.out);
    cr_assert_eq(cudaGetLastError(), cudaErrorInvalidConfiguration);
    report_says("launch of copy_ints: 2048 threads per block, at most 1024");
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess, "the second kernel is accused:\n%s", report());
    /* Who goes on although the error was there is not accused of what the first kernel did not write. */
    launch_copy_then_double(2048, arrays.in, arrays.out);
    cudaGetLastError();
    launch_copy_then_double(128, arrays.in, arrays.out);
    cr_assert_eq(cudaDeviceSynchronize(), cudaSuccess, "%s", report());
}

Test(messages, launch_of_no_threads) {
    struct arrays arrays;
    make_arrays(&arrays);
    launch_copy_then_double(0, arrays.in, arrays.out);
    cr_assert_eq(cudaGetLastError(), cudaErrorInvalidConfiguration);
    report_says("launch of copy_ints: a block of (0,1,1) threads has none");
}
