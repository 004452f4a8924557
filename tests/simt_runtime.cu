/* The runtime API: copies, memory, events, streams, errors, attributes; and what only the simulated device offers. */
#include "device_test.h"
#include "processor.h"

#include <math.h>

void check_indices(dim3 grid, dim3 block); /* of simt_threads.cu: launches one kernel, whose results must be right */

__global__ static void empty() {}

Test(simt_features, memcpy_in_every_direction) {
    enum { N = 1000 };
    int in[N], back[N] = {0}, *a = nullptr, *b = nullptr;
    for (int i = 0; i < N; i++) in[i] = scrambled(i);
    EXPECT_OK(cudaMalloc(&a, sizeof in));
    EXPECT_OK(cudaMalloc(&b, sizeof in));
    EXPECT_OK(cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice));
    EXPECT_OK(cudaMemcpy(b, a, sizeof in, cudaMemcpyDeviceToDevice));
    EXPECT_OK(cudaMemcpy(back, b, sizeof in, cudaMemcpyDeviceToHost));
    cr_assert_arr_eq(back, in, sizeof in);
    EXPECT_OK(cudaMemset(a, 0, sizeof in));
    EXPECT_OK(cudaMemcpy(a + 10, in + 10, 20 * sizeof *in, cudaMemcpyDefault));
    EXPECT_OK(cudaMemcpy(back, a, sizeof in, cudaMemcpyDefault));
    for (int i = 0; i < N; i++) cr_assert_eq(back[i], i >= 10 && i < 30 ? in[i] : 0, "element %d", i);
    EXPECT_OK(cudaMemcpy(back, in, sizeof in, cudaMemcpyHostToHost));
    cr_assert_arr_eq(back, in, sizeof in);
    EXPECT_OK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
}

Test(simt_features, memset_writes_bytes) {
    unsigned char expected[100], *memory = filled_on_device<unsigned char>(0, sizeof expected);
    memset(expected, 0, sizeof expected);
    memset(expected + 3, 0xab, 50);
    EXPECT_OK(cudaMemset(memory + 3, 0x1ab, 50)); /* only the lowest byte counts */
    expect_values(memory, expected, sizeof expected, "bytes");
}

Test(simt_features, memcpy_in_wrong_directions) {
    int host[100] = {0}, *device = filled_on_device<int>(0, 100);
    EXPECT_ERROR(cudaMemcpy(host, device, sizeof host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(device, host, sizeof host, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(device, host, sizeof host, (cudaMemcpyKind)17), cudaErrorInvalidMemcpyDirection);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidMemcpyDirection);
    EXPECT_OK(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
}

Test(simt_features, malloc_and_free) {
    void *memory = (void *)1, *other = nullptr;
    EXPECT_OK(cudaMalloc(&memory, 0));
    cr_assert_null(memory);
    EXPECT_OK(cudaFree(nullptr));
    EXPECT_ERROR(cudaMalloc(&memory, (size_t)1 << 50), cudaErrorMemoryAllocation);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation);
    EXPECT_ERROR(cudaMalloc(nullptr, 4), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_OK(cudaMalloc(&memory, 1));
    EXPECT_OK(cudaMalloc(&other, 1));
    cr_assert_neq(memory, other);
    cr_assert_eq((uintptr_t)memory % 256, 0);
    EXPECT_OK(cudaFree(memory));
    EXPECT_OK(cudaFree(other));
}

Test(simt_features, free_of_a_bad_pointer) {
    int host = 0;
    char *memory = filled_on_device<char>(0, 1000);
    EXPECT_ERROR(cudaFree(&host), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaFree(memory + 256), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_OK(cudaFree(memory));
    EXPECT_ERROR(cudaFree(memory), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
}

Test(simt_features, memory_info) {
    size_t before = 0, after = 0, total = 0, bytes = 64 << 20;
    void *memory = nullptr;
    EXPECT_OK(cudaMemGetInfo(&before, &total));
    cr_assert(before > 0 && before <= total);
    EXPECT_OK(cudaMalloc(&memory, bytes));
    EXPECT_OK(cudaMemGetInfo(&after, &total));
    /* A card may be shared with others: only the simulated device's count is exact. */
    if (simulated()) cr_assert_eq(before - after, bytes, "%zu bytes", before - after);
}

__global__ static void count_threads(int *count) { atomicAdd(count, 1); }

Test(simt_features, events) {
    cudaEvent_t start = nullptr, stop = nullptr;
    float elapsed = -1.0f;
    int *count = filled_on_device<int>(0, 1);
    EXPECT_OK(cudaEventCreate(&start));
    EXPECT_OK(cudaEventCreate(&stop));
    EXPECT_OK(cudaEventRecord(start, nullptr));
    count_threads<<<100, 100>>>(count);
    EXPECT_OK(cudaEventRecord(stop, nullptr));
    EXPECT_OK(cudaEventSynchronize(stop));
    EXPECT_OK(cudaEventElapsedTime(&elapsed, start, stop));
    cr_assert(elapsed >= 0.0f && elapsed < 60e3f, "%g ms", elapsed);
    EXPECT_OK(cudaEventDestroy(start));
    EXPECT_OK(cudaEventDestroy(stop));
}

Test(simt_features, a_query_is_no_wait) {
    need_simulated_device();
    cudaEvent_t event = nullptr;
    EXPECT_OK(cudaEventCreate(&event));
    EXPECT_OK(cudaEventRecord(event, nullptr));
    unsigned long waits = simt_waits();
    EXPECT_OK(cudaEventQuery(event));
    EXPECT_OK(cudaStreamQuery(nullptr));
    cr_assert_eq(simt_waits(), waits, "a query counts as a wait");
    EXPECT_OK(cudaEventSynchronize(event));
    cr_assert_eq(simt_waits(), waits + 1, "a wait does not count");
}

Test(simt_features, events_not_recorded) {
    cudaEvent_t start = nullptr, stop = nullptr;
    float elapsed = -1.0f;
    EXPECT_OK(cudaEventCreate(&start));
    EXPECT_OK(cudaEventCreate(&stop));
    EXPECT_ERROR(cudaEventElapsedTime(&elapsed, start, stop), cudaErrorInvalidResourceHandle);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    EXPECT_OK(cudaEventRecord(start, nullptr));
    EXPECT_ERROR(cudaEventElapsedTime(&elapsed, start, stop), cudaErrorInvalidResourceHandle);
}

__global__ static void add(int *data, int n, int addend) {
    int i = global_thread();
    if (i < n) data[i] += addend;
}

Test(simt_features, streams) {
    enum { N = 1000 };
    int in[N], back[N] = {0}, *data = nullptr;
    cudaStream_t stream = nullptr;
    for (int i = 0; i < N; i++) in[i] = scrambled(i);
    EXPECT_OK(cudaMalloc(&data, sizeof in));
    EXPECT_OK(cudaStreamCreate(&stream));
    EXPECT_OK(cudaMemsetAsync(data, 0xff, sizeof in, stream));
    EXPECT_OK(cudaMemcpyAsync(data, in, sizeof in / 2, cudaMemcpyHostToDevice, stream));
    add<<<(N + 63) / 64, 64, 0, stream>>>(data, N, 5);
    add<<<(N + 63) / 64, 64, 0, stream>>>(data, N, -2);
    EXPECT_OK(cudaMemcpyAsync(back, data, sizeof in, cudaMemcpyDeviceToHost, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < N; i++) cr_assert_eq(back[i], (i < N / 2 ? in[i] : -1) + 3, "element %d is %d", i, back[i]);
    EXPECT_OK(cudaStreamDestroy(stream));
}

Test(simt_features, get_last_error_clears_and_peek_does_not) {
    EXPECT_OK(cudaPeekAtLastError());
    EXPECT_ERROR(cudaMalloc(nullptr, 4), cudaErrorInvalidValue);
    EXPECT_OK(cudaDeviceSynchronize()); /* success forgets nothing */
    EXPECT_ERROR(cudaPeekAtLastError(), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaPeekAtLastError(), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaPeekAtLastError());
}

Test(simt_features, error_names) {
#define CHECK_NAME(error) cr_assert_str_eq(cudaGetErrorName(error), #error)
    CHECK_NAME(cudaSuccess);
    CHECK_NAME(cudaErrorInvalidValue);
    CHECK_NAME(cudaErrorMemoryAllocation);
    CHECK_NAME(cudaErrorInitializationError);
    CHECK_NAME(cudaErrorInvalidConfiguration);
    CHECK_NAME(cudaErrorInvalidSymbol);
    CHECK_NAME(cudaErrorInvalidDevicePointer);
    CHECK_NAME(cudaErrorInvalidMemcpyDirection);
    CHECK_NAME(cudaErrorInvalidDeviceFunction);
    CHECK_NAME(cudaErrorNoDevice);
    CHECK_NAME(cudaErrorInvalidDevice);
    CHECK_NAME(cudaErrorInvalidResourceHandle);
    CHECK_NAME(cudaErrorNotReady);
    CHECK_NAME(cudaErrorIllegalAddress);
    CHECK_NAME(cudaErrorLaunchTimeout);
    CHECK_NAME(cudaErrorAssert);
    CHECK_NAME(cudaErrorMisalignedAddress);
    CHECK_NAME(cudaErrorLaunchFailure);
    CHECK_NAME(cudaErrorNotSupported);
    CHECK_NAME(cudaErrorUnknown);
    cr_assert_str_eq(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument");
    cr_assert_str_eq(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    cr_assert_str_eq(cudaGetErrorString(cudaErrorIllegalAddress), "an illegal memory access was encountered");
}

Test(simt_features, device_attributes) {
    cudaDeviceProp properties;
    int count = 0, device = -1, value = 0;
    EXPECT_OK(cudaGetDeviceCount(&count));
    EXPECT_OK(cudaGetDevice(&device));
    cr_assert(count >= 1 && device == 0);
    EXPECT_OK(cudaSetDevice(0));
    EXPECT_OK(cudaGetDeviceProperties(&properties, 0));
    cr_assert(properties.warpSize == 32 && properties.maxThreadsPerBlock == 1024);
    EXPECT_OK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
    cr_assert_eq(value, 32);
    EXPECT_OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlock, 0));
    cr_assert_eq(value, 48 << 10);
    EXPECT_ERROR(cudaSetDevice(count), cudaErrorInvalidDevice);
    EXPECT_ERROR(cudaGetDeviceProperties(&properties, count), cudaErrorInvalidDevice);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidDevice);
}

Test(simt_features, call_that_is_to_fail) {
    need_simulated_device();
    cr_assert_eq(simt_fail_call(2), 0);
    empty<<<1, 1>>>();
    EXPECT_OK(cudaGetLastError());
    empty<<<1, 1>>>();
    EXPECT_ERROR(cudaGetLastError(), cudaErrorLaunchOutOfResources);
    empty<<<1, 1>>>();
    EXPECT_OK(cudaGetLastError());
    simt_fail_call(3);
    cr_assert_eq(simt_fail_call(0), 3);
}

Test(simt_features, reserved_memory) {
    need_simulated_device();
    size_t bytes = (size_t)1 << LARGE_MEMORY_BITS;
    char *memory = (char *)simt_reserve(bytes), last = 1;
    cr_assert_not_null(memory);
    EXPECT_OK(cudaMemcpy(&last, memory + bytes - 1, 1, cudaMemcpyDeviceToHost));
    cr_assert_eq(last, 0);
    EXPECT_OK(cudaMemset(memory + bytes - 1, 7, 1));
    EXPECT_OK(cudaMemcpy(&last, memory + bytes - 1, 1, cudaMemcpyDeviceToHost));
    cr_assert_eq(last, 7);
    EXPECT_OK(cudaMemset(memory, 0, bytes));
    EXPECT_OK(cudaMemcpy(&last, memory + bytes - 1, 1, cudaMemcpyDeviceToHost));
    cr_assert_eq(last, 0);
    EXPECT_OK(cudaFree(memory));
}

Test(simt_features, uses_of_the_default_stream) {
    need_simulated_device();
    cudaStream_t stream = nullptr;
    char *memory = nullptr;
    EXPECT_OK(cudaStreamCreate(&stream));
    EXPECT_OK(cudaMalloc(&memory, 4));
    unsigned long before = simt_default_stream_uses();
    EXPECT_OK(cudaMemsetAsync(memory, 0, 4, stream));
    cr_assert_eq(simt_default_stream_uses(), before);
    EXPECT_OK(cudaMemsetAsync(memory, 0, 4, nullptr));
    empty<<<1, 1>>>();
    cr_assert_eq(simt_default_stream_uses(), before + 2);
    EXPECT_OK(cudaFree(memory));
    EXPECT_OK(cudaStreamDestroy(stream));
}

/* ---- what the simulated device must refuse ------------------------------------------------------------------------- */

/* A fresh allocation holds NaN, so that what a kernel should have written and did not shows in results. */
Test(simt_errors, fresh_device_memory_is_nan) {
    enum { N = 3000 };
    for (int round = 0; round < 3; round++) {
        float *fresh = nullptr, got[N] = {0};
        EXPECT_OK(cudaMalloc(&fresh, N * sizeof *fresh));
        EXPECT_OK(cudaMemcpy(got, fresh, N * sizeof *fresh, cudaMemcpyDeviceToHost));
        for (int i = 0; i < N; i++) cr_assert(isnan(got[i]), "round %d: element %d is %g", round, i, (double)got[i]);
        /* What was there before must not shine through. */
        EXPECT_OK(cudaMemset(fresh, 0, N * sizeof *fresh));
        EXPECT_OK(cudaFree(fresh));
    }
}

Test(simt_errors, memcpy_and_memset_past_the_end) {
    int host[20] = {0}, *device = filled_on_device<int>(0, 10);
    int *other = filled_on_device<int>(0, 20);
    EXPECT_ERROR(cudaMemcpy(device, host, 11 * sizeof *host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(device + 1, host, 10 * sizeof *host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(host, device, 11 * sizeof *host, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(other, device, 11 * sizeof *host, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(host, device, 11 * sizeof *host, cudaMemcpyDefault), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemset(device, 0, 10 * sizeof *device + 1), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemset(host, 0, sizeof host), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(other, host, sizeof host, cudaMemcpyHostToHost), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaMemcpy(other, host, sizeof host, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
    EXPECT_OK(cudaMemcpy(other, host, sizeof host, cudaMemcpyHostToDevice));
}

__global__ static void write_word(int *word) { *word = 1; }

Test(simt_errors, error_in_a_kernel_is_sticky_until_reset) {
    cudaEvent_t event = nullptr, second = nullptr;
    cudaStream_t stream = nullptr;
    float elapsed = 0;
    int host = 0, *device = filled_on_device<int>(0, 1);
    void *more = nullptr;
    cudaError_t stuck = cudaErrorIllegalAddress;
    EXPECT_OK(cudaEventCreate(&event));
    EXPECT_OK(cudaEventCreate(&second));
    EXPECT_OK(cudaEventRecord(event, nullptr));
    EXPECT_OK(cudaEventRecord(second, nullptr));
    EXPECT_OK(cudaStreamCreate(&stream));
    write_word<<<1, 1>>>(nullptr);
    EXPECT_ERROR(cudaDeviceSynchronize(), stuck);
    EXPECT_ERROR(cudaGetLastError(), stuck);
    EXPECT_ERROR(cudaGetLastError(), stuck);
    EXPECT_ERROR(cudaPeekAtLastError(), stuck);
    EXPECT_ERROR(cudaDeviceSynchronize(), stuck);
    EXPECT_ERROR(cudaMalloc(&more, 4), stuck);
    EXPECT_ERROR(cudaMalloc(&more, 0), stuck);
    EXPECT_ERROR(cudaFree(device), stuck);
    EXPECT_ERROR(cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost), stuck);
    EXPECT_ERROR(cudaMemcpyAsync(&host, device, sizeof host, cudaMemcpyDeviceToHost, stream), stuck);
    EXPECT_ERROR(cudaMemset(device, 0, sizeof host), stuck);
    EXPECT_ERROR(cudaMemsetAsync(device, 0, sizeof host, stream), stuck);
    EXPECT_ERROR(cudaEventRecord(event, nullptr), stuck);
    EXPECT_ERROR(cudaEventSynchronize(event), stuck);
    EXPECT_ERROR(cudaEventElapsedTime(&elapsed, event, second), stuck);
    EXPECT_ERROR(cudaStreamSynchronize(stream), stuck);
    EXPECT_ERROR(cudaFuncSetAttribute(write_word, cudaFuncAttributeMaxDynamicSharedMemorySize, 1000), stuck);
    write_word<<<1, 1>>>(device); /* runs nothing */
    EXPECT_ERROR(cudaGetLastError(), stuck);
    write_word<<<1, 0>>>(device);
    EXPECT_ERROR(cudaGetLastError(), stuck);
    cr_assert_not_null(strstr(report(), "null pointer"), "%s", report());

    EXPECT_OK(cudaDeviceReset());
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaDeviceSynchronize());
    cr_assert_str_empty(report());
    check_indices(dim3(3), dim3(64));
}

Test(simt_errors, reset_frees_memory) {
    int *device = filled_on_device<int>(0, 1);
    EXPECT_OK(cudaDeviceReset());
    EXPECT_ERROR(cudaMemset(device, 0, sizeof *device), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaFree(device), cudaErrorInvalidValue);
}
