// For cards of compute_capability = 80 and later, which have __reduce_add_sync() and the like.
#include "simt_kernels.h"

static dim3 to_dim3(struct extent e) { return dim3(e.x, e.y, e.z); }

__device__ static int global_thread() { return (int)(blockIdx.x * blockDim.x + threadIdx.x); }

/* ---- indices ----------------------------------------------------------------------------------------------------- */

__global__ void indices(seen *out) {
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    seen *mine = out + (size_t)block * blockDim.x * blockDim.y * blockDim.z + thread;
    mine->thread = {threadIdx.x, threadIdx.y, threadIdx.z};
    mine->block = {blockIdx.x, blockIdx.y, blockIdx.z};
    mine->block_size = {blockDim.x, blockDim.y, blockDim.z};
    mine->grid_size = {gridDim.x, gridDim.y, gridDim.z};
    atomicAdd(&mine->times, 1u);
}

void run_indices(struct extent grid, struct extent block, seen *out) {
    indices<<<to_dim3(grid), to_dim3(block)>>>(out);
}

/* ---- block-wide barriers ----------------------------------------------------------------------------------------- */

__global__ void reverse(int *data) {
    __shared__ int copy[1024];
    int t = (int)threadIdx.x, n = (int)blockDim.x;
    copy[t] = data[t];
    __syncthreads();
    data[t] = copy[n - 1 - t];
}

void run_reverse(int *data, int threads) { reverse<<<1, threads>>>(data); }

__global__ void block_sum(const int *in, int *out) {
    __shared__ int sums[1024];
    int t = (int)threadIdx.x, n = (int)blockDim.x;
    sums[t] = in[t];
    __syncthreads();
    for (int stride = 512; stride > 0; stride /= 2) {
        if (t < stride && t + stride < n) sums[t] += sums[t + stride];
        __syncthreads();
    }
    if (t == 0) *out = sums[0];
}

void run_block_sum(const int *in, int *out, int threads) { block_sum<<<1, threads>>>(in, out); }

__global__ void rotate(int *data, int rounds) {
    __shared__ int ring[1024];
    int t = (int)threadIdx.x, n = (int)blockDim.x;
    ring[t] = data[t];
    for (int round = 0; round < rounds; round++) {
        __syncthreads();
        int next = ring[(t + 1) % n];
        __syncthreads();
        ring[t] = next;
    }
    data[t] = ring[t];
}

void run_rotate(int *data, int threads, int rounds) { rotate<<<1, threads>>>(data, rounds); }

__global__ void block_votes(const int *predicates, int *out) {
    int t = (int)threadIdx.x, predicate = predicates[t];
    out[3 * t] = __syncthreads_count(predicate);
    out[3 * t + 1] = __syncthreads_or(predicate) != 0;
    out[3 * t + 2] = __syncthreads_and(predicate) != 0;
}

void run_block_votes(const int *predicates, int *out, int threads) { block_votes<<<1, threads>>>(predicates, out); }

/* ---- warps ------------------------------------------------------------------------------------------------------- */

/* The lanes that the caller's warp has: all, or fewer in the last warp of a block. */
__device__ static unsigned lanes_of_warp() {
    int left = (int)blockDim.x - ((int)threadIdx.x & ~31);
    return left >= 32 ? 0xffffffffu : (1u << left) - 1;
}

template <typename T> __global__ void shuffle_lanes(shuffle kind, const T *in, T *out, int width, int amounts) {
    int t = (int)threadIdx.x, lane = t % 32;
    unsigned mask = lanes_of_warp();
    T value = in[t];
    for (int amount = 0; amount < amounts; amount++) {
        T got = T();
        switch (kind) {
        case SHUFFLE_INDEX: got = __shfl_sync(mask, value, 5 * lane + amount, width); break;
        case SHUFFLE_UP: got = __shfl_up_sync(mask, value, (unsigned)amount, width); break;
        case SHUFFLE_DOWN: got = __shfl_down_sync(mask, value, (unsigned)amount, width); break;
        case SHUFFLE_XOR: got = __shfl_xor_sync(mask, value, amount, width); break;
        }
        out[amount * (int)blockDim.x + t] = got;
    }
}

void run_shuffle(enum shuffle kind, enum value_type type, const void *in, void *out, int threads, int width,
                 int amounts) {
    switch (type) {
    case TYPE_INT: shuffle_lanes<int><<<1, threads>>>(kind, (const int *)in, (int *)out, width, amounts); break;
    case TYPE_UNSIGNED:
        shuffle_lanes<unsigned><<<1, threads>>>(kind, (const unsigned *)in, (unsigned *)out, width, amounts);
        break;
    case TYPE_FLOAT: shuffle_lanes<float><<<1, threads>>>(kind, (const float *)in, (float *)out, width, amounts); break;
    case TYPE_DOUBLE:
        shuffle_lanes<double><<<1, threads>>>(kind, (const double *)in, (double *)out, width, amounts);
        break;
    case TYPE_LONG_LONG:
        shuffle_lanes<long long><<<1, threads>>>(kind, (const long long *)in, (long long *)out, width, amounts);
        break;
    }
}

__global__ void broadcast(const int *in, int *out) {
    out[threadIdx.x] = __shfl_sync(lanes_of_warp(), in[threadIdx.x], 0);
}

void run_broadcast(const int *in, int *out, int threads) { broadcast<<<1, threads>>>(in, out); }

__global__ void half_warps(const int *in, int *out) {
    int t = (int)threadIdx.x, sum = in[t];
    if (t % 32 < 16) {
        for (int bit = 8; bit > 0; bit /= 2) sum += __shfl_xor_sync(0x0000ffffu, sum, bit);
    } else {
        for (int bit = 8; bit > 0; bit /= 2) sum += __shfl_xor_sync(0xffff0000u, sum, bit, 16);
        sum = -sum; /* which branch a lane took shows in its result */
    }
    out[t] = sum;
}

void run_half_warps(const int *in, int *out, int threads) { half_warps<<<1, threads>>>(in, out); }

__global__ void syncwarp(int *data, int rounds) {
    __shared__ int values[1024];
    int t = (int)threadIdx.x, next = (t & ~31) + (t + 1) % 32;
    values[t] = data[t];
    for (int round = 0; round < rounds; round++) {
        __syncwarp();
        int value = values[next];
        __syncwarp();
        values[t] = value;
    }
    data[t] = values[t];
}

void run_syncwarp(int *data, int threads, int rounds) { syncwarp<<<1, threads>>>(data, rounds); }

__global__ void votes(const int *predicates, unsigned *out) {
    unsigned mask = lanes_of_warp();
    int t = (int)threadIdx.x, predicate = predicates[t];
    out[3 * t] = __any_sync(mask, predicate) != 0;
    out[3 * t + 1] = __all_sync(mask, predicate) != 0;
    out[3 * t + 2] = __ballot_sync(mask, predicate);
}

void run_votes(const int *predicates, unsigned *out, int threads) { votes<<<1, threads>>>(predicates, out); }

__global__ void votes_of_odd_lanes(const int *predicates, unsigned *out) {
    const unsigned odd = 0xaaaaaaaau;
    int t = (int)threadIdx.x, predicate = predicates[t];
    if (t % 2 == 0) return;
    out[3 * t] = __any_sync(odd, predicate) != 0;
    out[3 * t + 1] = __all_sync(odd, predicate) != 0;
    out[3 * t + 2] = __ballot_sync(odd, predicate);
}

void run_votes_of_odd_lanes(const int *predicates, unsigned *out) { votes_of_odd_lanes<<<1, 32>>>(predicates, out); }

__global__ void matches(const int *in, int *out) {
    unsigned mask = lanes_of_warp(), value = (unsigned)in[threadIdx.x];
    int *own = &out[MATCHES * threadIdx.x];
    own[MATCH_ANY] = (int)__match_any_sync(mask, in[threadIdx.x]);
    own[MATCH_ALL] = (int)__match_all_sync(mask, in[threadIdx.x], &own[MATCH_ALL_PREDICATE]);
    own[MATCH_ALL_OF_ONES] = (int)__match_all_sync(mask, 1, &own[MATCH_ALL_OF_ONES_PREDICATE]);
    own[REDUCE_ADD] = __reduce_add_sync(mask, in[threadIdx.x]);
    own[REDUCE_MIN] = __reduce_min_sync(mask, in[threadIdx.x]);
    own[REDUCE_MAX] = __reduce_max_sync(mask, in[threadIdx.x]);
    own[REDUCE_ADD_UNSIGNED] = (int)__reduce_add_sync(mask, value);
    own[REDUCE_MIN_UNSIGNED] = (int)__reduce_min_sync(mask, value);
    own[REDUCE_MAX_UNSIGNED] = (int)__reduce_max_sync(mask, value);
    own[REDUCE_AND] = (int)__reduce_and_sync(mask, value);
    own[REDUCE_OR] = (int)__reduce_or_sync(mask, value);
    own[REDUCE_XOR] = (int)__reduce_xor_sync(mask, value);
}

void run_matches(const int *in, int *out, int threads) { matches<<<1, threads>>>(in, out); }

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

template <typename T> __device__ void all_atomics(T *cells, int *tickets, int id) {
    T value = (T)id;
    atomicAdd(&tickets[(int)atomicAdd(&cells[CELL_ADD], (T)1)], 1);
    if constexpr (sizeof(T) == 4) atomicSub(&cells[CELL_SUB], (T)2); /* CUDA has it for 32 bits only */
    atomicMin(&cells[CELL_MIN], value);
    atomicMax(&cells[CELL_MAX], value);
    atomicAnd(&cells[CELL_AND], ~((T)1 << id % 31));
    atomicOr(&cells[CELL_OR], (T)1 << id % 31);
    atomicXor(&cells[CELL_XOR], value);
    atomicAdd(&cells[CELL_REPLACED], atomicExch(&cells[CELL_EXCHANGE], value));
    T expected = 0, found;
    while ((found = atomicCAS(&cells[CELL_CAS], expected, expected + 3)) != expected) expected = found;
}

template <typename T> __global__ void atomics_on_global(T *cells, int *tickets) {
    all_atomics(cells, tickets, global_thread());
}

template <typename T> __global__ void atomics_on_shared(T *cells, int *tickets) {
    __shared__ T own[CELLS];
    for (int i = (int)threadIdx.x; i < CELLS; i += (int)blockDim.x) own[i] = cells[blockIdx.x * CELLS + i];
    __syncthreads();
    all_atomics(own, tickets, (int)threadIdx.x);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < CELLS; i += (int)blockDim.x) cells[blockIdx.x * CELLS + i] = own[i];
}

template <typename T> static void run_atomics(T *cells, int *tickets, int blocks, int threads, int on_shared) {
    if (on_shared)
        atomics_on_shared<T><<<blocks, threads>>>(cells, tickets);
    else
        atomics_on_global<T><<<blocks, threads>>>(cells, tickets);
}

void run_atomics_int(int *cells, int *tickets, int blocks, int threads, int on_shared) {
    run_atomics(cells, tickets, blocks, threads, on_shared);
}
void run_atomics_unsigned(unsigned *cells, int *tickets, int blocks, int threads, int on_shared) {
    run_atomics(cells, tickets, blocks, threads, on_shared);
}
void run_atomics_long(unsigned long long *cells, int *tickets, int blocks, int threads, int on_shared) {
    run_atomics(cells, tickets, blocks, threads, on_shared);
}

template <typename T> __global__ void floating_atomics(T *cells, bool on_shared) {
    __shared__ T own[3];
    if (threadIdx.x < 3) own[threadIdx.x] = 0;
    __syncthreads();
    T *into = on_shared ? own : cells;
    atomicAdd(&into[0], (T)global_thread() / 4);
    if constexpr (sizeof(T) == 4) /* CUDA exchanges no doubles */
        atomicAdd(&into[2], atomicExch(&into[1], (T)global_thread()));
    __syncthreads();
    if (on_shared && threadIdx.x < 3) atomicAdd(&cells[threadIdx.x], own[threadIdx.x]);
}

void run_atomics_float(float *cells, int blocks, int threads, int on_shared) {
    floating_atomics<float><<<blocks, threads>>>(cells, on_shared != 0);
}
void run_atomics_double(double *cells, int blocks, int threads, int on_shared) {
    floating_atomics<double><<<blocks, threads>>>(cells, on_shared != 0);
}

__global__ void count_threads(int *count) { atomicAdd(count, 1); }

void run_count(int *count, int blocks, int threads) { count_threads<<<blocks, threads>>>(count); }

/* Each block sums its part; the block that finishes last adds the parts up. */
__global__ void last_block(const int *in, int n, volatile int *partial_sums, unsigned *blocks_done, int *out) {
    __shared__ int sum;
    __shared__ bool is_last;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    for (int i = global_thread(); i < n; i += (int)(gridDim.x * blockDim.x)) atomicAdd(&sum, in[i]);
    __syncthreads();
    if (threadIdx.x == 0) {
        partial_sums[blockIdx.x] = sum;
        __threadfence();
        is_last = atomicAdd(blocks_done, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last || threadIdx.x != 0) return;
    __threadfence();
    *out = 0;
    for (unsigned block = 0; block < gridDim.x; block++) *out += partial_sums[block];
}

void run_last_block(const int *in, int n, int *partial_sums, unsigned *blocks_done, int *out, int blocks) {
    last_block<<<blocks, 64>>>(in, n, partial_sums, blocks_done, out);
}

__global__ void spin_lock(int *lock, volatile int *count) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    *count = *count + 1;
    __threadfence();
    atomicExch(lock, 0);
}

void run_spin_lock(int *lock, int *count, int blocks, int threads) { spin_lock<<<blocks, threads>>>(lock, count); }

/* ---- shared memory ----------------------------------------------------------------------------------------------- */

__global__ void transpose(const float *in, float *out) {
    __shared__ float tile[32][32 + 1];
    int x = (int)threadIdx.x;
    for (int y = (int)threadIdx.y; y < 32; y += (int)blockDim.y) tile[y][x] = in[32 * y + x];
    __syncthreads();
    for (int y = (int)threadIdx.y; y < 32; y += (int)blockDim.y) out[32 * y + x] = tile[x][y];
}

void run_transpose(const float *in, float *out) { transpose<<<1, dim3(32, 8)>>>(in, out); }

/* A declaration over two lines is part of the test. */
// clang-format off
__global__ void many_arrays(const int *in, int *out) {
    __shared__ int mirrored[32], paired[16][2], total;
    __shared__ unsigned long long
        threads_seen;
    int t = (int)threadIdx.x;
    if (t == 0) total = 0, threads_seen = 0;
    mirrored[t] = in[t];
    paired[t / 2][t % 2] = in[t];
    __syncthreads();
    atomicAdd(&total, in[t]);
    atomicAdd(&threads_seen, 1ull);
    __syncthreads();
    out[t] = mirrored[31 - t] + 10 * paired[t / 2][1 - t % 2] + total + (int)threads_seen - 32;
}
// clang-format on

void run_many_arrays(const int *in, int *out) { many_arrays<<<1, 32>>>(in, out); }

template <typename T, int N> __device__ T sum_of_squares() {
    __shared__ T squares[2][N / 2];
    int t = (int)threadIdx.x;
    if (t < N) squares[t & 1][t >> 1] = (T)(t * t);
    __syncthreads();
    T sum = 0;
    for (int i = 0; i < N; i++) sum += squares[i & 1][i >> 1];
    __syncthreads();
    return sum;
}

__global__ void dependent_sizes(int *out) {
    int t = (int)threadIdx.x;
    out[t] = sum_of_squares<int, 8>();
    out[64 + t] = (int)sum_of_squares<float, 16>();
    out[128 + t] = (int)sum_of_squares<double, 32>();
    out[192 + t] = (int)sum_of_squares<long long, 64>();
}

void run_dependent_sizes(int *out) { dependent_sizes<<<1, 64>>>(out); }

__global__ void aligned_arrays(float *out, unsigned *misplaced) {
    __shared__ char odd_sized[3];
    __shared__ __align__(16) float first[64];
    __shared__ alignas(16) float second[64];
    __shared__ float4 third[16];
    int t = (int)threadIdx.x;
    if (t < 3) odd_sized[t] = (char)t;
    first[t] = (float)t;
    __syncthreads();
    if (t < 16) reinterpret_cast<float4 *>(second)[t] = reinterpret_cast<const float4 *>(first)[t];
    __syncthreads();
    if (t < 16) third[t] = reinterpret_cast<const float4 *>(second)[t];
    __syncthreads();
    out[t] = reinterpret_cast<const float *>(third)[t] + (float)odd_sized[t % 3];
    if (t == 0) *misplaced = (unsigned)(((size_t)first | (size_t)second | (size_t)third) % 16);
}

void run_aligned_arrays(float *out, unsigned *misplaced) { aligned_arrays<<<1, 64>>>(out, misplaced); }

__device__ int *one_array() {
    __shared__ int array[64];
    return array;
}

__global__ void repeated_site(int *out) {
    one_array()[threadIdx.x] = (int)threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = one_array()[63 - threadIdx.x];
}

void run_repeated_site(int *out) { repeated_site<<<1, 64>>>(out); }

__global__ void dynamic_shared(int *out, int count) {
    extern __shared__ int dynamic_ints[];
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x) dynamic_ints[i] = 7 * i;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < count; i += (int)blockDim.x) out[i] = dynamic_ints[count - 1 - i];
}

cudaError_t allow_dynamic_shared(int bytes) {
    return cudaFuncSetAttribute(dynamic_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

void run_dynamic_shared(int *out, size_t bytes) { dynamic_shared<<<1, 128, bytes>>>(out, (int)(bytes / sizeof(int))); }

__global__ void dynamic_parts(double *out, int n) {
    extern __shared__ __align__(16) unsigned char dynamic_bytes[];
    double *doubles = reinterpret_cast<double *>(dynamic_bytes);
    int *ints = reinterpret_cast<int *>(doubles + n);
    int t = (int)threadIdx.x;
    doubles[t] = 0.5 * t;
    ints[n - 1 - t] = t;
    __syncthreads();
    out[t] = doubles[n - 1 - t] + ints[t];
}

void run_dynamic_parts(double *out, int n) {
    size_t bytes = (size_t)n * (sizeof(double) + sizeof(int));
    dynamic_parts<<<1, n, bytes>>>(out, n);
}

__global__ void dynamic_and_static(int *out) {
    __shared__ int fixed[256];
    extern __shared__ int dynamic_more[];
    int t = (int)threadIdx.x, n = (int)blockDim.x;
    fixed[t] = t;
    dynamic_more[t] = 1000 * t;
    __syncthreads();
    out[t] = fixed[n - 1 - t] + dynamic_more[n - 1 - t];
}

void run_dynamic_and_static(int *out, int n) { dynamic_and_static<<<1, n, (size_t)n * sizeof(int)>>>(out); }

__global__ void big_static(float *out) {
    __shared__ float big_block[4096];
    extern __shared__ float dynamic_floats[];
    big_block[threadIdx.x] = 1.0f;
    dynamic_floats[threadIdx.x] = 2.0f;
    __syncthreads();
    out[threadIdx.x] = big_block[31 - threadIdx.x] + dynamic_floats[31 - threadIdx.x];
}

void run_big_static(float *out, size_t dynamic_bytes) { big_static<<<1, 32, dynamic_bytes>>>(out); }

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

__global__ void vectors(const float *__restrict__ in, float *__restrict__ out, int n) {
    int i = global_thread();
    if (i >= n / 4) return;
    float4 v = reinterpret_cast<const float4 *>(in)[i];
    reinterpret_cast<float4 *>(out)[i] = make_float4(v.w, v.z, v.y, v.x);
}

void run_vectors(const float *in, float *out, int n) { vectors<<<(n / 4 + 31) / 32, 32>>>(in, out, n); }

__global__ void vector_parts(float *out) {
    float4 a = {1.0f, 2.0f, 3.0f, 4.0f}, zero = {}, copy;
    copy = a;
    copy.y += 10.0f;
    float2 b = make_float2(5.0f, 6.0f), c{7.0f, 8.0f};
    int4 d = make_int4(9, 10, 11, 12), e{13, 14, 15, 16};
    d.x += e.w;
    int2 f = make_int2(17, 18);
    uint4 g = make_uint4(19u, 20u, 21u, 22u);
    float4 list[2] = {a, float4{0.5f, 1.5f, 2.5f, 3.5f}};
    const float4 &second = list[1];
    *(float4 *)out = a;
    ((float4 *)out)[1] = copy;
    ((float4 *)out)[2] = zero;
    ((float4 *)out)[3] = second;
    ((float2 *)out)[8] = b;
    ((float2 *)out)[9] = c;
    ((int4 *)out)[5] = d;
    ((int4 *)out)[6] = e;
    ((int2 *)out)[14] = f;
    ((uint2 *)out)[15] = make_uint2(g.x, g.w);
}

void run_vector_parts(float *out) { vector_parts<<<1, 1>>>(out); }

/* ---- templates and arguments ------------------------------------------------------------------------------------- */

template <int N> __global__ void one_argument(int *out) { *out = N; }
template <typename T, int N> __global__ void two_arguments(int *out, T value) { *out = (int)(value * (T)N); }
template <int N = 5, bool NEGATIVE = false> __global__ void with_defaults(int *out) { *out = NEGATIVE ? -N : N; }
template <bool FLAG> __global__ void with_flag(int *out) { *out = FLAG ? 1 : 2; }

/* Spaces around <<< are part of the test. */
// clang-format off
void run_templates(int *out) {
    one_argument<1><<<1, 1>>>(out);
    one_argument<100 / 4 + 1><<<1, 1>>>(out + 1);
    two_arguments<float, 3><<<1, 1>>>(out + 2, 1.5f);
    two_arguments<double, 8> <<<1, 1>>> (out + 3, 0.25);
    with_defaults<><<<1, 1>>>(out + 4);
    with_defaults<6><<<1, 1>>>(out + 5);
    with_defaults<7, true><<<1, 1>>>(out + 6);
    with_flag<(sizeof(int) == 4)><<<1, 1>>>(out + 7);
}
// clang-format on

/* A thread that changes its parameters changes only its own. */
__global__ void use_parameters(parameters p, int *out) {
    int t = (int)threadIdx.x;
    out[t] = (int)(p.factor * p.numbers[t % 40]) + p.in[t] + p.tag;
    p.numbers[(t + 1) % 40] = -1;
    p.factor = 0;
    __syncthreads();
    out[blockDim.x + t] = p.numbers[t % 40];
}

void run_parameters(struct parameters p, int *out, int threads) { use_parameters<<<1, threads>>>(p, out); }

__global__ void conversions(double *out, float a, unsigned char b, double c, const int *d) {
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d == nullptr;
}

void run_conversions(double *out) { conversions<<<1, 1>>>(out, 3, 258 - 256, 4.5f, nullptr); }

/* ---- launches: each adds its threads to a count of its own ------------------------------------------------------- */

__global__ void tally(int *threads_of, int which) { atomicAdd(&threads_of[which], 1); }
template <int WHICH> __global__ void tally_fixed(int *threads_of) { atomicAdd(&threads_of[WHICH], 1); }

namespace outer {
namespace inner {
__global__ void tally_inside(int *threads_of, int which) { atomicAdd(&threads_of[which], 1); }
template <typename T> __global__ void tally_template(T *threads_of, int which) { atomicAdd(&threads_of[which], 1); }
} // namespace inner
} // namespace outer

static int two(int a, int b) { return a + b; }

/* Spaces again, and launches over several lines. */
// clang-format off
#define TALLY(grid, block, which) tally<<<grid, block>>>(threads_of, which)
#define IN_ORDER(...) __VA_ARGS__

void run_launches(int *threads_of) {
    int n = 65, zero = 0;
    const dim3 grid(2, 3), block(4, 5, 6);
    cudaStream_t stream = nullptr;
    tally<<<2, 3>>>(threads_of, 0);
    tally<<<grid, block>>>(threads_of, 1);
    tally<<<dim3(2, 2), dim3(8, 4)>>>(threads_of, 2);
    tally<<<two(1, 2), (n > 64 ? 64 : n)>>>(threads_of, 3);
    tally<<<n > 64 ? (n + 63) / 64 : 1, n >> 3>>>(threads_of, 4);
    tally<<<1, 10, 256>>>(threads_of, 5);
    tally<<<1, 11, 0, stream>>>(threads_of, 6);
    tally<<<dim3(1, 2, 3),
            12>>>(threads_of,
                  7);
    TALLY(2, 13, 8);
    IN_ORDER(tally<<<1, 14>>>(threads_of, 9); tally<<<1, 15>>>(threads_of, 10));
    outer::inner::tally_inside<<<1, 16>>>(threads_of, 11);
    outer::inner::tally_template<int><<<1, 17>>>(threads_of, 12);
    if (zero == 0) tally_fixed<13><<<1, 18>>>(threads_of);
    else tally_fixed<0><<<1, 1>>>(threads_of);
    for (int i = 0; i < 3; i++) tally <<< 1, 19 >>> (threads_of, 14);
    // A comment is no launch: tally<<<1, 1>>>(threads_of, 0);
    /* Nor is this one: tally<<<1, 1>>>(threads_of, 0); */
    ::tally<<<1u, (size_t)20>>>(threads_of, 15);
}
// clang-format on

const char *text_with_launch(void) { return "__shared__ int x; tally<<<1, 1>>>(0) // \""; }

__global__ void add(int *data, int n, int addend) {
    int i = global_thread();
    if (i < n) data[i] += addend;
}

void run_on_stream(int *data, int n, int addend, cudaStream_t stream) {
    add<<<(n + 63) / 64, 64, 0, stream>>>(data, n, addend);
}

__global__ void empty() {}

void run_empty(struct extent grid, struct extent block) { empty<<<to_dim3(grid), to_dim3(block)>>>(); }

/* ---- variables outside kernels, and arithmetic on bits ----------------------------------------------------------- */

__constant__ int odd_numbers[4] = {1, 3, 5, 7};
__device__ const int squares_of[4] = {0, 1, 4, 9};
__device__ int calls[64];
static constexpr int OFFSET = 1000;

__device__ __noinline__ int count_call(int i) { return ++calls[i]; }
__device__ __forceinline__ int look_up(int i) { return odd_numbers[i % 4] + 10 * squares_of[i % 4]; }

__global__ void __launch_bounds__(64) globals(int *out) {
    int t = (int)threadIdx.x, first_count = count_call(t);
    out[t] = OFFSET * (count_call(t) - first_count) + look_up(t);
}

void run_globals(int *out) { globals<<<1, 64>>>(out); }

__global__ void bits(const unsigned *in, int *out, int n) {
    int i = global_thread();
    if (i >= n) return;
    out[3 * i] = __popc(in[i]);
    out[3 * i + 1] = __clz((int)in[i]);
    out[3 * i + 2] = __ffs((int)in[i]);
}

void run_bits(const unsigned *in, int *out, int n) { bits<<<(n + 31) / 32, 32>>>(in, out, n); }

/* ---- memory that nobody has written ------------------------------------------------------------------------------ */

__global__ void fill_shared(int n) {
    extern __shared__ volatile float filled[];
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x) filled[i] = 1.0f;
}

void run_fill_shared(int n) { fill_shared<<<64, 32, (size_t)n * sizeof(float)>>>(n); }

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* MARK(name) stands on the line that is at fault and tells the tests its number: hence functions of one line. */
#define MARK(name) const int line_##name = __LINE__;

// clang-format off
MARK(read_at) __global__ void read_at(const float *in, float *out, long i) { if (threadIdx.x == 33) out[0] = in[i]; }
MARK(write_at) __global__ void write_at(float *out, long i) { if (threadIdx.x == 33) out[i] = 1.0f; }
MARK(add_at) __global__ void add_at(int *out, long i) { atomicAdd(&out[i], 1); }
MARK(read_vector) __global__ void read_vector(const float *in, float4 *out) { *out = *(const float4 *)in; }

MARK(past_static) __device__ float past_static(const float *small, int i) { return small[i]; }
__global__ void read_past_static(float *out, int i) {
    __shared__ float small[24];
    small[threadIdx.x % 24] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = past_static(small, i);
}

MARK(past_first) __device__ void past_first(float *left, int i) { left[i] = 2.0f; }
__global__ void write_past_first(float *out, int i) {
    __shared__ float left[8], right[8];
    left[threadIdx.x] = right[threadIdx.x] = 1.0f;
    __syncthreads();
    if (threadIdx.x == 0) past_first(left, i);
    __syncthreads();
    out[threadIdx.x] = left[threadIdx.x] + right[threadIdx.x];
}

MARK(dynamic_at) __device__ float dynamic_at(const float *dynamic, int i) { return dynamic[i]; }
__global__ void read_dynamic_at(float *out, int i) {
    extern __shared__ float dynamic_sized[];
    dynamic_sized[threadIdx.x] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = dynamic_at(dynamic_sized, i);
}

MARK(read_unwritten_global) __global__ void read_unwritten_global(const int *in, int *out) { out[threadIdx.x] = in[9]; }
MARK(unwritten_shared) __device__ int unwritten_shared(const int *nothing) { return nothing[5]; }
__global__ void read_unwritten_shared(int *out) {
    extern __shared__ int nothing[];
    out[threadIdx.x] = unwritten_shared(nothing);
}

MARK(barrier_of_half) __device__ void barrier_of_half() { __syncthreads(); }
MARK(barrier_of_all) __device__ void barrier_of_all() { __syncthreads(); }
__global__ void half_at_barrier(float *out) {
    if (threadIdx.x % 2 == 0) barrier_of_half();
    if (threadIdx.x < 10) out[threadIdx.x] = 1.0f;
    barrier_of_all();
}

MARK(barrier_then) __device__ void barrier_then() { __syncthreads(); }
MARK(barrier_else) __device__ void barrier_else() { __syncthreads(); }
__global__ void two_barriers() {
    if (threadIdx.x < 40) barrier_then();
    else barrier_else();
}

MARK(access_before_return) __device__ bool is_needed(const int *limit) { return (int)threadIdx.x < limit[0]; }
MARK(barrier_after_return) __device__ void barrier_after_return() { __syncthreads(); }
__global__ void early_return(const int *limit, int *out) {
    if (!is_needed(limit)) return;
    out[threadIdx.x] = 1;
    barrier_after_return();
}

MARK(barrier_of_most) __device__ void barrier_of_most() { __syncthreads(); }
__global__ void return_without_access() { if (threadIdx.x != 50) barrier_of_most(); }

MARK(barrier_in_loop) __device__ void barrier_in_loop() { __syncthreads(); }
MARK(barrier_after_loop) __device__ void barrier_after_loop() { __syncthreads(); }
__global__ void unequal_loops() {
    for (unsigned i = 0; i < 3 + threadIdx.x / 32; i++) barrier_in_loop();
    barrier_after_loop();
}

__device__ void put_once(int *out, int x) { if (threadIdx.x == 0) *out = x; }
MARK(absent_lane) __device__ int absent_lane(int x) { return __shfl_down_sync(0xffffffffu, x, 4); }
__global__ void read_absent_lane(int *out) { put_once(out, absent_lane((int)threadIdx.x)); }
MARK(lane_outside_mask) __device__ int lane_outside_mask(int x) { return __shfl_sync(0x0000ffffu, x, 20); }
__global__ void read_outside_mask(int *out) { if (threadIdx.x < 16) put_once(out, lane_outside_mask((int)threadIdx.x)); }
MARK(caller_outside_mask) __device__ int caller_outside_mask(int x) { return __shfl_sync(0x0000ffffu, x, 2); }
__global__ void call_outside_mask(int *out) { put_once(out, caller_outside_mask((int)threadIdx.x)); }

MARK(shuffle_then) __device__ int shuffle_then(int x) { return __shfl_xor_sync(0xffffffffu, x, 1); }
MARK(shuffle_else) __device__ int shuffle_else(int x) { return __shfl_xor_sync(0xffffffffu, x, 2); }
__global__ void two_shuffles(int *out) {
    int x = (int)threadIdx.x;
    put_once(out, x < 16 ? shuffle_then(x) : shuffle_else(x));
}
MARK(different_masks) __global__ void different_masks() { __syncwarp(threadIdx.x < 16 ? 0xffffffffu : 0xfffffff0u); }
__global__ void barrier_meets_shuffle(int *out) {
    if (threadIdx.x < 16) barrier_of_half();
    else out[threadIdx.x - 16] = shuffle_else(1);
}

MARK(endless_reads) __global__ void endless_reads(const volatile int *flag) { while (flag[0] >= 0) {} }
MARK(write_before_spin) __device__ void write_before_spin(int *out) { out[0] = 1; }
MARK(spin) __device__ void spin(int n) { while (n >= 0) asm volatile("" : "+r"(n)); }
__global__ void endless_spin(int n) { spin(n); }
__global__ void spin_after_write(int *out, int n) {
    if (threadIdx.x == 5) write_before_spin(out);
    if (threadIdx.x == 5) spin(n);
    __syncthreads();
}
MARK(endless_barriers) __global__ void endless_barriers(int n) { while (n >= 0) __syncthreads(); }
MARK(endless_shuffles) __global__ void endless_shuffles(int n) { while (n >= 0) n = __shfl_sync(0xffffffffu, n, 0); }
MARK(endless_atomics) __global__ void endless_atomics(int *lock) { while (atomicAdd(lock, 0) >= 0) {} }

MARK(large_local_array) __device__ int touch(volatile char *big, int n) { big[n] = 1; return big[n / 2]; }
__global__ void large_local_array(int *out, int n) {
    volatile char big[100000];
    out[0] = touch(big, n);
}
MARK(endless_recursion) __device__ __noinline__ int recurse(int n) { return n < 0 ? 0 : 1 + recurse(n + 1) * 3; }
__global__ void endless_recursion(int *out, int n) { out[0] = recurse(n); }
MARK(division_by_zero) __global__ void division_by_zero(int *out, int n) { out[0] = 10 / n; }

#ifndef __SIMT__ /* nvcc refuses this one itself */
const int line_too_much_static = 0;
#else
MARK(too_much_static) __device__ float *too_much_static() { __shared__ float too_large[12289]; return too_large; }
__global__ void declare_too_much() { too_much_static()[threadIdx.x] = 1.0f; }
#endif
// clang-format on

cudaError_t commit(enum fault fault, void *pointer) {
    enum { COUNT = 10 };
    float *floats = nullptr, *second = nullptr;
    cudaError_t error = cudaMalloc(&floats, COUNT * sizeof(float));
    if (error == cudaSuccess) error = cudaMalloc(&second, COUNT * sizeof(float));
    if (error == cudaSuccess) error = cudaMemset(floats, 0, COUNT * sizeof(float));
    if (error != cudaSuccess) return error;
    /* The one that lies lower, so that nothing but guard pages and foreign memory comes before it. */
    if (second < floats) {
        float *lower = second;
        second = floats;
        floats = lower;
    }
    error = cudaMemset(floats, 0, COUNT * sizeof(float));
    if (error != cudaSuccess) return error;
    int *ints = reinterpret_cast<int *>(floats);
    switch (fault) {
    case READ_PAST_END: read_at<<<dim3(1, 2), 64>>>(floats, second, COUNT); break;
    case WRITE_PAST_END: write_at<<<1, 64>>>(floats, COUNT); break;
    case READ_BEFORE_START: read_at<<<1, 64>>>(floats, second, -1); break;
    case READ_BEFORE_START_OF_SECOND: read_at<<<1, 64>>>(second, floats, -1); break;
    case WRITE_FAR_AWAY: write_at<<<1, 64>>>(floats, 1L << 42); break;
    case NULL_POINTER: read_at<<<1, 64>>>(nullptr, floats, 3); break;
    case FOREIGN_POINTER: read_at<<<1, 64>>>((const float *)pointer, floats, 3); break;
    case USE_AFTER_FREE:
        cudaFree(second);
        read_at<<<1, 64>>>(second, floats, 3);
        break;
    case ATOMIC_PAST_END: add_at<<<1, 1>>>(ints, COUNT); break;
    case VECTOR_PAST_END: read_vector<<<1, 1>>>(floats + 8, (float4 *)second); break;
    case PAST_STATIC_SHARED: read_past_static<<<1, 10>>>(floats, 24); break;
    case PAST_FIRST_OF_TWO_SHARED: write_past_first<<<1, 8>>>(floats, 8); break;
    case PAST_DYNAMIC_SHARED: read_dynamic_at<<<1, 10, 80>>>(floats, 20); break;
    case BEFORE_DYNAMIC_SHARED: read_dynamic_at<<<1, 10, 80>>>(floats, -1); break;
    case MISALIGNED_VECTOR: read_vector<<<1, 1>>>(floats + 1, (float4 *)second); break;
    case READ_UNWRITTEN_GLOBAL:
        cudaFree(second);
        cudaMalloc(&second, COUNT * sizeof(float));
        cudaMemset(second, 0, (COUNT - 1) * sizeof(float)); /* all but the last */
        read_unwritten_global<<<1, 10>>>((int *)second, ints);
        break;
    case READ_UNWRITTEN_SHARED: read_unwritten_shared<<<1, 10, 40>>>(ints); break;
    case HALF_AT_BARRIER: half_at_barrier<<<1, 64>>>(floats); break;
    case TWO_BARRIERS: two_barriers<<<1, 64>>>(); break;
    case EARLY_RETURN:
        cudaMemset(floats, 1, 1); /* as an int: 1, so that thread 0 alone goes on */
        early_return<<<1, 64>>>(ints, (int *)second);
        break;
    case RETURN_WITHOUT_ACCESS: return_without_access<<<1, 64>>>(); break;
    case BARRIERS_IN_UNEQUAL_LOOPS: unequal_loops<<<1, 64>>>(); break;
    case ABSENT_LANE: read_absent_lane<<<1, 48>>>(ints); break;
    case LANE_OUTSIDE_MASK: read_outside_mask<<<1, 32>>>(ints); break;
    case CALLER_OUTSIDE_MASK: call_outside_mask<<<1, 32>>>(ints); break;
    case SHUFFLES_IN_TWO_BRANCHES: two_shuffles<<<1, 32>>>(ints); break;
    case DIFFERENT_MASKS: different_masks<<<1, 32>>>(); break;
    case BARRIER_MEETS_SHUFFLE: barrier_meets_shuffle<<<1, 32>>>(ints); break;
    case ENDLESS_READS: endless_reads<<<1, 32>>>(ints); break;
    case ENDLESS_SPIN: endless_spin<<<1, 32>>>(1); break;
    case ENDLESS_SPIN_AFTER_WRITE: spin_after_write<<<1, 32>>>(ints, 1); break;
    case ENDLESS_BARRIERS: endless_barriers<<<1, 64>>>(1); break;
    case ENDLESS_SHUFFLES: endless_shuffles<<<1, 64>>>(1); break;
    case ENDLESS_ATOMICS: endless_atomics<<<1, 32>>>(ints); break;
    case LARGE_LOCAL_ARRAY: large_local_array<<<1, 1>>>(ints, 1); break;
    case ENDLESS_RECURSION: endless_recursion<<<1, 1>>>(ints, 1); break;
    case DIVISION_BY_ZERO: division_by_zero<<<1, 1>>>(ints, 0); break;
    case TOO_MUCH_STATIC_SHARED:
#ifdef __SIMT__
        declare_too_much<<<1, 32>>>();
#endif
        break;
    }
    return cudaDeviceSynchronize();
}

/* Keep this the last line. */ MARK(last_of_file)
