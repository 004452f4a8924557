// What forms.changes adds to a rung: results stored by 16 bytes, and a fragment's rounded elements read back.
#pragma once

// The C fragments of one warp, times `factor`, to a swizzled tile.
template <int D, class T, int MT, int NT>
__device__ __forceinline__ void fragments_to_tile(T *tile, const float (&C)[MT][NT][4], int row, int col,
                                                  float factor) {
    int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int j = 0; j < NT; j++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                *(uint32_t *)(tile + place<D>(row + 16 * i + 8 * half + g, col + 8 * j + 2 * t)) =
                    pack<T>(C[i][j][2 * half] * factor, C[i][j][2 * half + 1] * factor);
}

// A swizzled tile (ROWS, D) to rows [first, ...) of a (rows, d) matrix, 16 bytes per thread.
template <int ROWS, int D, int THREADS, class T>
__device__ __forceinline__ void store_tile(T *matrix, const T *tile, int first, int rows, int d) {
    int row = threadIdx.x / (D / 8), col = threadIdx.x % (D / 8) * 8;
#pragma unroll
    for (int r = row; r < ROWS; r += THREADS / (D / 8))
        if (first + r < rows && col < d)
            *(uint4 *)(matrix + (size_t)(first + r) * d + col) = *(const uint4 *)(tile + place<D>(r, col));
}

template <class T> __device__ __forceinline__ float2 unpack(uint32_t pair);
template <> __device__ __forceinline__ float2 unpack<__nv_bfloat16>(uint32_t pair) {
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}
template <> __device__ __forceinline__ float2 unpack<__half>(uint32_t pair) {
    return __half22float2(*(__half2 *)&pair);
}
