/* WMMA for the simulated device: products of 16 x 16 matrices with elements of 16 bits, and of 16 x 8 and 8 x 16 in TF32, summed
 * in fp32.
 *
 * A fragment is what mma.sync takes (simt_mma()), and memory is accessed as nvcc does it for compute capability 8.0 and later: A
 * and B by loads of 4 bytes, each two elements, and movmatrix where the order of storage is the other one; an accumulator by
 * accesses of 8 bytes. As on a card, which lane holds which element is nothing to rely on. */
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#if __cplusplus >= 201703L /* nothing for an older file of the host */

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}

template <class Use, int m, int n, int k, class _T, class Layout = void> struct fragment {
    static_assert(m == 16 && n == 16 && k == 16, "the simulated device has WMMA 16 x 16 x 16, and 16 x 16 x 8 of TF32");
    static_assert(std::is_same_v<_T, __half> || std::is_same_v<_T, __nv_bfloat16>, "with __half or __nv_bfloat16");
    static_assert(std::is_same_v<Layout, row_major> || std::is_same_v<Layout, col_major>, "with a layout");
    typedef _T element_type;
    static constexpr int num_elements = 16; /* each element twice, as on a card */
    _T x[num_elements];
};
template <class Use, class Layout> struct fragment<Use, 16, 16, 8, precision::tf32, Layout> {
    static_assert(std::is_same_v<Layout, row_major> || std::is_same_v<Layout, col_major>, "with a layout");
    typedef float element_type;
    static constexpr int num_elements = 4;
    float x[num_elements];
};
template <int k> struct fragment<accumulator, 16, 16, k, float> {
    typedef float element_type;
    static constexpr int num_elements = 8; /* two C fragments of mma.sync, side by side */
    float x[num_elements];
};
/* Rounded to 10 bits behind the point, as cvt.rna.tf32. */
static inline float __float_to_tf32(float x) { return __uint_as_float((__float_as_uint(x) + 0x1000) & 0xffffe000); }

template <class Fragment> static inline void fill_fragment(Fragment &f, typename Fragment::element_type value) {
    for (int i = 0; i < Fragment::num_elements; i++) f.x[i] = value;
}

template <class Use, class _T, class Layout>
static inline void load_matrix_sync(fragment<Use, 16, 16, 16, _T, Layout> &f, const _T *from, unsigned stride, SIMT_HERE) {
    constexpr bool is_a = std::is_same_v<Use, matrix_a>, transposed = is_a != std::is_same_v<Layout, row_major>;
    simt_wmma_check(from, stride * sizeof(_T));
    unsigned g = simt_lane() / 4, t = simt_lane() % 4;
    unsigned r[4];
    for (unsigned i = 0; i < 4; i++) {
        /* Register i of A: rows 8 (i % 2), k 8 (i / 2). Of B: k 8 (i % 2), columns 8 (i / 2). */
        unsigned low = i % 2 * 8, high = i / 2 * 8, rows = is_a != transposed ? low : high, cols = low + high - rows;
        r[i] = *(const simt::vector_bits<4>::type *)(from + (rows + g) * stride + cols + 2 * t);
    }
    if (transposed) {
        simt_registers moved = simt_movmatrix(r[0], r[1], r[2], r[3], file, line);
        for (int i = 0; i < 4; i++) r[i] = moved.r[i];
    }
    simt_meet(simt_wmma_load, 0xffffffffu, file, line);
    for (int i = 0; i < 16; i++) f.x[i] = _T::of_bits((unsigned short)(r[i / 2 % 4] >> i % 2 * 16));
}

template <class Use, class Layout>
static inline void load_matrix_sync(fragment<Use, 16, 16, 8, precision::tf32, Layout> &f, const float *from, unsigned stride,
                                    SIMT_HERE) {
    constexpr bool is_a = std::is_same_v<Use, matrix_a>, by_rows = std::is_same_v<Layout, row_major>;
    simt_wmma_check(from, stride * sizeof(float));
    for (unsigned i = 0; i < 4; i++) { /* of A: rows 8 (i % 2), k 4 (i / 2); of B: k 4 (i % 2), columns 8 (i / 2) */
        unsigned outer = simt_lane() / 4 + (is_a ? i % 2 : i / 2) * 8, k = simt_lane() % 4 + (is_a ? i / 2 : i % 2) * 4;
        f.x[i] = is_a == by_rows ? from[outer * stride + k] : from[k * stride + outer];
    }
    simt_meet(simt_wmma_load, 0xffffffffu, file, line);
}

/* Where the lane's elements 2 i and 2 i + 1 of an accumulator lie. */
struct place {
    unsigned row, col;
};
static inline place place_of(unsigned i) { return {simt_lane() / 4 + i % 2 * 8, simt_lane() % 4 * 2 + i / 2 * 8}; }

template <int k>
static inline void load_matrix_sync(fragment<accumulator, 16, 16, k, float> &f, const float *from, unsigned stride,
                                    layout_t layout, SIMT_HERE) {
    simt_wmma_check(from, stride * sizeof(float));
    for (unsigned i = 0; i < 4; i++) {
        place at = place_of(i);
        if (layout == mem_row_major) {
            float2 pair = *(const float2 *)(from + at.row * stride + at.col);
            f.x[2 * i] = pair.x, f.x[2 * i + 1] = pair.y;
        } else {
            f.x[2 * i] = from[at.col * stride + at.row], f.x[2 * i + 1] = from[(at.col + 1) * stride + at.row];
        }
    }
    simt_meet(simt_wmma_load, 0xffffffffu, file, line);
}

template <int k>
static inline void store_matrix_sync(float *to, const fragment<accumulator, 16, 16, k, float> &f, unsigned stride,
                                     layout_t layout, SIMT_HERE) {
    simt_wmma_check(to, stride * sizeof(float));
    simt_meet(simt_wmma_store, 0xffffffffu, file, line);
    for (unsigned i = 0; i < 4; i++) {
        place at = place_of(i);
        if (layout == mem_row_major)
            *(float2 *)(to + at.row * stride + at.col) = make_float2(f.x[2 * i], f.x[2 * i + 1]);
        else
            to[at.col * stride + at.row] = f.x[2 * i], to[(at.col + 1) * stride + at.row] = f.x[2 * i + 1];
    }
}

/* d = c + A B, half of the columns each time. */
template <int k>
static inline void add_product(simt_mma_type type, fragment<accumulator, 16, 16, k, float> &d, const uint32_t (&_A)[4],
                               const uint32_t (&_B)[4], const fragment<accumulator, 16, 16, k, float> &c, const char *file,
                               int line) {
    for (int half = 0; half < 2; half++) {
        float _C[4];
        for (int i = 0; i < 4; i++) _C[i] = c.x[4 * half + i];
        simt_floats sum =
            simt_mma(type, _C[0], _C[1], _C[2], _C[3], _A[0], _A[1], _A[2], _A[3], _B[2 * half], _B[2 * half + 1], file, line);
        for (int i = 0; i < 4; i++) d.x[4 * half + i] = sum.x[i];
    }
}

template <class _T, class Layout_a, class Layout_b>
static inline void mma_sync(fragment<accumulator, 16, 16, 16, float> &d, const fragment<matrix_a, 16, 16, 16, _T, Layout_a> &a,
                            const fragment<matrix_b, 16, 16, 16, _T, Layout_b> &b,
                            const fragment<accumulator, 16, 16, 16, float> &c, SIMT_HERE) {
    uint32_t _A[4], _B[4];
    for (int i = 0; i < 4; i++) {
        _A[i] = a.x[2 * i].bits | (uint32_t)a.x[2 * i + 1].bits << 16;
        _B[i] = b.x[2 * i].bits | (uint32_t)b.x[2 * i + 1].bits << 16;
    }
    add_product(std::is_same_v<_T, __half> ? simt_mma_half : simt_mma_bfloat16, d, _A, _B, c, file, line);
}
template <class Layout_a, class Layout_b>
static inline void mma_sync(fragment<accumulator, 16, 16, 8, float> &d,
                            const fragment<matrix_a, 16, 16, 8, precision::tf32, Layout_a> &a,
                            const fragment<matrix_b, 16, 16, 8, precision::tf32, Layout_b> &b,
                            const fragment<accumulator, 16, 16, 8, float> &c, SIMT_HERE) {
    uint32_t _A[4], _B[4];
    for (int i = 0; i < 4; i++) _A[i] = __float_as_uint(a.x[i]), _B[i] = __float_as_uint(b.x[i]);
    add_product(simt_mma_tf32, d, _A, _B, c, file, line);
}

} // namespace wmma
} // namespace nvcuda
#endif
