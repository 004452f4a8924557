/* What the rungs of chapter 16 do with tiles of bytes in shared memory. Tiles of Q and K have rows of D bytes, in the TMA's swizzle of D
 * bytes; a tile of V transposed has D rows of Bc keys, in the swizzle of 128 bytes. Tiles begin at multiples of 1024 bytes. */
#ifndef TILES8_CUH
#define TILES8_CUH

#include "fp8.cuh"
#include "launch.h"

constexpr int Bc = 128; // keys per tile
static_assert(Bc == SCALE_ROWS, "a tile has one scale");

__device__ inline uint8_t *first_multiple_of_1024(void *p) { return (uint8_t *)(((uintptr_t)p + 1023) / 1024 * 1024); }

/* One thread requests a box of `bytes` bytes; `full` completes when all are there. What lies outside of the tensor arrives as zeros. */
__device__ inline void load_bytes(uint8_t *tile, const CUtensorMap &map, int bytes, int column, int row, int head,
                                  uint64_t *full) {
    mbarrier_arrive_expect(full, bytes);
    tma_load(tile, &map, column, row, head, full);
}

/* Start S = Q K^T for 64 rows of Q and Bc keys. T: the type of Q and K. */
template <int D, class T>
__device__ __forceinline__ void multiply_QK8(float (&S)[Bc / 8][4], const uint8_t *Q_tile, const uint8_t *K_tile) {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < D / 32; k++) // 32 columns of Q and K: 32 bytes further
        wgmma_fp8(T(), S, bytes_tile<D>(Q_tile + 32 * k), bytes_tile<D>(K_tile + 32 * k), k > 0);
    wgmma_commit();
}

/* Start part = P V for the keys of one tile, in a fresh accumulator. T: the type of V. */
template <int D, class T>
__device__ __forceinline__ void multiply_PV8(float (&part)[D / 8][4], const uint32_t (&P)[Bc / 32][4],
                                             const uint8_t *V_tile) {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < Bc / 32; k++) // 32 keys: 32 bytes further
        wgmma_fp8(T(), part, P[k], bytes_tile<Bc>(V_tile + 32 * k), k > 0);
    wgmma_commit();
}

/* O becomes O rescale + part V_scale, in fp32. */
template <int NO>
__device__ __forceinline__ void add_part(float (&O)[NO][4], const float (&part)[NO][4], const float (&rescale)[2],
                                         float V_scale) {
#pragma unroll
    for (int n = 0; n < NO; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) O[n][e] = O[n][e] * rescale[e / 2] + part[n][e] * V_scale;
}

/* The same where the scale of V is left to the end: one instruction for an element. */
template <int NO>
__device__ __forceinline__ void add_part(float (&O)[NO][4], const float (&part)[NO][4], const float (&rescale)[2]) {
#pragma unroll
    for (int n = 0; n < NO; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) O[n][e] = O[n][e] * rescale[e / 2] + part[n][e];
}

/* Call run.operator()<D, T>() with the tile width D, 64 or 128, and the type T of Q, K and V. */
template <class F> cudaError_t dispatch8(const problem *p, F run) {
    if (p->fp8 == E4M3)
        return p->d <= 64 ? run.template operator()<64, __nv_fp8_e4m3>()
                          : run.template operator()<128, __nv_fp8_e4m3>();
    return p->d <= 64 ? run.template operator()<64, __nv_fp8_e5m2>() : run.template operator()<128, __nv_fp8_e5m2>();
}

/* For `struct step`: why this device cannot do the problem, when its blocks have less shared memory than a Hopper card's. */
template <size_t BYTES_64, size_t BYTES_128> const char *needs_shared_memory(const problem *p) {
    return shared_memory_fits(p->d <= 64 ? BYTES_64 : BYTES_128) ? nullptr
                                                                 : "its tiles need more shared memory per block";
}

#endif
