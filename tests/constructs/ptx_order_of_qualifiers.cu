// expect: 3 17 3 17
#include "construct.h"

/* The shape and the number of matrices may change places. */
__global__ void k(int *out) {
    __shared__ alignas(16) unsigned rows[32][4];
    for (int i = 0; i < 4; i++) rows[threadIdx.x][i] = 4 * threadIdx.x + i;
    __syncthreads();
    unsigned address = (unsigned)__cvta_generic_to_shared(rows[threadIdx.x % 8]), a[2], b[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(a[0]), "=r"(a[1]) : "r"(address));
    asm volatile("ldmatrix.sync.aligned.x2.m8n8.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(address));
    if (threadIdx.x == 3 || threadIdx.x == 17) out[threadIdx.x / 16] = a[0], out[2 + threadIdx.x / 16] = b[1];
}

int main() { return show<int>(4, [&](int *out) { k<<<1, 32>>>(out); }); }
