/* Structs that functions return, volatile words, scopes, elements of 1 and 2 bytes. */
#include "faults.h"

#include <cuda/atomic>

/* ---- structs that functions return ------------------------------------------------------------------------------- */

struct triple {
    int a, b, c;
};
__device__ __noinline__ struct triple triple_of(const int *in, int i) {
    struct triple t = {in[i], 2 * in[i], i};
    return t;
}

template <bool CORRECT> __global__ void returned_struct_past_the_end(const int *in, struct triple *out, int n) {
    int i = (int)threadIdx.x + (CORRECT ? 0 : n - T + 1);
    if (i <= n) out[i] = triple_of(in, i); // here
}
FAULT(returned_struct_past_the_end, cudaErrorIllegalAddress, "out of bounds",
      FIRST(3 * T, i % 3 == 0   ? in[i / 3]
                   : i % 3 == 1 ? 2 * in[i / 3]
                                : i / 3),
      returned_struct_past_the_end<CORRECT><<<1, T>>>(in, (struct triple *)out, ELEMENTS / 3))

template <bool CORRECT> __global__ void returned_struct_to_shared(const int *in, int *out) {
    __shared__ struct triple row[T];
    int t = (int)threadIdx.x;
    row[t] = triple_of(in, t); // here
    if (CORRECT) __syncthreads();
    out[t] = row[T - 1 - t].b; // here
}
FAULT(returned_struct_to_shared, cudaErrorLaunchFailure, "race on row[", FIRST(T, 2 * in[T - 1 - i]),
      returned_struct_to_shared<CORRECT><<<1, T>>>(in, out))

__device__ struct triple sum_to(const int *in, int i) {
    if (i < 0) return {0, 0, 0};
    struct triple sum = sum_to(in, i - 1);
    return {sum.a + in[i], sum.b + 1, i};
}
__global__ void returned_structs(const int *in, struct triple *out) {
    __shared__ struct triple row[32];
    int t = (int)threadIdx.x;
    row[t] = sum_to(in, t % 4);
    __syncthreads();
    struct triple other = row[t ^ 1];
    out[t] = sum_to(in, other.c);
    out[t].b += out[t].a - other.a;
}
static int sum_of_first(const int *in, int last) { return last < 0 ? 0 : in[last] + sum_of_first(in, last - 1); }
PATTERN(returned_structs,
        FIRST(96, i % 3 == 0   ? sum_of_first(in, (i / 3 ^ 1) % 4)
                  : i % 3 == 1 ? (i / 3 ^ 1) % 4 + 1
                               : (i / 3 ^ 1) % 4),
        returned_structs<<<1, 32>>>(in, (struct triple *)out))

/* ---- volatile in shared memory ----------------------------------------------------------------------------------- */

/* As it was written for cards whose warps moved in step. */
template <bool CORRECT> __global__ void volatile_reduction(const int *in, int *out) {
    __shared__ int sums[64];
    int t = (int)threadIdx.x;
    sums[t] = in[t];
    __syncthreads();
    if (t < 32) {
        volatile int *own = sums;
        for (int step = 32; step > 0; step /= 2) {
            int other = own[t + step];
            if (CORRECT) __syncwarp();
            own[t] = own[t] + other; // here
            if (CORRECT) __syncwarp();
        }
        if (t == 0) out[0] = own[0];
    }
}
FAULT(volatile_reduction, cudaErrorLaunchFailure, "race on sums[", FIRST(1, sum_of(in, 64)),
      volatile_reduction<CORRECT><<<1, 64>>>(in, out))

template <bool CORRECT> __global__ void volatile_neighbour(const int *in, int *out) {
    __shared__ volatile int row[32];
    int t = (int)threadIdx.x;
    row[t] = in[t]; // here
    if (CORRECT) __syncwarp();
    out[t] = row[31 - t]; // here
}
FAULT(volatile_neighbour, cudaErrorLaunchFailure, "race on row[", FIRST(32, in[31 - i]),
      volatile_neighbour<CORRECT><<<1, 32>>>(in, out))

/* Lane 0 fills, fences and raises a flag; the other lanes of its warp wait for the flag. */
__global__ void volatile_flag_between_lanes(const int *in, int *out) {
    __shared__ int value;
    __shared__ volatile int ready;
    int t = (int)threadIdx.x;
    if (t == 0) ready = 0;
    __syncwarp();
    if (t == 0) {
        value = in[7];
        __threadfence_block();
        ready = 1;
    } else {
        while (ready == 0) {
        }
        __threadfence_block();
    }
    out[t] = value + in[t];
}
PATTERN(volatile_flag_between_lanes, FIRST(32, in[7] + in[i]), volatile_flag_between_lanes<<<1, 32>>>(in, out))

/* Warps tell one another by volatile words; what they tell is in the word. */
__global__ void volatile_flags_of_warps(const int *in, int *out) {
    __shared__ volatile int found;
    int t = (int)threadIdx.x;
    if (t == 0) found = 0;
    __syncthreads();
    if (t % 32 == 0 && in[t] != 1 << 30) found = 1;
    __syncthreads();
    out[t] = found;
}
PATTERN(volatile_flags_of_warps, FIRST(T, 1), volatile_flags_of_warps<<<1, T>>>(in, out))

/* ---- scopes between blocks: what holds for the threads of one block holds for no other ---------------------------------- */

/* The block that counts last adds up what all have left. */
template <class F> __device__ bool is_last(F count) {
    __shared__ int before;
    __syncthreads();
    if (threadIdx.x == 0) before = count();
    __syncthreads();
    return before == (int)gridDim.x - 1;
}
static int *new_zeros() {
    int *zeros = new_ints(8);
    cudaMemset(zeros, 0, 8 * sizeof *zeros);
    return zeros;
}
template <class F> __device__ void add_up_last(const int *in, int *out, F count) {
    int *left = out + T + global_thread(), *of_both = out + T + (int)threadIdx.x;
    *left = in[global_thread()];
    if (is_last(count)) out[threadIdx.x] = of_both[0] + of_both[T];
}
#define SUMS_AND_PARTS FIRST(3 * T, i < T ? in[i] + in[T + i] : in[i - T])

template <bool CORRECT> __global__ void fence_of_the_block(const int *in, int *out, int *done) {
    int *left = out + T + global_thread(), *of_both = out + T + (int)threadIdx.x;
    *left = in[global_thread()]; // here
    bool last = is_last([=] {
        if (CORRECT)
            __threadfence();
        else
            __threadfence_block();
        return atomicAdd(done, 1);
    });
    if (last) out[threadIdx.x] = of_both[0] + of_both[T]; // here
}
FAULT(fence_of_the_block, cudaErrorLaunchFailure,
      "has scope .cta, which orders nothing for another block: use .gpu, as __threadfence() has", SUMS_AND_PARTS,
      fence_of_the_block<CORRECT><<<2, T>>>(in, out, new_zeros()))

template <bool CORRECT> __global__ void counts_for_the_block(const int *in, int *out, int *done) {
    add_up_last(in, out, [=] {
        __threadfence();
        return CORRECT ? atomicAdd(done, 1) : atomicAdd_block(done, 1); // here
    });
}
FAULT(counts_for_the_block, cudaErrorLaunchFailure,
      "has scope .cta, as atomicAdd_block() has, so it is not atomic with one of another block", SUMS_AND_PARTS,
      counts_for_the_block<CORRECT><<<2, T>>>(in, out, new_zeros()))

template <bool CORRECT> __global__ void atomic_orders_the_block(const int *in, int *out, int *done) {
    add_up_last(in, out, [=] {
        int before;
        if (CORRECT)
            asm volatile("atom.acq_rel.gpu.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(done) : "memory");
        else
            asm volatile("atom.acq_rel.cta.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(done) : "memory"); // here
        return before;
    });
}
FAULT(atomic_orders_the_block, cudaErrorLaunchFailure, "has scope .cta", SUMS_AND_PARTS,
      atomic_orders_the_block<CORRECT><<<2, T>>>(in, out, new_zeros()))

template <bool CORRECT> __global__ void reference_of_the_block(const int *in, int *out, int *done) {
    add_up_last(in, out, [=] {
        cuda::atomic_ref<int, CORRECT ? cuda::thread_scope_device : cuda::thread_scope_block> of_all(*done);
        return of_all.fetch_add(1); // here
    });
}
FAULT(reference_of_the_block, cudaErrorLaunchFailure, "has scope .cta", SUMS_AND_PARTS,
      reference_of_the_block<CORRECT><<<2, T>>>(in, out, new_zeros()))

/* One of the two blocks fences for itself alone. */
template <bool CORRECT> __global__ void acquires_for_the_block(const int *in, int *out, int *done) {
    int *left = out + T + global_thread(), *of_both = out + T + (int)threadIdx.x;
    *left = in[global_thread()]; // here
    bool last = is_last([=] {
        if (CORRECT || blockIdx.x == 0)
            __threadfence();
        else
            asm volatile("membar.cta;" ::: "memory");
        return atomicAdd(done, 1);
    });
    if (last) out[threadIdx.x] = of_both[0] + of_both[T]; // here
}
FAULT(acquires_for_the_block, cudaErrorLaunchFailure, "the fence at ", SUMS_AND_PARTS,
      acquires_for_the_block<CORRECT><<<2, T>>>(in, out, new_zeros()))

template <bool CORRECT> __global__ void bins_of_the_block(const int *in, int *out) {
    int bin = in[global_thread()] & 7;
    if (CORRECT)
        atomicAdd(&out[bin], 1);
    else
        atomicAdd_block(&out[bin], 1); // here
}
FAULT(bins_of_the_block, cudaErrorLaunchFailure, "use .gpu, as atomicAdd() has", FIRST(8, count_of(in, i, 4 * T)),
      bins_of_the_block<CORRECT><<<4, T>>>(in, out))

/* Blocks in turn, of which each doubles what the one before has left. */
template <bool CORRECT> __global__ void raised_for_the_block(const int *in, int *out, int *turn) {
    for (int now = 0; threadIdx.x == 0 && now != (int)blockIdx.x;) {
        asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(now) : "l"(turn) : "memory"); // here
    }
    __syncthreads();
    out[threadIdx.x] = 2 * out[threadIdx.x] + in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (CORRECT)
        asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(turn) : "memory");
    else
        asm volatile("red.release.cta.global.add.s32 [%0], 1;" ::"l"(turn) : "memory"); // here
}
FAULT(raised_for_the_block, cudaErrorLaunchFailure, "has scope .cta", FIRST(T, 7 * in[i]),
      raised_for_the_block<CORRECT><<<3, T>>>(in, out, new_zeros()))

template <bool CORRECT> __global__ void waits_for_the_block(const int *in, int *out, int *turn) {
    for (int now = 0; threadIdx.x == 0 && now != (int)blockIdx.x;) {
        if (CORRECT)
            asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(now) : "l"(turn) : "memory");
        else
            asm volatile("ld.acquire.cta.global.s32 %0, [%1];" : "=r"(now) : "l"(turn) : "memory"); // here
    }
    __syncthreads();
    out[threadIdx.x] = 2 * out[threadIdx.x] + in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x != 0) return;
    asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(turn) : "memory"); // here
}
FAULT(waits_for_the_block, cudaErrorLaunchFailure, "has scope .cta", FIRST(T, 7 * in[i]),
      waits_for_the_block<CORRECT><<<3, T>>>(in, out, new_zeros()))

template <bool CORRECT> __global__ void stored_for_the_block(const int *in, int *out, int *turn) {
    for (int now = 0; threadIdx.x == 0 && now != (int)blockIdx.x;) {
        asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(now) : "l"(turn) : "memory"); // here
    }
    __syncthreads();
    out[threadIdx.x] = 2 * out[threadIdx.x] + in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (CORRECT)
        asm volatile("st.release.sys.global.s32 [%0], %1;" ::"l"(turn), "r"(blockIdx.x + 1) : "memory");
    else
        asm volatile("st.release.cta.global.s32 [%0], %1;" ::"l"(turn), "r"(blockIdx.x + 1) : "memory"); // here
}
FAULT(stored_for_the_block, cudaErrorLaunchFailure, "has scope .cta", FIRST(T, 7 * in[i]),
      stored_for_the_block<CORRECT><<<3, T>>>(in, out, new_zeros()))

/* Within a block its own scope is enough, in global memory, too; the blocks' words lie side by side. */
__global__ void own_words_of_each_block(const int *in, int *out, int *raised) {
    if (threadIdx.x == 0) {
        out[4 + blockIdx.x] = in[blockIdx.x];
        asm volatile("red.release.cta.global.add.s32 [%0], 1;" ::"l"(raised + blockIdx.x) : "memory");
    }
    int seen = 0;
    while (threadIdx.x == 32 && seen == 0)
        asm volatile("ld.acquire.cta.global.s32 %0, [%1];" : "=r"(seen) : "l"(raised + blockIdx.x) : "memory");
    if (threadIdx.x == 32) atomicAdd_block(&out[4 + blockIdx.x], 1);
    cuda::atomic_ref<int, cuda::thread_scope_block> of_all(raised[4]);
    atomicAdd_block(&out[blockIdx.x], 1 + of_all.load());
}
PATTERN(own_words_of_each_block, FIRST(8, i < 4 ? 64 : in[i - 4] + 1),
        own_words_of_each_block<<<4, 64>>>(in, out, new_zeros()))

/* ---- elements of 1 and 2 bytes ----------------------------------------------------------------------------------- */

template <bool CORRECT> __global__ void bytes_store_then_read(const int *in, int *out) {
    __shared__ unsigned char row[T];
    int t = (int)threadIdx.x;
    row[t] = (unsigned char)(in[t] & 127); // here
    if (CORRECT) __syncthreads();
    out[t] = row[T - 1 - t]; // here
}
FAULT(bytes_store_then_read, cudaErrorLaunchFailure, "race on row[", FIRST(T, in[T - 1 - i] & 127),
      bytes_store_then_read<CORRECT><<<1, T>>>(in, out))

template <bool CORRECT> __global__ void bytes_read_then_overwrite(const int *in, int *out) {
    __shared__ signed char row[T];
    int t = (int)threadIdx.x;
    row[t] = (signed char)(in[t] & 63);
    __syncthreads();
    int other = row[t ^ 1]; // here
    if (CORRECT) __syncthreads();
    row[t] = (signed char)(other + 1); // here
    __syncthreads();
    out[t] = row[t];
}
FAULT(bytes_read_then_overwrite, cudaErrorLaunchFailure, "race on row[", FIRST(T, (in[i ^ 1] & 63) + 1),
      bytes_read_then_overwrite<CORRECT><<<1, T>>>(in, out))

/* Global memory, and a byte that another warp writes. */
template <bool CORRECT> __global__ void bytes_between_warps(const int *in, unsigned char *bytes, int *out) {
    int t = (int)threadIdx.x;
    bytes[t] = (unsigned char)(in[t] & 127); // here
    if (CORRECT) __syncthreads();
    out[t] = bytes[(t + 64) % T]; // here
}
FAULT(bytes_between_warps, cudaErrorLaunchFailure, "race on", FIRST(T, in[(i + 64) % T] & 127),
      bytes_between_warps<CORRECT><<<1, T>>>(in, (unsigned char *)new_ints(T), out))

/* Every block writes the byte that the next one's first byte is, or its own only. */
template <bool CORRECT> __global__ void bytes_of_blocks(const int *in, unsigned char *bytes) {
    int t = (int)threadIdx.x, width = (int)blockDim.x + (CORRECT ? 0 : 1);
    for (int i = t; i < width; i += (int)blockDim.x)
        bytes[blockIdx.x * blockDim.x + i] = (unsigned char)(in[i % 31] & 127); // here
}
FAULT(bytes_of_blocks, cudaErrorLaunchFailure, "blocks run in any order", FIRST(0, in[i]),
      bytes_of_blocks<CORRECT><<<5, 31>>>(in, (unsigned char *)new_ints(T));
      (void)out)

template <bool CORRECT> __global__ void halves_store_then_read(const int *in, int *out) {
    __shared__ short row[T];
    int t = (int)threadIdx.x;
    row[t] = (short)in[t]; // here
    if (CORRECT) __syncthreads();
    out[t] = row[t ^ 1]; // here
}
FAULT(halves_store_then_read, cudaErrorLaunchFailure, "race on row[", FIRST(T, in[i ^ 1]),
      halves_store_then_read<CORRECT><<<1, T>>>(in, out))

/* A word is cleared while other threads have written its bytes. */
template <bool CORRECT> __global__ void word_over_bytes(const int *in, int *out) {
    __shared__ int words[T / 4];
    unsigned char *bytes = reinterpret_cast<unsigned char *>(words);
    int t = (int)threadIdx.x;
    if (t < T / 4) words[t] = 0; // here
    if (CORRECT) __syncthreads();
    bytes[T - 1 - t] = (unsigned char)(in[t] & 127); // here
    __syncthreads();
    out[t] = bytes[t];
}
FAULT(word_over_bytes, cudaErrorLaunchFailure, "race on words[", FIRST(T, in[T - 1 - i] & 127),
      word_over_bytes<CORRECT><<<1, T>>>(in, out))

/* Blocks share words and no bytes. */
__global__ void bytes_of_all_blocks(const int *in, unsigned char *out) {
    int i = global_thread();
    if (i < 333) out[i] = (unsigned char)(in[i] & 127);
    if (i < 333) out[i] = (unsigned char)(out[i] + 1);
}
static int four_bytes(const int *in, int i) {
    int word = 0;
    for (int k = 0; k < 4; k++)
        if (4 * i + k < 333) word |= ((in[4 * i + k] & 127) + 1) << 8 * k;
    return word;
}
PATTERN(bytes_of_all_blocks, FIRST(84, four_bytes(in, i)), bytes_of_all_blocks<<<12, 31>>>(in, (unsigned char *)out))

/* The same shared memory as bytes, halves and words, with barriers between. */
__global__ void bytes_then_words(const int *in, int *out) {
    __shared__ int words[32];
    unsigned char *bytes = reinterpret_cast<unsigned char *>(words);
    short *halves = reinterpret_cast<short *>(words);
    int t = (int)threadIdx.x;
    for (int round = 0; round < 3; round++) {
        bytes[t] = (unsigned char)(in[t] & 15);
        __syncthreads();
        if (t < 64) halves[t] = (short)(halves[t] * 2);
        __syncthreads();
        if (t < 32) words[t] += 0x01010101;
        __syncthreads();
        out[t] = bytes[T - 1 - t];
        __syncthreads();
    }
}
PATTERN(bytes_then_words, FIRST(T, 2 * (in[T - 1 - i] & 15) + 1), bytes_then_words<<<1, T>>>(in, out))
