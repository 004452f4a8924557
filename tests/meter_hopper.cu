/* Boxes of tensors, products of a warpgroup and their registers. For cards of compute_capability = 90. */
#include "meter_test.h"

#include "hopper.cuh"

// Loads 64 rows of 64 columns from row 8 on, stores them again, and multiplies them with themselves, as A from shared memory
// (64 rows) and as B (64 columns), and then with A from registers.
__global__ static void box_and_products(const __grid_constant__ CUtensorMap from,
                                        const __grid_constant__ CUtensorMap to, int *out) {
    extern __shared__ __align__(1024) uint16_t tile[];
    __shared__ uint64_t full;
    if (threadIdx.x == 0) {
        mbarrier_init(&full, 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(&full, 64 * 64 * 2);
        tma_load(tile, &from, 0, 8, 0, &full);
    }
    mbarrier_wait(&full, 0);
    float C[8][4];
    uint32_t A[2][4];
    for (int i = 0; i < 32; i++) C[i / 4][i % 4] = 1.0f;
    for (int i = 0; i < 8; i++) A[i / 4][i % 4] = threadIdx.x;
    wgmma_fence();
    wgmma<false>(__half(), C, swizzled_tile(tile, 0), swizzled_tile(tile, 0), true);
    for (int k = 0; k < 2; k++) wgmma<false>(__half(), C, A[k], swizzled_tile(tile, 0), true);
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[0][0];
    if (threadIdx.x != 0) return;
    tma_store(&to, 0, 8, 0, tile);
    tma_commit();
    tma_wait_read<0>();
}

/* Rows 8 to 11 are inside, and 80 of their 128 bytes: those begin and end in the middle of a sector or not, and always touch 3. */
Test(meter, boxes_and_products) {
    CUtensorMap from, to;
    char *in = filled_on_device<char>(0, 12 * 80), *copy = filled_on_device<char>(0, 12 * 80);
    int *out = filled_on_device<int>(0, 128);
    EXPECT_OK(make_tensor_map(&from, FP16, in, 1, 12, 40, 64));
    EXPECT_OK(make_tensor_map(&to, FP16, copy, 1, 12, 40, 64));
    start(1);
    box_and_products<<<1, 128, 64 * 128>>>(from, to, out);
    const cJSON *kernel = finish();
    expect_total(kernel, "global_tensor_load_requests", 1, "the box");
    expect_total(kernel, "global_tensor_load_sectors", 4 * (3 + 2) + 60 * 4, "inside, and 48 or 128 bytes outside");
    expect_total(kernel, "global_tensor_store_requests", 1, "the box");
    expect_total(kernel, "global_tensor_store_sectors", 4 * 3, "inside only");
    expect_total(kernel, "shared_product_requests", 3, "products");
    expect_total(kernel, "shared_product_wavefronts", (16 + 16) + 2 * 16, "A from shared memory once");
    expect_total(kernel, "local_store_requests", 0, "registers before their first product");
    expect_total(kernel, "local_load_requests", 0, "registers");
    cudaFree(in);
    cudaFree(copy);
    cudaFree(out);
}
