// Planted faults that need more than one turn of each warp, or more than one block: orders of warps, waits that come late, tiles and
// descriptors that do not match, and clusters. As those of hopper_faults.cu, for cards of compute_capability = 90.
#include "faults.h"

#include "hopper.cuh"

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
