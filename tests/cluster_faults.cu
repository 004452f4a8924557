// Planted faults that need more than one turn of each warp, or more than one block: orders of warps, waits that come late, tiles and
// descriptors that do not match, and clusters. As those of hopper_faults.cu, for cards of compute_capability = 90.
#include "faults.h"

#include "hopper.cuh"
#include "tensors.h"

// ---- orders of warps: without a seed the last warp to come to a barrier goes on first, then the others in turn

// Tickets go to warps as they come: that three of them come in turn is luck.
template <bool CORRECT> __global__ static void ticket_taken_for_warp(const int *in, int *out) {
    __shared__ int next;
    if (threadIdx.x == 0) next = 0;
    __syncthreads();
    int warp = threadIdx.x / 32;
    if (warp == 3) return;
    int ticket = threadIdx.x % 32 == 0 ? atomicAdd(&next, 1) : 0;
    ticket = __shfl_sync(0xffffffffu, ticket, 0);
    out[32 * (CORRECT ? warp : ticket) + threadIdx.x % 32] = in[threadIdx.x];
    if (!CORRECT) assert(ticket == warp);
}
FAULT_OF_ORDER(ticket_taken_for_warp, cudaErrorAssert, "assertion failed", FIRST(96, in[i]),
               ticket_taken_for_warp<CORRECT><<<1, T>>>(in, out))

// Who comes first leads the others, but warp 2 does not know how.
template <bool CORRECT> __global__ static void role_of_who_comes_first(const int *in, int *out) {
    __shared__ int next;
    if (threadIdx.x == 0) next = 0;
    __syncthreads();
    int warp = threadIdx.x / 32;
    if (warp == 3) return;
    int ticket = threadIdx.x % 32 == 0 ? atomicAdd(&next, 1) : 0;
    ticket = __shfl_sync(0xffffffffu, ticket, 0);
    if (CORRECT ? warp == 0 : ticket == 0 && warp != 2)
        named_barrier_arrive(1, 96);
    else if (CORRECT || ticket != 0)
        named_barrier_sync(1, 96);
    out[threadIdx.x] = in[threadIdx.x];
}
FAULT_OF_ORDER(role_of_who_comes_first, cudaErrorLaunchFailure, "deadlock: no thread can go on", FIRST(96, in[i]),
               role_of_who_comes_first<CORRECT><<<1, T>>>(in, out))

// ---- waits that come too late

__device__ static void two_barriers(uint64_t *full, uint64_t *empty, volatile int *flag) {
    if (threadIdx.x == 0) {
        mbarrier_init(full, 32);
        mbarrier_init(empty, T - 32);
        fence_mbarrier_init();
        *flag = 0;
    }
    __syncthreads();
}

// Warp 0 goes on for so many phases, where it should wait for the others. They are slow.
template <bool CORRECT>
__device__ static int slow_consumers(uint64_t *full, uint64_t *empty, volatile int *flag, int rounds) {
    if (threadIdx.x < 32) {
        for (int i = 0; i < rounds; i++) {
            mbarrier_arrive(full);
            if (CORRECT) mbarrier_wait(empty, i % 2);
            __syncwarp();
        }
        if (threadIdx.x == 0) *flag = 1;
        return 0;
    }
    while (!CORRECT && *flag == 0) __nanosleep(1);
    return rounds;
}

// The phase that is waited for is over, and so is the next one: its parity comes again with the third one, to which nobody arrives.
template <bool CORRECT> __global__ static void two_phases_late(const int *in, int *out) {
    __shared__ uint64_t full, empty;
    __shared__ volatile int flag;
    two_barriers(&full, &empty, &flag);
    int rounds = slow_consumers<CORRECT>(&full, &empty, &flag, 2);
    for (int i = 0; i < rounds; i++) {
        mbarrier_wait(&full, i % 2); // here
        mbarrier_arrive(&empty);
    }
    out[threadIdx.x] = in[threadIdx.x];
}
FAULT(two_phases_late, cudaErrorLaunchFailure, "it means phase 0; 2 are over, and it waits for phase 2 now",
      FIRST(T, in[i]), two_phases_late<CORRECT><<<1, T>>>(in, out))

// Three phases late: the wait ends at once, by a later phase than was meant.
template <bool CORRECT> __global__ static void three_phases_late(const int *in, int *out) {
    __shared__ uint64_t full, empty;
    __shared__ volatile int flag;
    two_barriers(&full, &empty, &flag);
    int rounds = slow_consumers<CORRECT>(&full, &empty, &flag, 3);
    for (int i = 0; i < rounds; i++) {
        mbarrier_wait(&full, i % 2); // here
        mbarrier_arrive(&empty);
    }
    out[threadIdx.x] = in[threadIdx.x];
}
FAULT(three_phases_late, cudaErrorLaunchFailure, "it means phase 0; 3 are over, and the wait ends at once",
      FIRST(T, in[i]), three_phases_late<CORRECT><<<1, T>>>(in, out))

// The first wait for an empty stage must pass. Either the others arrive in advance, or the parity is that of the phase before the first:
// both together wait for a phase that does not come.
template <bool CORRECT> __global__ static void empty_twice(const int *in, int *out) {
    __shared__ uint64_t full, empty;
    __shared__ volatile int flag;
    two_barriers(&full, &empty, &flag);
    if (threadIdx.x >= 32) {
        mbarrier_arrive(&empty); // here
        __syncwarp();
        if (threadIdx.x % 32 == 0) atomicAdd((int *)&flag, 1);
    } else {
        while (flag < 3) __nanosleep(1);
        mbarrier_wait(&empty, CORRECT ? 0 : 1); // here
    }
    out[threadIdx.x] = in[threadIdx.x];
}
FAULT(empty_twice, cudaErrorLaunchFailure, "it means the one before the first; 1 are over", FIRST(T, in[i]),
      empty_twice<CORRECT><<<1, T>>>(in, out))

// Who arrives alone need not wait for its own phases; who learns of a phase from others need not wait for it.
__global__ static void phases_known_otherwise(const int *in, int *out) {
    __shared__ uint64_t full;
    if (threadIdx.x == 0) {
        mbarrier_init(&full, 1);
        fence_mbarrier_init();
    }
    __syncthreads();
    for (int i = 0; i < 3; i++) {
        if (threadIdx.x == 0) mbarrier_arrive(&full);
        if (i % 2 == 1) __syncthreads();
    }
    if (threadIdx.x == 0) mbarrier_wait(&full, 0);
    __syncthreads();
    if (threadIdx.x >= 32) mbarrier_wait(&full, 0);
    mbarrier_wait(&full, 0);
    out[threadIdx.x] = in[threadIdx.x];
}
PATTERN(phases_known_otherwise, FIRST(T, in[i]), phases_known_otherwise<<<1, T>>>(in, out))

// ---- one lane of a warp

// elect.sync lets the lanes meet and orders nothing: the lane that arrives for the warp does not know what the others have stored.
template <bool CORRECT> __global__ static void elected_arrive(MAP, const int *in) {
    __shared__ uint64_t full;
    ready(&full, 1);
    if (threadIdx.x / 32 == 1) {
        for (int i = threadIdx.x % 32; i < TILE; i += 32) smem[i] = in[i]; // here
        fence_proxy_async();
        if (CORRECT) __syncwarp();
        if (elect_one()) mbarrier_arrive(&full);
    }
    if (threadIdx.x != 0) return;
    mbarrier_wait(&full, 0);
    tma_store(&map, 0, 0, 0, smem); // here
    tma_commit();
    tma_wait_read<0>();
}
FAULT(elected_arrive, cudaErrorLaunchFailure, "nothing orders the two", FIRST(TILE, in[i]),
      elected_arrive<CORRECT><<<1, T, TILE_BYTES>>>(map_of(out), in))

template <bool CORRECT> __global__ static void elected_by_half(const int *in, int *out) {
    bool one = false;
    if (CORRECT || threadIdx.x % 32 < 16) one = elect_one(); // here
    out[threadIdx.x] = in[threadIdx.x] + one;
    __syncwarp();
}
FAULT(elected_by_half, cudaErrorLaunchFailure, "elect.sync", FIRST(T, in[i] + (i % 32 == 0)),
      elected_by_half<CORRECT><<<1, T>>>(in, out))

// ---- descriptors that do not fit the tile: 64 rows of 64 elements of 16 bits, loaded from `in`, of which two rows are used

__device__ static void load_tile(uint64_t *full, const CUtensorMap *map) {
    ready(full, 1);
    if (threadIdx.x == 0) {
        mbarrier_arrive_expect(full, ONES_BYTES);
        tma_load(smem, map, 0, 100, 0, full);
    }
    mbarrier_wait(full, 0);
}
static CUtensorMap swizzled_map(const int *in, CUtensorMapSwizzle swizzle, int columns = COLUMNS) {
    return map_of(in, {.columns = columns, .stride = 4 * columns, .box_rows = 64, .swizzle = swizzle});
}

// Row 1 of the tile is exchanged by the descriptor's swizzle, and not by the map's.
template <bool CORRECT> __global__ static void tile_without_swizzle(MAP, int *out) {
    __shared__ uint64_t full;
    load_tile(&full, &map);
    float C[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, swizzled_tile(smem, 0), swizzled_tile(smem, 0), false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + 1;
}
FAULT(tile_without_swizzle, cudaErrorLaunchFailure,
      "it would take column 8 of row 1 of the tile instead of column 0 of row 1", FIRST(T, 1),
      tile_without_swizzle<CORRECT>
      <<<1, T, ONES_BYTES>>>(swizzled_map(in, CORRECT ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE), out))

// Eight rows of a tile are 8 rows of 128 bytes: with 64 as for the smaller swizzle, row 8 would be row 4.
template <bool CORRECT> __global__ static void stride_of_other_swizzle(MAP, int *out) {
    __shared__ uint64_t full;
    load_tile(&full, &map);
    uint64_t A = shared_address(smem) / 16 | (CORRECT ? 64ull : 32ull) << 32 | 1ull << 62;
    float C[8][4];
    wgmma_fence();
    wgmma<false>(__half(), C, A, swizzled_tile(smem, 0), false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)C[7][3] + 1;
}
FAULT(stride_of_other_swizzle, cudaErrorLaunchFailure,
      "it would take column 0 of row 4 of the tile instead of column 0 of row 8", FIRST(T, 1),
      stride_of_other_swizzle<CORRECT><<<1, T, ONES_BYTES>>>(swizzled_map(in, CU_TENSOR_MAP_SWIZZLE_128B), out))

// B with one k per row: 64 columns of C are one panel. A second one is not there, and the offset leads to row 16 of the first.
template <bool CORRECT> __global__ static void panel_that_is_not_there(MAP, int *out) {
    __shared__ uint64_t full;
    load_tile(&full, &map);
    float C[8][4], D[16][4];
    uint64_t A = swizzled_tile(smem, 0), B = swizzled_tile(smem, 2048);
    wgmma_fence();
    if (CORRECT)
        wgmma<true>(__half(), C, A, B, false);
    else
        wgmma<true>(__half(), D, A, B, false); // here
    wgmma_commit();
    wgmma_wait<0>();
    out[threadIdx.x] = (int)(CORRECT ? C[7][3] : D[7][3]) + 1;
}
FAULT(panel_that_is_not_there, cudaErrorLaunchFailure,
      "it would take column 0 of row 16 of the tile instead of column 64 of row 0", FIRST(T, 1),
      panel_that_is_not_there<CORRECT><<<1, T, ONES_BYTES>>>(swizzled_map(in, CU_TENSOR_MAP_SWIZZLE_128B), out))
