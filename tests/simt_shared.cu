/* Shared memory: arrays of fixed and of dynamic size, their places and their limits. */
#include "device_test.h"

__global__ static void transpose(const float *in, float *out) {
    __shared__ float tile[32][32 + 1];
    int x = (int)threadIdx.x;
    for (int y = (int)threadIdx.y; y < 32; y += (int)blockDim.y) tile[y][x] = in[32 * y + x];
    __syncthreads();
    for (int y = (int)threadIdx.y; y < 32; y += (int)blockDim.y) out[32 * y + x] = tile[x][y];
}

Test(simt_features, shared_2d_array) {
    enum { N = 32 };
    float in[N * N], expected[N * N], *out = filled_on_device<float>(0xff, N * N);
    for (int i = 0; i < N * N; i++) in[i] = (float)scrambled(i);
    for (int i = 0; i < N * N; i++) expected[i] = in[i % N * N + i / N];
    transpose<<<1, dim3(32, 8)>>>(on_device(in), out);
    expect_values(out, expected, N * N, "transposed");
}

/* A declaration over two lines is part of the test: it moves no line behind it. */
// clang-format off
__global__ static void many_arrays(const int *in, int *out) {
    __shared__ int mirrored[32], paired[16][2], total;
    __shared__ unsigned long long
        threads_seen;
    int t = (int)threadIdx.x, lines_moved = __builtin_LINE() - __LINE__;
    if (t == 0) total = 0, threads_seen = 0;
    mirrored[t] = in[t];
    paired[t / 2][t % 2] = in[t];
    __syncthreads();
    atomicAdd(&total, in[t]);
    atomicAdd(&threads_seen, 1ull);
    __syncthreads();
    out[t] = mirrored[31 - t] + 10 * paired[t / 2][1 - t % 2] + total + (int)threads_seen - 32 + 100000 * lines_moved;
}
// clang-format on

Test(simt_features, shared_arrays_and_scalars_in_one_declaration) {
    enum { N = 32 };
    int in[N], expected[N], sum = 0, *out = filled_on_device<int>(0xff, N);
    for (int i = 0; i < N; i++) sum += in[i] = scrambled(i);
    for (int i = 0; i < N; i++) expected[i] = in[N - 1 - i] + 10 * in[i ^ 1] + sum;
    many_arrays<<<1, N>>>(on_device(in), out);
    expect_values(out, expected, N, "sum");
}

template <typename T, int N> __device__ T sum_of_squares() {
    __shared__ T squares[2][N / 2];
    int t = (int)threadIdx.x;
    if (t < N) squares[t & 1][t >> 1] = (T)(t * t);
    __syncthreads();
    T sum = 0;
    for (int i = 0; i < N; i++) sum += squares[i & 1][i >> 1];
    __syncthreads();
    return sum;
}

__global__ static void dependent_sizes(int *out) {
    int t = (int)threadIdx.x;
    out[t] = sum_of_squares<int, 8>();
    out[64 + t] = (int)sum_of_squares<float, 16>();
    out[128 + t] = (int)sum_of_squares<double, 32>();
    out[192 + t] = (int)sum_of_squares<long long, 64>();
}

Test(simt_features, shared_arrays_of_dependent_size) {
    int expected[4 * 64], *out = filled_on_device<int>(0xff, 4 * 64);
    for (int i = 0; i < 4 * 64; i++) {
        int n = 8 << i / 64;
        expected[i] = (n - 1) * n * (2 * n - 1) / 6;
    }
    dependent_sizes<<<1, 64>>>(out);
    expect_values(out, expected, 4 * 64, "sum of squares");
}

__global__ static void aligned_arrays(float *out, unsigned *misplaced) {
    __shared__ char odd_sized[3];
    __shared__ __align__(16) float first[64];
    __shared__ alignas(16) float second[64];
    __shared__ float4 third[16];
    int t = (int)threadIdx.x;
    if (t < 3) odd_sized[t] = (char)t;
    first[t] = (float)t;
    __syncthreads();
    if (t < 16) reinterpret_cast<float4 *>(second)[t] = reinterpret_cast<const float4 *>(first)[t];
    __syncthreads();
    if (t < 16) third[t] = reinterpret_cast<const float4 *>(second)[t];
    __syncthreads();
    out[t] = reinterpret_cast<const float *>(third)[t] + (float)odd_sized[t % 3];
    if (t == 0) *misplaced = (unsigned)(((size_t)first | (size_t)second | (size_t)third) % 16);
}

Test(simt_features, shared_arrays_aligned_for_vectors) {
    float expected[64], *out = filled_on_device<float>(0xff, 64);
    unsigned *misplaced = filled_on_device<unsigned>(0xff, 1), aligned = 0;
    for (int i = 0; i < 64; i++) expected[i] = (float)(i + i % 3);
    aligned_arrays<<<1, 64>>>(out, misplaced);
    expect_values(misplaced, &aligned, 1, "addresses modulo 16");
    expect_values(out, expected, 64, "copies");
}

__device__ static int *one_array() {
    __shared__ int array[64];
    return array;
}

/* One declaration is reached from two calls. */
__global__ static void repeated_site(int *out) {
    one_array()[threadIdx.x] = (int)threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = one_array()[63 - threadIdx.x];
}

Test(simt_features, shared_declaration_reached_twice_is_one_array) {
    int expected[64], *out = filled_on_device<int>(0xff, 64);
    for (int i = 0; i < 64; i++) expected[i] = 63 - i;
    repeated_site<<<1, 64>>>(out);
    expect_values(out, expected, 64, "reversed");
}

/* ---- dynamic shared memory --------------------------------------------------------------------------------------- */

enum { SHARED_48_KB = 48 << 10, SHARED_227_KB = 227 << 10 };

__global__ static void dynamic_shared(int *out, int count) {
    extern __shared__ int dynamic_ints[];
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x) dynamic_ints[i] = 7 * i;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x) out[i] = dynamic_ints[count - 1 - i];
}

static cudaError_t allow_dynamic_shared(int bytes) {
    return cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

static void run_dynamic_shared(int *out, int bytes) { dynamic_shared<<<1, 128, bytes>>>(out, bytes / (int)sizeof(int)); }

static void check_dynamic_shared(int bytes) {
    int n = bytes / (int)sizeof(int), *out = filled_on_device<int>(0xff, n);
    std::vector<int> expected(n);
    for (int i = 0; i < n; i++) expected[i] = 7 * (n - 1 - i);
    run_dynamic_shared(out, bytes);
    expect_values(out, expected.data(), n, "dynamic shared memory");
}

Test(simt_features, dynamic_shared_up_to_48_kb) {
    check_dynamic_shared(4);
    check_dynamic_shared(1000);
    check_dynamic_shared(SHARED_48_KB);
}

Test(simt_features, dynamic_shared_beyond_48_kb_is_refused_without_the_attribute) {
    int *out = filled_on_device<int>(0, SHARED_227_KB / sizeof(int));
    run_dynamic_shared(out, SHARED_48_KB + 4);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    run_dynamic_shared(out, SHARED_227_KB);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_OK(cudaDeviceSynchronize());
    check_dynamic_shared(SHARED_48_KB);
}

static void need_227_kb() {
    int most = 0;
    EXPECT_OK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    if (most < SHARED_227_KB) cr_skip_test("needs 227 KB of shared memory; this card has less");
}

Test(simt_features, dynamic_shared_of_227_kb_with_the_attribute) {
    need_227_kb();
    EXPECT_OK(allow_dynamic_shared(SHARED_227_KB));
    check_dynamic_shared(SHARED_227_KB);
    check_dynamic_shared(SHARED_48_KB + 4);
    check_dynamic_shared(1000);
}

Test(simt_features, dynamic_shared_beyond_the_attribute_is_refused) {
    need_227_kb();
    EXPECT_OK(allow_dynamic_shared(100000));
    check_dynamic_shared(100000);
    run_dynamic_shared(filled_on_device<int>(0, SHARED_227_KB / sizeof(int)), 100004);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_ERROR(allow_dynamic_shared(SHARED_227_KB + 1), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    check_dynamic_shared(100000);
}

/* Doubles, then ints, in one dynamic array. */
__global__ static void dynamic_parts(double *out, int n) {
    extern __shared__ __align__(16) unsigned char dynamic_bytes[];
    double *doubles = reinterpret_cast<double *>(dynamic_bytes);
    int *ints = reinterpret_cast<int *>(doubles + n);
    int t = (int)threadIdx.x;
    doubles[t] = 0.5 * t;
    ints[n - 1 - t] = t;
    __syncthreads();
    out[t] = doubles[n - 1 - t] + ints[t];
}

Test(simt_features, dynamic_shared_divided_by_hand) {
    enum { N = 200 };
    double expected[N], *out = filled_on_device<double>(0xff, N);
    for (int i = 0; i < N; i++) expected[i] = 1.5 * (N - 1 - i);
    dynamic_parts<<<1, N, N * (sizeof(double) + sizeof(int))>>>(out, N);
    expect_values(out, expected, N, "double + int");
}

__global__ static void dynamic_and_static(int *out) {
    __shared__ int fixed[256];
    extern __shared__ int dynamic_more[];
    int t = (int)threadIdx.x, n = (int)blockDim.x;
    fixed[t] = t;
    dynamic_more[t] = 1000 * t;
    __syncthreads();
    out[t] = fixed[n - 1 - t] + dynamic_more[n - 1 - t];
}

Test(simt_features, dynamic_beside_static_shared) {
    int expected[256], *out = filled_on_device<int>(0xff, 256);
    for (int i = 0; i < 256; i++) expected[i] = 1001 * (255 - i);
    dynamic_and_static<<<1, 256, 256 * sizeof(int)>>>(out);
    expect_values(out, expected, 256, "static + dynamic");
}

__global__ static void big_static(float *out) {
    __shared__ float big_block[4096]; /* 16 KB */
    extern __shared__ float dynamic_floats[];
    big_block[threadIdx.x] = 1.0f;
    dynamic_floats[threadIdx.x] = 2.0f;
    __syncthreads();
    out[threadIdx.x] = big_block[31 - threadIdx.x] + dynamic_floats[31 - threadIdx.x];
}

Test(simt_features, static_and_dynamic_shared_together_beyond_48_kb_are_refused) {
    float *out = filled_on_device<float>(0, 32);
    big_static<<<1, 32, SHARED_48_KB - (16 << 10)>>>(out);
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaDeviceSynchronize());
    big_static<<<1, 32, SHARED_48_KB - (16 << 10) + 16>>>(out);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize(); /* the simulated device learns it inside the kernel */
    cr_assert_neq(error, cudaSuccess, "48 KB and 16 bytes were accepted without the attribute");
}

/* ---- a device with less shared memory ---------------------------------------------------------------------------- */

static void set_99_kib() {
    setenv("SIMT_SHARED_KIB", "99", 1);
    need_simulated_device();
    capture_stderr();
}
TestSuite(simt_shared_99_kib, .init = set_99_kib, .timeout = 60);

Test(simt_shared_99_kib, is_told_and_kept) {
    cudaDeviceProp properties;
    int value = 0;
    EXPECT_OK(cudaGetDeviceProperties(&properties, 0));
    EXPECT_OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    cr_assert_eq(properties.sharedMemPerBlockOptin, 99 << 10);
    cr_assert_eq(value, 99 << 10);
    EXPECT_ERROR(allow_dynamic_shared((99 << 10) + 1), cudaErrorInvalidValue);
    EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_OK(allow_dynamic_shared(99 << 10));
    check_dynamic_shared(99 << 10);
}

static void compare_at_exit() {
    char *text = captured_text();
    const char *expected = "simulated device: SIMT_SHARED_KIB is \"100\": it must be 64, 99, 163 or 227\n";
    if (text[0] != '\0' && strcmp(text, expected) != 0) _exit(1);
}

Test(simt_environment, shared_kib_of_no_card, .exit_code = 2) {
    int value;
    capture_stderr();
    atexit(compare_at_exit);
    setenv("SIMT_SHARED_KIB", "100", 1);
    cudaError_t error = cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    unsetenv("SIMT_SHARED_KIB");
    if (error != cudaSuccess || !simulated()) exit(2); /* a card knows no such variable */
}
