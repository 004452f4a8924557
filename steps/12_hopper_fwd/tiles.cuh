/* What all rungs of chapter 12 do with tiles in shared memory. A tile (rows, D) lies there in D / 64 panels (rows, 64): a row of a
 * panel is 128 bytes, in the TMA's 128-byte swizzle. Tiles begin at multiples of 1024 bytes, where the swizzle repeats. */
#ifndef TILES_CUH
#define TILES_CUH

#include "attention.h"
#include "hopper.cuh"
#include "launch.h"

/* The tensors as the TMA sees them, with boxes of 64 columns. */
struct tensor_maps {
    CUtensorMap Q, K, V;
};

template <class T> __device__ inline T *first_multiple_of_1024(void *p) {
    return (T *)(((uintptr_t)p + 1023) / 1024 * 1024);
}

/* One thread asks for rows [first, first + rows) of a head: a box for each panel. `full` completes when all bytes are there. Rows
 * past the last one and columns past d arrive as zeros, and their bytes count. */
template <int D, class T>
__device__ inline void load_tile(T *tile, const CUtensorMap &map, int rows, int first, int head, uint64_t *full) {
    mbarrier_arrive_expect(full, rows * D * sizeof(T));
    for (int column = 0; column < D; column += 64) tma_load(tile + rows * column, &map, column, first, head, full);
}

/* Start S = Q K^T for 64 rows of Q: `Q_tile` is the first of them in a tile of Br rows, K_tile has Bc rows. */
template <int D, int Br, int Bc, class T>
__device__ __forceinline__ void multiply_QK(float (&S)[Bc / 8][4], const T *Q_tile, const T *K_tile) {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < D / 16; k++) { // 16 columns of Q and K: 32 bytes further in their panel
        uint64_t Q_piece = swizzled_tile(Q_tile + k / 4 * Br * 64 + k % 4 * 16, 0);
        wgmma<false>(T(), S, Q_piece, swizzled_tile(K_tile + k / 4 * Bc * 64 + k % 4 * 16, 0), k > 0);
    }
    wgmma_commit();
}

/* Start O += P V for Bc keys. */
template <int D, int Bc, class T>
__device__ __forceinline__ void multiply_PV(float (&O)[D / 8][4], const uint32_t (&P)[Bc / 16][4], const T *V_tile) {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < Bc / 16; k++) // 16 keys: 16 rows of 128 bytes further in all panels
        wgmma<true>(T(), O, P[k], swizzled_tile(V_tile + k * 16 * 64, Bc * 128), true);
    wgmma_commit();
}

/* Boxes of Br rows of Q, Bc rows of K and V. */
inline cudaError_t make_tensor_maps(tensor_maps *maps, const problem *p, const tensors *t, int Br, int Bc) {
    int heads = p->batch * p->heads;
    cudaError_t error = make_tensor_map(&maps->Q, p->dtype, t->Q, heads, p->N_q, p->d, Br);
    if (error == cudaSuccess) error = make_tensor_map(&maps->K, p->dtype, t->K, heads, p->N_kv, p->d, Bc);
    if (error == cudaSuccess) error = make_tensor_map(&maps->V, p->dtype, t->V, heads, p->N_kv, p->d, Bc);
    return error;
}

/* For `struct step`: why this device cannot do the problem, when its blocks have less shared memory than a Hopper card's. */
template <size_t BYTES_64, size_t BYTES_128> const char *needs_shared_memory(const problem *p) {
    return shared_memory_fits(p->d <= 64 ? BYTES_64 : BYTES_128) ? nullptr
                                                                 : "its tiles need more shared memory per block";
}

#endif
