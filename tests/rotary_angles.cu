// The table of cos and sin of rotary embedding, against the C library's in long double, up to position 16400: there an angle in
// fp32 is wrong by 1e-3, which no result in 16 bits would show.
#include <criterion/criterion.h>
#include <math.h>
#include <vector>

#include "../steps/15_variants/rotary.cuh"

Test(rotary, angles) {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) cr_skip_test("no CUDA device");
    problem p = {};
    p.batch = p.heads = 1, p.N_q = 1, p.N_kv = 16400, p.d = 8;
    p.rotary = problem::HALVED;
    size_t pairs = (size_t)p.N_kv * (p.d / 2);
    std::vector<float2> table(pairs);
    float2 *device;
    cr_assert_eq(cudaMalloc(&device, rotary_bytes(p)), cudaSuccess);
    fill_rotary_table<<<(unsigned)ceil_div((int)pairs, 256), 256>>>(device, p);
    cr_assert_eq(cudaMemcpy(table.data(), device, pairs * sizeof(float2), cudaMemcpyDeviceToHost), cudaSuccess);
    for (size_t i = 0; i < pairs; i++) {
        long double angle = (long double)(i / (p.d / 2)) * powl(10000, -2.0L * (i % (p.d / 2)) / p.d);
        bool is_near = fabsl(table[i].x - cosl(angle)) < 1e-6L && fabsl(table[i].y - sinl(angle)) < 1e-6L;
        cr_assert(is_near, "pair %zu of position %zu: %.9g %.9g", i % (p.d / 2), i / (p.d / 2), table[i].x, table[i].y);
    }
    cudaFree(device);
}
