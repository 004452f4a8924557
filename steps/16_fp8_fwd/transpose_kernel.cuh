/* V transposed by a kernel of its own: (heads, N, d) to (heads, d, padded(N)). Of each 16 keys, key 2 t + i % 2 + i / 2 * 8 goes to place
 * 4 t + i, i < 4, where P has it. */
#ifndef TRANSPOSE_KERNEL_CUH
#define TRANSPOSE_KERNEL_CUH

#include "tiles8.cuh"

static int padded(int N) { return ceil_div(N, 16) * 16; } // the TMA needs rows at multiples of 16 bytes

static __global__ __launch_bounds__(WARPGROUP) void transpose_kernel(const uint8_t *V, uint8_t *V_t, int N,
                                                                     int padded_N, int d) {
    __shared__ uint4 V_smem[Bc * MAX_HEAD_DIM / 16]; // (Bc, d), of bytes
    int first = blockIdx.x * Bc, count = min(Bc, padded_N - first);
    V += ((size_t)blockIdx.y * N + first) * d;
    V_t += (size_t)blockIdx.y * d * padded_N + first;
    for (int i = threadIdx.x; i < count * d / 16; i += WARPGROUP) // rows past N are zeros: 0 times NaN is NaN
        V_smem[i] = first + i * 16 / d < N ? ((const uint4 *)V)[i] : make_uint4(0, 0, 0, 0);
    __syncthreads();                                                // the tile has arrived
    for (int i = threadIdx.x; i < count / 16 * d; i += WARPGROUP) { // 16 keys of one column
        const uint8_t *from = (const uint8_t *)V_smem + i / d * 16 * d + i % d;
        uint32_t word[4];
        for (int t = 0; t < 4; t++)
            word[t] = from[2 * t * d] | from[(2 * t + 1) * d] << 8 | from[(2 * t + 8) * d] << 16 |
                      (uint32_t)from[(2 * t + 9) * d] << 24;
        *(uint4 *)(V_t + (size_t)(i % d) * padded_N + i / d * 16) = make_uint4(word[0], word[1], word[2], word[3]);
    }
}

static cudaError_t transpose_before(const uint8_t *V, uint8_t *V_t, int heads, int N, int d, cudaStream_t stream) {
    dim3 blocks(ceil_div(N, Bc), heads);
    transpose_kernel<<<blocks, WARPGROUP, 0, stream>>>(V, V_t, N, padded(N), d);
    return cudaGetLastError();
}

#endif
