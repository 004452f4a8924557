/* What files of kernels and their tests share: arrays on the device, and calls that must succeed or fail. Planted faults have
 * faults.h for it. */
#ifndef DEVICE_TEST_H
#define DEVICE_TEST_H

#include "captured.h"

#include <criterion/criterion.h>
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

static inline bool simulated() { return simt_last_report != nullptr; }
static inline const char *report() { return simulated() ? simt_last_report() : ""; }

/* For .init. */
static inline void need_device() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) cr_skip_test("needs a CUDA device or the simulated one");
}

static inline void need_simulated_device() {
    need_device();
    if (!simulated()) cr_skip_test("needs the simulated device");
}

/* ---- calls ---- */

#define EXPECT_ERROR(call, error) expect_error((call), (error), #call, __LINE__)
#define EXPECT_OK(call) expect_error((call), cudaSuccess, #call, __LINE__)

/* Where a call is to fail, capture_stderr() comes before it. */
static inline void expect_error(cudaError_t got, cudaError_t expected, const char *call, int line) {
    cr_assert_eq(got, expected, "line %d: %s gives %s instead of %s\n%s", line, call, cudaGetErrorName(got),
                 cudaGetErrorName(expected), report());
    if (expected != cudaSuccess) expect_reports();
}

/* ---- arrays ---- */

template <class T> T *on_device(const T *values, size_t count) {
    T *memory = nullptr;
    EXPECT_OK(cudaMalloc(&memory, count * sizeof(T)));
    EXPECT_OK(cudaMemcpy(memory, values, count * sizeof(T), cudaMemcpyHostToDevice));
    return memory;
}
template <class T, size_t COUNT> T *on_device(const T (&values)[COUNT]) { return on_device(values, COUNT); }

/* Every byte is `byte`: 0, or 0xff for "not written yet". */
template <class T> T *filled_on_device(int byte, size_t count) {
    T *memory = nullptr;
    EXPECT_OK(cudaMalloc(&memory, count * sizeof(T)));
    EXPECT_OK(cudaMemset(memory, byte, count * sizeof(T)));
    return memory;
}

/* Waits for the launches before it and frees the device's copy. */
template <class T> std::vector<T> take_back(T *memory, size_t count) {
    std::vector<T> values(count);
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_OK(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
    EXPECT_OK(cudaFree(memory));
    return values;
}

/* Takes `memory` back and compares; says which element differs. */
template <class T> void expect_values(T *memory, const T *expected, int count, const char *what) {
    auto got = take_back(memory, (size_t)count);
    for (int i = 0; i < count; i++)
        cr_assert_eq(got[i], expected[i], "%s: element %d is %.10g instead of %.10g", what, i, (double)got[i],
                     (double)expected[i]);
}

/* Small numbers without a pattern that a wrong index would repeat. */
static inline int scrambled(int i) { return (int)((unsigned)i * 2654435761u >> 22) - 512; }

__device__ static inline int global_thread() { return (int)(blockIdx.x * blockDim.x + threadIdx.x); }

#endif
