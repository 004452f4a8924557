// Rotary embedding on the way into shared memory: rung 15f.
//
// A thread copies four pairs of a row: two pieces of four columns, which lie side by side where interleaved and d / 2 columns apart
// where halved. When they have arrived it rotates what it copied itself, so no barrier is needed between copy and rotation: the
// barrier that follows every copy follows the rotation now. The swizzle exchanges groups of 8 columns and leaves the pieces whole.
#ifndef ROTARY_FWD_CUH
#define ROTARY_FWD_CUH

#include "rotary.cuh"

// The two pieces of this thread: the indices of their first elements in rows 0, 8, 16, .. of a swizzled tile, less row * D, and their
// columns.
struct own_pieces {
    int row, chunk, x, y, x_smem, y_smem;
    template <int D> __device__ static __forceinline__ own_pieces of(const problem &p) {
        int row = threadIdx.x / (D / 8), chunk = threadIdx.x % (D / 8);
        bool halved = p.rotary == problem::HALVED && 8 * chunk < p.d;
        int x = halved ? 4 * chunk : 8 * chunk, y = halved ? x + p.d / 2 : x + 4;
        return {row, chunk, x, y, row * D + (x ^ row % 8 * 8), row * D + (y ^ row % 8 * 8)};
    }
};

// copy_rows() in pieces of 8 bytes.
template <int D, int COUNT, int THREADS, bool FILL, class T>
__device__ __forceinline__ void copy_pairs(T *tile, const T *matrix, int first, int rows, const problem &p) {
    own_pieces own = own_pieces::of<D>(p);
    if (!FILL && 8 * own.chunk >= p.d) return;
#pragma unroll
    for (int r = 0; r < COUNT; r += 8 * THREADS / D) {
        bool inside = !FILL || (first + own.row + r < rows && 8 * own.chunk < p.d);
        const T *from = inside ? matrix + (size_t)(first + own.row + r) * p.d : matrix;
        __pipeline_memcpy_async(tile + own.x_smem + r * D, inside ? from + own.x : from, 8, inside ? 0 : 8);
        __pipeline_memcpy_async(tile + own.y_smem + r * D, inside ? from + own.y : from, 8, inside ? 0 : 8);
    }
}

// Rotate what copy_pairs() of this thread has copied, and round it to nearest. shift: the position of row 0 of the matrix.
template <int D, int COUNT, int THREADS, class T>
__device__ __forceinline__ void rotate_pairs(T *tile, const float2 *table, // (positions, d / 2)
                                             int first, int rows, int shift, const problem &p) {
    own_pieces own = own_pieces::of<D>(p);
    if (8 * own.chunk >= p.d) return;
    bool halved = p.rotary == problem::HALVED;
#pragma unroll 2
    for (int r = 0; r < COUNT; r += 8 * THREADS / D) {
        int row = min(first + own.row + r, rows - 1); // rows past the last one are zeros, whatever their angle
        const float4 *turns = (const float4 *)(turns_at(table, p, row + shift) + 4 * own.chunk); // each has two pairs
        float4 t0 = turns[0], t1 = turns[1];
        uint2 *x_smem = (uint2 *)(tile + own.x_smem + r * D), *y_smem = (uint2 *)(tile + own.y_smem + r * D);
        uint2 x_bits = *x_smem, y_bits = *y_smem;
        const T *x = (const T *)&x_bits, *y = (const T *)&y_bits;
        float a[4] = {(float)x[0], (float)x[halved ? 1 : 2], (float)(halved ? x[2] : y[0]),
                      (float)(halved ? x[3] : y[2])};
        float b[4] = {(float)(halved ? y[0] : x[1]), (float)(halved ? y[1] : x[3]), (float)(halved ? y[2] : y[1]),
                      (float)y[3]};
        float cosine[4] = {t0.x, t0.z, t1.x, t1.z}, sine[4] = {t0.y, t0.w, t1.y, t1.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float turned = a[i] * cosine[i] - b[i] * sine[i];
            b[i] = b[i] * cosine[i] + a[i] * sine[i];
            a[i] = turned;
        }
        *x_smem = halved ? make_uint2(pack<T>(a[0], a[1]), pack<T>(a[2], a[3]))
                         : make_uint2(pack<T>(a[0], b[0]), pack<T>(a[1], b[1]));
        *y_smem = halved ? make_uint2(pack<T>(b[0], b[1]), pack<T>(b[2], b[3]))
                         : make_uint2(pack<T>(a[2], b[2]), pack<T>(a[3], b[3]));
    }
}

// Fill the table where there is something to rotate.
static inline cudaError_t fill_table(float2 *table, const problem &p, cudaStream_t stream) {
    size_t pairs = (size_t)positions(p) * (p.d / 2);
    if (p.rotary == problem::NOT_ROTARY || pairs == 0) return cudaSuccess;
    return launch(fill_rotary_table, (unsigned)((pairs + 255) / 256), 256, 0, stream, table, p);
}

#endif
