/* The epilogue of a step of the ring: O and L over these keys are merged with O and L over the keys before, by all threads that hold
 * rows, so that no kernel runs for it. O in between is fp32: rounded to 16 bits in each step, its error would grow with their number. */
#ifndef MERGE_CUH
#define MERGE_CUH

#include "device.cuh"
#include "tensor.cuh"

struct partial_rows {
    void *O;      // (heads, rows, d), of rows that get no more keys
    float *O_sum; // (heads, rows, d), of the others
    float *L;     // (heads, rows)
    int rows;     // per head in memory
    int finished; // rows before this one get no more keys
    bool first;   // there were no keys before

    template <class T, int NO>
    __device__ void store(const float (&O_reg)[NO][4], const float (&m)[2], const float (&l)[2], int head, int my_row,
                          const problem &p) const;
};

template <class T, int NO>
__device__ void partial_rows::store(const float (&O_reg)[NO][4], const float (&m)[2], const float (&l)[2], int head,
                                    int my_row, const problem &p) const {
    int lane = threadIdx.x % WARP, column = lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float sum = quad_sum(l[i]);
        int row = my_row + 8 * i;
        size_t at = (size_t)head * rows + row;
        bool inside = row < p.N_q;
        bool any = m[i] > NONE || isnan(sum);                         // the row attends to at least one of these keys
        float factor = any ? 1.0f / sum : 0.0f, factor_before = 0.0f; // of O_reg, of O_sum
        float L_new = any ? (m[i] + log2f(sum)) * LN_2 : -INFINITY;
        if (!first) { // O = (e^L_before O_before + e^L_here O_here) / (e^L_before + e^L_here)
            float L_before = inside && lane % 4 == 0 ? L[at] : 0.0f;
            L_before = __shfl_sync(FULL_WARP, L_before, lane / 4 * 4); // before another lane of the quad stores it
            float most = fmaxf(L_before, L_new);
            if (most != -INFINITY) { // else there is still no weight: -INFINITY - -INFINITY is NaN
                float before = expf(L_before - most), here = expf(L_new - most);
                factor_before = before / (before + here);
                factor *= here / (before + here);
                L_new = most + logf(before + here);
            }
        }
        if (!inside) continue;
#pragma unroll
        for (int n = 0; n < NO; n++) {
            if (8 * n >= p.d) continue;
            size_t element = at * p.d + 8 * n + column;
            float2 o = {O_reg[n][2 * i] * factor, O_reg[n][2 * i + 1] * factor};
            if (!first) {
                float2 before = *(const float2 *)(O_sum + element);
                o.x += before.x * factor_before, o.y += before.y * factor_before;
            }
            if (row < finished)
                *(uint32_t *)((T *)O + element) = pack<T>(o.x, o.y);
            else
                *(float2 *)(O_sum + element) = o;
        }
        if (lane % 4 == 0) L[at] = L_new;
    }
}

#endif
