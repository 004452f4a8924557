// expect: 0 0 0 7
#include "construct.h"

#include <cstdint>

struct alignas(512) storage {
    char bytes[512];
};

// Rows for the TMA begin at a multiple of 1024 bytes where its swizzle has 128.
__global__ void k(int *out) {
    __shared__ char odd[5];
    __shared__ alignas(1024) char tile[128];
    __shared__ __align__(256) char rows[3][7], row[1];
    __shared__ storage both;
    odd[0] = row[0] = both.bytes[0] = 0;
    rows[2][6] = 7;
    out[0] = (uintptr_t)tile % 1024;
    out[1] = (uintptr_t)rows % 256 + (uintptr_t)row % 256;
    out[2] = (uintptr_t)&both % 512;
    out[3] = rows[2][6] + odd[0];
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 1>>>(out); }); }
