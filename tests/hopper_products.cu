/* wgmma against plain C: all widths, both types, A from shared memory and from registers, both orders in memory, all swizzles; the
 * descriptors are made here by the formulas of the PTX ISA's pictures. For cards of compute_capability = 90.
 *
 * Elements are small integers: each sum is exact, whatever the order in which a card adds. */
#include "device_test.h"

#include <math.h>
#include <stdint.h>

#include "hopper.cuh"

static void need_hopper() {
    need_device();
    cudaDeviceProp device;
    EXPECT_OK(cudaGetDeviceProperties(&device, 0));
    if (device.major != 9) cr_skip_test("needs compute capability 9.0");
}

TestSuite(products, .init = need_hopper, .timeout = 120);

extern __shared__ __align__(1024) uint16_t tile[];

/* What one launch multiplies: matrices of 16 columns k, in memory by `span` bytes (16: no swizzle). */
struct form {
    int span;
    bool A_transposed, B_transposed;
};

/* Where element (i, k) of a matrix of `rows` rows lies, in bytes, before the swizzle; and the descriptor's two offsets. */
struct order {
    int span, rows;
    bool transposed;
    __host__ __device__ int leading() const {
        if (span == 16) return transposed ? 128 : rows * 16; // of 8 k
        return transposed ? span * 16 : 16;                  // of span / 2 rows; not read
    }
    __host__ __device__ int stride() const {
        if (span == 16) return transposed ? 256 : 128; // of 8 rows
        return 8 * span;
    }
    __host__ __device__ int offset(int i, int k) const {
        if (span == 16)
            return i / 8 * stride() + k / 8 * leading() + (transposed ? k : i) % 8 * 16 + (transposed ? i : k) % 8 * 2;
        int in_row = span / 2;
        if (transposed) return i / in_row * leading() + i % in_row * 2 + k / 8 * stride() + k % 8 * span;
        return i / 8 * stride() + i % 8 * span + 2 * k;
    }
    __host__ __device__ int address(int i, int k) const {
        int at = offset(i, k);
        return at ^ (at >> 7 & (span / 16 - 1)) << 4;
    }
    __host__ __device__ int bytes() const {
        return ((rows + 63) / 64 * 64 * 16 * 2 * (span > 32 && !transposed ? span / 32 : 1) + 1023) / 1024 * 1024;
    }
    __device__ uint64_t descriptor(const void *start) const {
        uint64_t code = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
        return (uint64_t)shared_address(start) / 16 | (uint64_t)(leading() / 16) << 16 |
               (uint64_t)(stride() / 16) << 32 | code << 62;
    }
};

/* A (64, 16), B (16, N) as its columns, C (64, N). */
template <class T, int N, bool A_IN_REGISTERS, bool B_TRANSPOSED, bool A_TRANSPOSED = false>
__global__ static void multiply(const T *A, const T *B, float *C, int span, bool add) {
    order A_order = {span, 64, A_TRANSPOSED}, B_order = {span, N, B_TRANSPOSED};
    char *A_tile = (char *)tile, *B_tile = A_tile + A_order.bytes();
    int t = threadIdx.x, warp = t / 32, lane = t % 32;
    for (int i = t; i < (A_order.bytes() + B_order.bytes()) / 2; i += blockDim.x) ((uint16_t *)A_tile)[i] = 0;
    __syncthreads();
    for (int i = t; i < 64 * 16; i += blockDim.x) *(T *)(A_tile + A_order.address(i / 16, i % 16)) = A[i];
    for (int i = t; i < N * 16; i += blockDim.x) *(T *)(B_tile + B_order.address(i / 16, i % 16)) = B[i];
    fence_proxy_async();
    __syncthreads();
    float C_reg[N / 8][4];
    for (int n = 0; n < N / 8; n++)
        for (int e = 0; e < 4; e++) C_reg[n][e] = 1000.0f;
    uint32_t A_reg[4];
    for (int r = 0; r < 4; r++) {
        int row = warp * 16 + lane / 4 + r % 2 * 8, k = lane % 4 * 2 + r / 2 * 8;
        A_reg[r] = *(const uint32_t *)&A[row * 16 + k];
    }
    wgmma_fence();
    if constexpr (A_IN_REGISTERS)
        wgmma<B_TRANSPOSED>(T(), C_reg, A_reg, B_order.descriptor(B_tile), add);
    else
        wgmma<B_TRANSPOSED, A_TRANSPOSED>(T(), C_reg, A_order.descriptor(A_tile), B_order.descriptor(B_tile), add);
    wgmma_commit();
    wgmma_wait<0>();
    for (int n = 0; n < N / 8; n++)
        for (int e = 0; e < 4; e++)
            C[(warp * 16 + lane / 4 + e / 2 * 8) * N + n * 8 + lane % 4 * 2 + e % 2] = C_reg[n][e];
}

template <class T, int N, bool A_IN_REGISTERS, bool B_TRANSPOSED, bool A_TRANSPOSED = false>
static void check(int span, bool add) {
    T A[64 * 16], B[N * 16];
    static float wanted[64 * N];
    for (int i = 0; i < 64 * 16; i++) A[i] = (T)(float)(scrambled(i) % 17);
    for (int i = 0; i < N * 16; i++) B[i] = (T)(float)(scrambled(i + 5000) % 13);
    for (int i = 0; i < 64; i++)
        for (int n = 0; n < N; n++) {
            wanted[i * N + n] = add ? 1000.0f : 0.0f;
            for (int k = 0; k < 16; k++) wanted[i * N + n] += (float)A[i * 16 + k] * (float)B[n * 16 + k];
        }
    T *A_device = on_device(A), *B_device = on_device(B);
    float *C = filled_on_device<float>(0xff, 64 * N);
    order A_order = {span, 64, A_TRANSPOSED}, B_order = {span, N, B_TRANSPOSED};
    multiply<T, N, A_IN_REGISTERS, B_TRANSPOSED, A_TRANSPOSED>
        <<<1, 128, A_order.bytes() + B_order.bytes()>>>(A_device, B_device, C, span, add);
    expect_values(C, wanted, 64 * N, "C");
    EXPECT_OK(cudaFree(A_device));
    EXPECT_OK(cudaFree(B_device));
}

template <class T, int N> static void check_all() {
    for (int span = 16; span <= 128; span *= 2)
        for (int add = 0; add < 2; add++) {
            check<T, N, false, false>(span, add);
            check<T, N, false, true>(span, add);
            check<T, N, false, false, true>(span, add);
            check<T, N, false, true, true>(span, add);
            check<T, N, true, false>(span, add);
            check<T, N, true, true>(span, add);
        }
}

Test(products, bf16) { check_all<__nv_bfloat16, 64>(), check_all<__nv_bfloat16, 128>(); }
Test(products, fp16) { check_all<__half, 64>(), check_all<__half, 128>(); }
Test(products, bf16_of_odd_widths) { check_all<__nv_bfloat16, 80>(), check_all<__nv_bfloat16, 96>(); }
Test(products, fp16_of_odd_widths) { check_all<__half, 80>(), check_all<__half, 96>(); }

/* The narrowest and the widest product, written out: ones times ones, and what an index beyond the accumulators would change. */
#define ACCUMULATORS_12(C, i)                                                                                          \
    "+f"(C[i]), "+f"(C[i + 1]), "+f"(C[i + 2]), "+f"(C[i + 3]), "+f"(C[i + 4]), "+f"(C[i + 5]), "+f"(C[i + 6]),        \
        "+f"(C[i + 7]), "+f"(C[i + 8]), "+f"(C[i + 9]), "+f"(C[i + 10]), "+f"(C[i + 11])
__global__ static void narrow_and_24(float *out) {
    for (int i = threadIdx.x; i < 64 * 64; i += blockDim.x) tile[i] = 0x3c00;
    fence_proxy_async();
    __syncthreads();
    float narrow[4] = {1.0f, 2.0f, 3.0f, 4.0f}, wide[12] = {};
    uint64_t ones = swizzled_tile(tile, 0);
    wgmma_fence();
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, -1, 1, 0, 0;"
                 : "+f"(narrow[0]), "+f"(narrow[1]), "+f"(narrow[2]), "+f"(narrow[3])
                 : "l"(ones), "l"(ones));
    asm volatile("wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "
                 "%11}, %12, %13, "
                 "0, 1, 1, 0, 0;"
                 : ACCUMULATORS_12(wide, 0)
                 : "l"(ones), "l"(ones));
    wgmma_commit();
    wgmma_wait<0>();
    for (int e = 0; e < 4; e++) out[threadIdx.x * 4 + e] = narrow[e] + wide[e] + wide[e + 4] + wide[e + 8];
}
Test(products, other_widths) {
    static float wanted[128 * 4];
    for (int i = 0; i < 128 * 4; i++) wanted[i] = (float)(i % 4 + 1 - 16 + 3 * 16);
    float *out = filled_on_device<float>(0xff, 128 * 4);
    narrow_and_24<<<1, 128, 64 * 128>>>(out);
    expect_values(out, wanted, 128 * 4, "C");
}

/* Infinities and NaN reach all columns of their row, and no other row. */
Test(products, infinite) {
    __half A[64 * 16], B[64 * 16];
    for (int i = 0; i < 64 * 16; i++) A[i] = B[i] = (__half)1.0f;
    A[5 * 16 + 3] = (__half)INFINITY;
    A[20 * 16] = (__half)NAN;
    __half *A_device = on_device(A), *B_device = on_device(B);
    float *C = filled_on_device<float>(0xff, 64 * 64);
    order tiles = {128, 64, false};
    multiply<__half, 64, false, false><<<1, 128, 2 * tiles.bytes()>>>(A_device, B_device, C, 128, false);
    std::vector<float> got = take_back(C, 64 * 64);
    for (int i = 0; i < 64 * 64; i++) {
        float x = got[(size_t)i];
        cr_assert(i / 64 == 5    ? isinf(x)
                  : i / 64 == 20 ? isnan(x)
                                 : x == 16.0f,
                  "row %d, column %d: %g", i / 64, i % 64, (double)x);
    }
    EXPECT_OK(cudaFree(A_device));
    EXPECT_OK(cudaFree(B_device));
}
